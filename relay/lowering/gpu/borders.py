"""Taps of a window that lie outside an image, where the device's copies yield zeros instead of the padding's code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.depthwise_layout import Borders
from relay.lowering.scheduling.padding import Span


def kinds_of_borders(borders: Borders) -> int:
    """Return the number of pairs of a span of rows and a span of columns: in each, the same taps are outside."""
    return len(borders.row_spans) * len(borders.column_spans)


def border_number(b: LoopBuilder, borders: Borders, row: Index, column: Index) -> Index:
    """Emit the index of the pair (span of rows, span of columns) that contains the result at (row, column); return
    the index, row-major."""
    columns = borders.column_spans
    return b.plus(b.times(span_number(b, borders.row_spans, row), len(columns)), span_number(b, columns, column))


def span_number(b: LoopBuilder, spans: Sequence[Span], place: Index) -> Index:
    """Emit the number of the span that contains the position `place`."""
    found: Index = 0
    for start, *_ in spans[1:]:
        behind = b.compare(b.index(place), "uge", b.index(start))
        found = b.plus(found, b.select(behind, b.index(1), b.index(0)))
    return found


def outside(borders: Borders, kernel: Array) -> Array:
    """Return an array [pair, channel]: for each pair of a span of rows and a span of columns, the sum of the weights
    whose taps are outside the image. `kernel`: the weights, [channel, row, column, depth]."""
    taps = kernel.astype(np.int64).sum(axis=3)
    inside = [
        taps[:, top:bottom, left:right].sum(axis=(1, 2))
        for _, _, top, bottom in borders.row_spans
        for _, _, left, right in borders.column_spans
    ]
    return taps.sum(axis=(1, 2)) - np.stack(inside)
