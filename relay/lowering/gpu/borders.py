"""Which taps of a window lie outside of an image: where a device's copies give zeros, and not codes of the padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.contraction import Convolution


@dataclass(frozen=True)
class Side:
    """Places of a result along one dimension, in runs whose windows have the same taps inside: where each run starts,
    and its taps."""

    starts: tuple[int, ...]
    inside: tuple[tuple[bool, ...], ...]

    def number(self, b: LoopBuilder, place: Index) -> Index:
        """The run of a place."""
        found: Index = 0
        for start in self.starts[1:]:
            behind = b.compare(b.index(place), "uge", b.index(start))
            found = b.plus(found, b.select(behind, b.index(1), b.index(0)))
        return found


def side(places: int, taps: int, stride: int, dilation: int, before: int, size: int) -> Side:
    """The runs of a dimension of so many results, whose image has `size` rows after `before` others."""
    first = np.arange(places)[:, None] * stride - before + np.arange(taps) * dilation
    inside = [tuple(bool(tap) for tap in row) for row in (first >= 0) & (first < size)]
    starts = [0] + [place for place in range(1, places) if inside[place] != inside[place - 1]]
    return Side(tuple(starts), tuple(inside[start] for start in starts))


@dataclass(frozen=True)
class Borders:
    """Runs of rows and columns of a convolution's results."""

    rows: Side
    columns: Side

    @property
    def count(self) -> int:
        return len(self.rows.starts) * len(self.columns.starts)

    def number(self, b: LoopBuilder, row: Index, column: Index) -> Index:
        """The number of a result's runs."""
        return b.plus(b.times(self.rows.number(b, row), len(self.columns.starts)), self.columns.number(b, column))

    def outside(self, kernel: Array) -> Array:
        """For each number and channel, the sum of the weights, [channel, row, column, depth], that are outside."""
        taps = kernel.astype(np.int64).sum(axis=3)
        every = [~np.outer(row, column) for row in self.rows.inside for column in self.columns.inside]
        return np.stack([(taps * out).sum(axis=(1, 2)) for out in every])


def borders(conv: Convolution, before: Sequence[int], size: Sequence[int]) -> Borders:
    """Those of a convolution of images of this size with so many rows and columns before them."""
    rows = side(conv.out_rows, conv.kernel_rows, conv.strides[0], conv.dilation[0], before[0], size[0])
    columns = side(conv.out_columns, conv.kernel_columns, conv.strides[1], conv.dilation[1], before[1], size[1])
    return Borders(rows, columns)
