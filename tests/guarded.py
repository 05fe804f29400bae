"""Runs of an executable in memory that shows what it must not do.

Inputs, outputs, constants and arena each lie against a page that nobody may touch, once at their end and once at their
start: a run that does ends by SIGSEGV. What is not given is filled with a pattern, another one each time: results in
which it is read differ.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import ExitStack
from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np

from relay.runtime import Executable, executable, memory
from relay.runtime.dlpack import Given
from relay.runtime.memory import Array, Form, bytes_of

PAGE, PROT_NONE = mmap.PAGESIZE, 0
LIBC = ctypes.CDLL(None)
RUN = Executable.run


class Guarded:
    """Memory for one run: every piece between two pages of its own, at the end of what lies between or at the start."""

    def __init__(self, fill: int, *, at_end: bool):
        self.fill, self.at_end = fill, at_end
        self.pieces: list[tuple[Array, slice]] = []

    def place(self, size: int, alignment: int = memory.ALIGNMENT) -> Array:
        """So many bytes with that fill."""
        between = -(-max(size, 1) // PAGE) * PAGE
        try:
            pages = np.frombuffer(mmap.mmap(-1, between + 2 * PAGE), np.uint8)
        except OSError as error:
            raise MemoryError from error
        for guard in (0, between + PAGE):
            at = ctypes.c_void_p(pages.ctypes.data + guard)
            assert LIBC.mprotect(at, ctypes.c_size_t(PAGE), PROT_NONE) == 0
        inside = pages[PAGE : PAGE + between]
        inside[:] = self.fill
        start = (between - size) // alignment * alignment if self.at_end else 0
        self.pieces.append((inside, slice(start, start + size)))
        return inside[start : start + size]

    def array(self, form: Form) -> Array:
        """An array against a page as close as its elements allow: what a caller's array may be."""
        shape, dtype = form
        return self.place(bytes_of(form), dtype.itemsize).view(dtype).reshape(shape)

    def touched(self) -> list[str]:
        """What was written outside of a piece, without reaching a page."""
        found: list[str] = []
        for number, (inside, own) in enumerate(self.pieces):
            outside = inside != self.fill
            outside[own] = False
            if outside.any():
                found.append(f"piece {number} at {(np.flatnonzero(outside)[:8] - own.start).tolist()}")
        return found


def constants(graph: dict[str, Any], params: dict[str, Array], room: Guarded) -> Array:
    """The constants where the plan has them, the gaps between them with the fill."""
    blob = room.place(int(graph["constants_bytes"]))
    for row in graph["constants"]:
        flat = np.ascontiguousarray(params[row["name"]]).reshape(-1).view(np.uint8)
        blob[row["offset"] : row["offset"] + flat.size] = flat
    return blob


def run(made: Executable, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...] | None:
    """`made.run(...)`, which is not run itself. Raises AssertionError where it reads what nothing was written to, or
    writes beside its outputs and arena."""
    if "device" in made.graph or made.inputs and not inputs and not named:
        return RUN(made, *inputs, **named)
    found: list[Array | tuple[Array, ...] | None] = []
    for fill, at_end in ((0xFF, True), (0x5A, False)):
        room = Guarded(fill, at_end=at_end)
        with ExitStack() as stack:
            stack.enter_context(patch.object(memory, "aligned_bytes", room.place))
            stack.enter_context(patch.object(memory, "aligned_array", room.array))
            stack.enter_context(patch.object(executable, "STAGED_BYTES", inf))
            graph, library, params = made
            blob = constants(made.graph, params, room)
            before = blob.copy()
            twin = Executable(graph, library, params, blob)
            twin.__dict__["_native"] = made.__dict__["_native"]  # by as many threads
            found.append(RUN(twin, *inputs, **named))
        assert room.touched() == [], "the code writes where it must not"
        assert np.array_equal(blob, before), "the code writes to its constants"
    assert bytes_of_all(found[0]) == bytes_of_all(found[1]), "results depend on memory that nothing was written to"
    return found[0]


def bytes_of_all(results: Array | tuple[Array, ...] | None) -> list[bytes]:
    """The bits of results, NaN included."""
    every = results if isinstance(results, tuple) else [results]
    return [each.tobytes() for each in every if each is not None]
