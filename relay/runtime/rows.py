"""Runs of any number of rows by builds for blocks of a few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import Array as Numbers
from ctypes import addressof, c_uint64
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.errors import Unsupported
from relay.runtime.memory import ALIGNMENT, Array, address, aligned_bytes, bytes_of
from relay.runtime.team import team_for

if TYPE_CHECKING:
    from relay.runtime.dlpack import Given
    from relay.runtime.executable import Executable
    from relay.runtime.interface import Interface
    from relay.runtime.profile import Profile

TEAM, ARENAS, STRIDE, TENSORS = 1, 2, 3, 6
"""Indices of 8-byte words in the table that is the argument of `@relay_repeat` (`relay.lowering.llvm.repeat`): the team
of threads, the number of arenas, the bytes from one arena to the next, and the first address of a tensor. Word 0 is the
number of blocks to run."""


class Repeated:
    """Runs an executable for consecutive blocks of rows of the batch, each of as many rows as the executable computes
    at once; the number of blocks is given at run time. Several threads may call it at the same time.

    Each run has one arena for each thread of its team, whatever its number of blocks.
    """

    def __init__(self, executable: Executable, threads: int):
        graph = executable.graph
        symbols = {str(key): str(name) for key, name in graph["repeat"].items()}
        self.executable = executable  # its code and constants are used
        self.native = executable.library.function(symbols["entry"])
        self.arenas = 1
        if (team := team_for(executable.library, symbols["team"], threads)) is not None:
            self.arenas, self.native = team.threads, team.bound(self.native, TEAM)
        self.stride = -(-int(graph["arena_bytes"]) // ALIGNMENT) * ALIGNMENT
        self.free: list[tuple[Numbers[c_uint64], Array]] = []

    def run(self, count: int, tensors: Sequence[int]) -> None:
        """Run the executable for `count` consecutive blocks of rows. `tensors`: the addresses of the inputs and
        outputs, each that of the first block."""
        try:
            table, arena = self.free.pop()
        except IndexError:
            try:
                arena = aligned_bytes(self.stride * self.arenas)
            except MemoryError:
                what = f"there is no memory for {self.arenas} arenas of {self.stride} bytes"
                raise Unsupported("run", what, "set num_threads to fewer") from None
            table = (c_uint64 * (TENSORS + len(tensors) + 2))()
            table[ARENAS], table[STRIDE] = self.arenas, self.stride
            table[TENSORS + len(tensors)] = address(self.executable.constants)
            table[TENSORS + len(tensors) + 1] = address(arena)
        table[0] = count
        table[TENSORS : TENSORS + len(tensors)] = tensors
        self.native(addressof(table))
        self.free.append((table, arena))


class Rows:
    """Runs any number of rows by executables for blocks of fixed numbers of rows, one of which is a single row. The
    largest block runs as often as it fits into the rows that are left, then the next smaller one."""

    def __init__(self, interface: Interface, blocks: Mapping[int, Executable], threads: int):
        """`blocks` maps a number of rows of the batch to the executable that computes this many rows at once; it
        contains the number 1. `threads`: the most threads that a run uses."""
        self.interface, self.one = interface, blocks[1]
        self.blocks = sorted(blocks.items(), reverse=True)
        self.repeated = [(size, Repeated(each, threads)) for size, each in self.blocks]
        forms = [(spec.shape, spec.dtype) for spec in (*self.one.inputs, *self.one.outputs)]
        self.row_bytes = [bytes_of(form) for form in forms]
        self.takes = [(spec.shape[1:], spec.dtype) for spec in self.one.inputs]
        self.gives = forms[len(self.one.inputs) :]

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        """Run the model on all rows; inputs and results are as for `Executable.run`."""
        values = self._arrange(inputs, named)
        rows = values[0].shape[0]
        try:
            results = [np.empty((rows * shape[0], *shape[1:]), dtype) for shape, dtype in self.gives]
        except MemoryError:
            size = rows * sum(self.row_bytes[len(values) :])
            raise Unsupported("run", f"there is no memory for outputs of {size} bytes") from None
        places = [address(array) for array in (*values, *results)]
        left = rows
        for size, part in self.repeated:
            if count := left // size:
                part.run(count, places)
                left -= count * size
                places = [place + count * size * step for place, step in zip(places, self.row_bytes, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def profile(self, /, *inputs: Given, seconds: float = 1.0, **named: Given) -> Profile:
        """Profile a run on the first block of the given rows; see `Executable.profile`."""
        values = self._arrange(inputs, named)
        size, part = next(pair for pair in self.blocks if pair[0] <= values[0].shape[0])
        return part.profile(*(value[:size] for value in values), seconds=seconds)

    def _arrange(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[Array]:
        """The inputs in order, each checked."""
        given: Sequence[Any] = inputs
        if named or len(inputs) != len(self.interface.inputs):
            given = self.one.arrange(inputs, named)
        rows = zip(self.interface.inputs, self.takes, given, strict=True)
        return [
            value
            if type(value) is np.ndarray and value.dtype == dtype and value.shape[1:] == row and value.flags.carray
            else spec.take(value)
            for spec, (row, dtype), value in rows
        ]
