"""Taps of a window that lie outside an image, where the device's copies yield zeros instead of the padding's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.contraction import Convolution


@dataclass(frozen=True)
class Side:
    """The positions of a result along one dimension, divided into spans: for all positions of a span, the same taps of
    the window are inside the image. `starts`: the first position of each span; `inside`: for each span, whether each
    tap is inside."""

    starts: tuple[int, ...]
    inside: tuple[tuple[bool, ...], ...]

    def number(self, b: LoopBuilder, place: Index) -> Index:
        """Emit the number of the span that contains the position `place`: in each span of positions of the result, the
        same taps of the window are inside the image."""
        found: Index = 0
        for start in self.starts[1:]:
            behind = b.compare(b.index(place), "uge", b.index(start))
            found = b.plus(found, b.select(behind, b.index(1), b.index(0)))
        return found


def side(places: int, taps: int, stride: int, dilation: int, before: int, size: int) -> Side:
    """Divide a dimension with `places` results into spans of positions with the same taps inside the image, which has
    `size` elements along it after `before` elements of padding. Return them as a `Side`."""
    first = np.arange(places)[:, None] * stride - before + np.arange(taps) * dilation
    inside = [tuple(bool(tap) for tap in row) for row in (first >= 0) & (first < size)]
    starts = [0] + [place for place in range(1, places) if inside[place] != inside[place - 1]]
    return Side(tuple(starts), tuple(inside[start] for start in starts))


@dataclass(frozen=True)
class Borders:
    """The rows and the columns of a convolution's results, each divided into spans of positions that have the same taps
    outside the image."""

    rows: Side
    columns: Side

    @property
    def count(self) -> int:
        return len(self.rows.starts) * len(self.columns.starts)

    def number(self, b: LoopBuilder, row: Index, column: Index) -> Index:
        """Emit the index of the pair (span of rows, span of columns) that contains the result at (row, column); return
        the index, row-major."""
        return b.plus(b.times(self.rows.number(b, row), len(self.columns.starts)), self.columns.number(b, column))

    def outside(self, kernel: Array) -> Array:
        """Return an array [pair, channel]: for each pair of a span of rows and a span of columns, the sum of the
        weights whose taps are outside the image. `kernel`: the weights, [channel, row, column, depth]."""
        taps = kernel.astype(np.int64).sum(axis=3)
        every = [~np.outer(row, column) for row in self.rows.inside for column in self.columns.inside]
        return np.stack([(taps * out).sum(axis=(1, 2)) for out in every])


def borders(conv: Convolution, before: Sequence[int], size: Sequence[int]) -> Borders:
    """Divide the rows and the columns of a convolution's result into spans of positions with the same taps inside the
    image. `before`: the rows and columns of padding above and left of the image; `size`: the image's rows and
    columns."""
    rows = side(conv.out_rows, conv.kernel_rows, conv.strides[0], conv.dilation[0], before[0], size[0])
    columns = side(conv.out_columns, conv.kernel_columns, conv.strides[1], conv.dilation[1], before[1], size[1])
    return Borders(rows, columns)
