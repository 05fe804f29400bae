"""Memory for native code: addresses of arrays, aligned bytes, and `Frame`, the arena and table of addresses that one
run needs."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_char, c_uint64
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from relay.errors import Unsupported

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

ALIGNMENT = 64
PAGE = 4096

_first_byte = c_char.from_buffer


def dtype_named(name: str) -> np.dtype[Any]:
    """The dtype with this name in numpy or `ml_dtypes`. Raises Unsupported if `ml_dtypes` is needed and not
    installed."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes  # here: few models have such numbers

        return np.dtype(getattr(ml_dtypes, name))
    except ImportError:
        raise Unsupported(f"numbers of {name}", "need the package ml_dtypes", "pip install ml_dtypes") from None


def address(array: Array) -> int:
    """The address of the array's first byte. This takes a third of the time of numpy's `array.ctypes.data`."""
    try:
        return addressof(_first_byte(array.data))
    except (TypeError, ValueError):  # read-only, or empty
        return array.ctypes.data


def aligned_bytes(size: int, alignment: int = ALIGNMENT) -> Array:
    """Allocate zeroed bytes at a multiple of the alignment."""
    raw = np.zeros(size + alignment, np.uint8)
    start = -address(raw) % alignment
    return raw[start : start + size]


Form = tuple[tuple[int, ...], np.dtype[Any]]
"""The shape and dtype of a tensor."""


class Frame:
    """The memory of one run: an arena, and the table of addresses that the entry point takes.

    The table has the inputs, the outputs, the length if the code serves any length, the constants, the arena, and
    further entries (None reserves one). `inputs` and `outputs` are arrays that belong to the frame: one for each input
    of at most `limit` bytes, and one for each output if all outputs together have at most `limit` bytes. The addresses
    of all others are written into the table by each run.
    """

    __slots__ = ("arena", "inputs", "more", "outputs", "pointer", "table")

    def __init__(
        self,
        inputs: Sequence[Form],
        outputs: Sequence[Form],
        constants: Array,
        arena: int,
        limit: float,
        more: Sequence[Array | None] = (),
        length: int = 0,
    ):
        self.arena, self.more = aligned_bytes(arena), more
        self.inputs = [aligned_array(form) if bytes_of(form) <= limit else None for form in inputs]
        staged = sum(map(bytes_of, outputs)) <= limit
        self.outputs = [aligned_array(form) for form in outputs] if staged else []
        arrays = [*self.inputs, *(self.outputs or [None] * len(outputs)), constants, self.arena, *more]
        words = [0 if array is None else address(array) for array in arrays]
        if length:
            self.arena[::PAGE] = 0  # in memory from now on: a longer sequence than before does not wait for its pages
            words.insert(len(inputs) + len(outputs), length)
        self.table = (c_uint64 * len(words))(*words)
        self.pointer = addressof(self.table)

    def write(self, index: int, value: Array) -> None:
        """Copy the value into an input array of the frame."""
        array = self.inputs[index]
        if array is None:
            raise IndexError(f"input {index} has no array in the frame")
        array[...] = value


def aligned_array(form: Form) -> Array:
    """Allocate a zeroed array of this shape and dtype, at a multiple of 64 bytes."""
    shape, dtype = form
    return aligned_bytes(bytes_of(form)).view(dtype).reshape(shape)


def bytes_of(form: Form) -> int:
    """The size in bytes of an array of this shape and dtype."""
    shape, dtype = form
    return prod(shape) * dtype.itemsize
