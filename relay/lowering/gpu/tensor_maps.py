"""Matrices in memory, as described to the device's copy engine by tensor maps, which kernels receive beside their
buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, MemRefType, i8, i64
from xdsl.ir import Attribute, SSAValue

from relay.lowering.builder import LoopBuilder

MAP_BYTES = 128
"""The size of a tensor map in bytes."""
MAPPED = "relay.map"
"""The attribute of a `memref.view` whose result is a tensor map of its source, not the source itself."""
FIELDS = ("dims", "strides", "box", "corners")


@dataclass(frozen=True)
class TensorMap:
    """A CUDA tensor map of a matrix of bytes: `dims` are the bytes of a row and the number of rows, `strides` the bytes
    from a row to the next, `box` the bytes and the rows of a tile. Tiles are swizzled in shared memory: chunk c of 16
    bytes of row r is stored at c xor (r mod 8), or by CUDA's swizzles of 64 and 32 bytes if rows are that short.

    If `corners` is not empty, the map describes images, for im2col copies: `dims` are channels, columns, rows and
    images, and a row of a tile is one pixel of a window. `corners` are three numbers of pixels: the offset of the
    first window from the image's first pixel, the offset of the last window from the image's last pixel, and the
    distance between two windows. Each number is the same along rows and along columns.
    """

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, int]
    corners: tuple[int, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the map in the form that is stored as JSON."""
        found = {"dims": [*self.dims], "strides": [*self.strides], "box": [*self.box], "swizzle": self.box[0]}
        return found | ({"corners": [*self.corners]} if self.corners else {})

    def of(self, b: LoopBuilder, buffer: SSAValue) -> SSAValue:
        """Return the map of a buffer as an argument for kernels."""
        view = memref.ViewOp(buffer, b.index(0), [], MemRefType(i8, [MAP_BYTES]))
        values = {name: DenseArrayBase.from_list(i64, getattr(self, name)) for name in FIELDS}
        view.attributes[MAPPED] = DictionaryAttr(values)
        return b.add(view).result


def map_of(value: SSAValue) -> TensorMap | None:
    """Return the tensor map that a value stands for; None for a buffer."""
    if not isinstance(value.owner, memref.ViewOp):
        return None
    found = value.owner.attributes.get(MAPPED)
    if not isinstance(found, DictionaryAttr):
        return None
    dims, strides, (across, down), corners = (numbers(found.data[name]) for name in FIELDS)
    return TensorMap(dims, strides, (across, down), corners)


def numbers(attribute: Attribute) -> tuple[int, ...]:
    """Return the elements of an array attribute."""
    assert isinstance(attribute, DenseArrayBase)
    return tuple(int(number) for number in attribute.get_values())
