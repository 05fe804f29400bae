"""Builds a program: its instructions, its constants, and the address of each tensor."""

from __future__ import annotations

import numpy as np

from relay.byoc.regions import Region, Values
from relay.byoc.systolic.isa import CONSTANTS, LANES, Instruction, Load, Store, address
from relay.dialects.attributes import Array

INPUTS = 0
INPUT_ROWS = 8192
WEIGHTS = INPUT_ROWS
WEIGHT_ROWS = 3840
PARAMETERS = WEIGHTS + WEIGHT_ROWS
PARAMETER_ROWS = 256
RESULTS = PARAMETERS + PARAMETER_ROWS
RESULT_ROWS = 4096
"""How the rows of the accelerator's scratchpad memory are divided: `INPUTS`, `WEIGHTS`, `PARAMETERS` and `RESULTS` are
the first rows of four areas, and `INPUT_ROWS`, `WEIGHT_ROWS`, `PARAMETER_ROWS` and `RESULT_ROWS` their numbers of
rows."""


class Assembler:
    """Collects a program. `addresses` has the memory address of each value of the region."""

    def __init__(self, region: Region) -> None:
        self.code: list[Instruction] = []
        self.constants = bytearray()
        self.addresses: Values[int] = Values(region, self.constant)

    def emit(self, step: Instruction) -> None:
        """Append an instruction."""
        self.code.append(step)

    def constant(self, array: Array) -> int:
        """Append the array to the constants, and return its address, a multiple of 16."""
        self.constants.extend(bytes(-len(self.constants) % LANES))
        start = len(self.constants)
        self.constants.extend(np.ascontiguousarray(array).tobytes())
        return address(CONSTANTS, start)

    def load(self, where: int, row: int, count: int) -> None:
        """Append the instructions that load `count` contiguous bytes from the memory address `where` to the scratchpad,
        from row `row` on."""
        full, rest = divmod(count, LANES)
        if full:
            self.emit(Load(address=where, row=row, inner=full))
        if rest:
            self.emit(Load(address=where + full * LANES, row=row + full, bytes=rest))

    def store(self, where: int, row: int, count: int) -> None:
        """Append the instructions that store `count` contiguous bytes from the scratchpad, from row `row` on, to the
        memory address `where`."""
        full, rest = divmod(count, LANES)
        if full:
            self.emit(Store(address=where, row=row, inner=full))
        if rest:
            self.emit(Store(address=where + full * LANES, row=row + full, bytes=rest))

    def parameters(self, numbers: Array) -> None:
        """Load int32 numbers into the scratchpad's rows of parameters."""
        self.load(self.constant(numbers.astype("<i4")), PARAMETERS, numbers.size * 4)
