"""Decodes constants that are stored sparse to dense arrays.

The dimensions of the array, in units of blocks, followed by those inside a block, are the levels of a tree, walked in
the order of `traversal_order`. A dense level has all indices; a CSR level lists them: `indices[segments[p] : segments[p
+ 1]]` are those below node `p` of the level before. A value is stored for each leaf. Source: TFLite schema.fbs,
`SparsityParameters`; taco, arXiv:1802.10574.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay.errors import Malformed, Unsupported
from relay.frontend.tflite.flatbuffer import Table
from relay.frontend.tflite.schema import Fields, fields_of

Indices = NDArray[np.int64]

SPARSITY = fields_of("traversal_order:[int32] block_map:[int32] dim_metadata:[table]")
DIMENSION_METADATA = fields_of(
    "format:Dimension dense_size:int32 array_segments_type:uint8 array_segments:union array_indices_type:uint8 "
    "array_indices:union"
)
# The members of the union SparseIndexVector: the table and the type of its numbers.
INDEX_VECTORS: dict[int, tuple[Fields, str]] = {
    1: (fields_of("values:[int32]"), "<i4"),
    2: (fields_of("values:[uint16]"), "<u2"),
    3: (fields_of("values:[uint8]"), "|u1"),
}

_SPARE, _TIMES = 1 << 10, 256
"""`n` bytes of values may expand to at most `_TIMES * (n + _SPARE)` bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of the tree in which a sparse constant is stored (see the module). It is dense, with `size` indices
    below each node, if `segments` is None; else it is a CSR level with these segments and indices."""

    size: int
    segments: Indices | None
    indices: Indices


@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    traversal_order: tuple[int, ...]
    """The dimension of each level. Numbers below the rank are dimensions of the array; the others are dimensions of a
    block, in the order of `block_map`."""
    block_map: tuple[int, ...]
    """The dimension of the array that each dimension of a block divides."""
    levels: tuple[Level, ...]

    def dense(self, data: memoryview, shape: Sequence[int], dtype: np.dtype[Any], where: str) -> NDArray[Any]:
        """The dense array of these values, with zeros elsewhere. Raises Malformed or Unsupported."""
        size = math.prod(shape) * dtype.itemsize
        if size > _TIMES * (len(data) + _SPARE):
            raise Unsupported(where, f"{len(data)} bytes of sparse data are {size} dense", "store the tensor dense")
        blocks = self._blocks(shape, where)
        coordinates = self._coordinates(self._sizes(shape, blocks, where), math.prod(shape), where)
        values, rest = divmod(len(data), dtype.itemsize)
        if rest or any(len(row) != values for row in coordinates):
            raise Malformed(where, f"{len(data)} bytes of sparse data for {len(coordinates[0])} elements of {dtype}")
        axes: list[Indices] = []
        for axis in range(len(shape)):
            place = coordinates[self.traversal_order.index(axis)]
            for block, divided in enumerate(self.block_map):
                if divided == axis:
                    place = place * blocks[block] + coordinates[self.traversal_order.index(len(shape) + block)]
            axes.append(place)
        found = np.zeros(shape, dtype)
        found[tuple(axes)] = np.frombuffer(data, dtype)
        return found

    def _blocks(self, shape: Sequence[int], where: str) -> list[int]:
        """The sizes of a block's dimensions, in the order of `block_map`."""
        rank, count = len(shape), len(self.levels)
        order, divided = self.traversal_order, self.block_map
        levels_fit = count == rank + len(divided) and rank > 0
        order_fits = sorted(order[:rank]) == [*range(rank)] and sorted(order[rank:]) == [*range(rank, count)]
        if not levels_fit or not order_fits or not {*divided} <= {*range(rank)} or len({*divided}) != len(divided):
            what = f"{count} levels, traversed as {order[:9]}, with blocks of {divided[:9]}, do not fit shape {shape}"
            raise Malformed(where, what)
        inner = [self.levels[order.index(rank + block)] for block in range(len(divided))]
        for level, axis in zip(inner, divided, strict=True):
            if level.segments is not None or level.size < 1 or shape[axis] % level.size:
                raise Malformed(where, f"blocks of {level.size} do not fit dimension {axis} of shape {shape}")
        return [level.size for level in inner]

    def _sizes(self, shape: Sequence[int], blocks: Sequence[int], where: str) -> list[int]:
        """The number of indices of each level."""
        every = [*shape, *blocks]
        for size, axis in zip(blocks, self.block_map, strict=True):
            every[axis] //= size
        sizes = [every[dimension] for dimension in self.traversal_order]
        for level, size in zip(self.levels, sizes, strict=True):
            if level.segments is None and level.size != size:
                raise Malformed(where, f"a dense level of {level.size} indices stands for {size}")
        return sizes

    def _coordinates(self, sizes: Sequence[int], most: int, where: str) -> list[Indices]:
        """For each level, the index at that level of every leaf, in the order of the leaves. Raises Malformed if there
        may be more than `most` leaves, or if segments and indices are inconsistent."""
        found: list[Indices] = []
        nodes = 1
        for level, size in zip(self.levels, sizes, strict=True):
            if level.segments is None:
                if nodes * size > most:
                    raise Malformed(where, f"its levels come to more than the tensor's {most} elements")
                found = [np.repeat(row, size) for row in found]
                found.append(np.tile(np.arange(size), nodes))
            else:
                counts = np.diff(level.segments)
                ends = level.segments[[0, -1]] if len(level.segments) else [0, 0]
                if len(counts) != nodes or (counts < 0).any() or ends[0] != 0 or ends[1] != len(level.indices):
                    what = f"{len(level.segments)} segments of {len(level.indices)} indices do not fit {nodes} rows"
                    raise Malformed(where, what)
                if len(level.indices) and not 0 <= level.indices.min() <= level.indices.max() < size:
                    raise Malformed(where, f"an index is outside the {size} of its level")
                found = [np.repeat(row, counts) for row in found]
                found.append(level.indices)
            nodes = len(found[-1])
        return found


def read_sparsity(table: Table | None) -> Sparsity | None:
    """The sparsity that a tensor's table states; None if it has none."""
    if table is None:
        return None
    levels: list[Level] = []
    for row in table.tables("dim_metadata", DIMENSION_METADATA):
        sparse = row.enum("format") == "SPARSE_CSR"
        segments = _vector(row, "array_segments") if sparse else None
        indices = _vector(row, "array_indices") if sparse else np.zeros(0, np.int64)
        levels.append(Level(row.integer("dense_size"), segments, indices))
    return Sparsity(table.integers("traversal_order"), table.integers("block_map"), tuple(levels))


def _vector(row: Table, name: str) -> Indices:
    """Return the indices in the union `name` of a dimension's metadata, a FlatBuffers vector of int32, uint16 or uint8;
    empty if it is absent."""
    fields, dtype = INDEX_VECTORS.get(row.integer(f"{name}_type"), (None, ""))
    member = row.table(name, fields) if fields is not None else None
    return np.zeros(0, np.int64) if member is None else np.frombuffer(member.raw("values"), dtype).astype(np.int64)
