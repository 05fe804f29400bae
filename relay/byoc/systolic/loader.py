"""Runs what `systolic` compiled, on the simulator. Imports nothing of the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relay.byoc.systolic.artifact import unpack
from relay.byoc.systolic.isa import CLOCK
from relay.byoc.systolic.simulator import Simulator
from relay.errors import Malformed

Array = npt.NDArray[Any]


class Device:
    """A program on a simulated accelerator: call it with the tensors. Each call has a machine of its own, so that
    threads may call at the same time; `cycles` (by kind of instruction) and `microseconds` tell of the last call."""

    def __init__(self, artifact: bytes, symbol: str):
        try:
            self.program, constants, self.workspace = unpack(artifact)
        except ValueError as error:
            raise Malformed(f"systolic program {symbol}", str(error)) from None
        self.symbol = symbol
        self.constants = np.frombuffer(constants, np.int8)
        self.cycles: dict[str, int] = {}

    @property
    def microseconds(self) -> float:
        """How long the last call would have taken."""
        return sum(self.cycles.values()) / CLOCK

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        tensors = [array.reshape(-1).view(np.int8) for array in (*inputs, *outputs)]
        machine = Simulator([self.constants, np.zeros(self.workspace, np.int8), *tensors])
        try:
            machine.run(self.program)
        except ValueError as error:
            raise Malformed(f"systolic program {self.symbol}", str(error)) from None
        self.cycles = machine.cycles


def load(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Any], outputs: Sequence[Any]
) -> Device:
    """The entry point `relay.byoc.runtime`. Raises Malformed for bytes that are no program."""
    return Device(artifact, symbol)
