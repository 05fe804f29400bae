"""Numpy implementation of pooling: in one, two and three dimensions, global, and adaptive to a given output size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.interpreters.arithmetic import Int64, code_range, truncating_divide
from relay.interpreters.meaning import Meanings, cell_slices, ops_of
from relay.interpreters.nn import channels_last


def lowest(data: Array) -> float | int:
    """The lowest value of the data's type; -inf for floats."""
    if data.dtype.kind == "b":
        return 0
    return -np.inf if data.dtype.kind == "f" else code_range(data.dtype)[0]


def mean(total: Array, count: Int64, data: Array) -> Array:
    """`total / count` in the type of `data`; integers are rounded to nearest, halves away from zero."""
    count = np.maximum(count, 1)
    if data.dtype.kind == "f":
        return (total / count.astype(total.dtype)).astype(data.dtype)
    half: Int64 = np.where(total > 0, count // 2, -(count // 2))
    return truncating_divide(total.astype(np.int64) + half, count).astype(data.dtype)


def wide(data: Array) -> np.dtype[np.generic]:
    """The type in which sums of `data` are computed: at least float32, or int64."""
    return np.result_type(data.dtype, np.float32) if data.dtype.kind == "f" else np.dtype(np.int64)


def cells(op: relay.PoolOp, padded: Array, counts: Sequence[int]) -> Iterator[Array]:
    """Yield, for each cell of the window, an array of the elements of `padded` that lie under the cell at each window
    position; `counts` is the number of positions along each spatial axis."""
    sizes, strides, dilation = zip(*op.windows(), strict=True)
    for place in np.ndindex(*sizes):
        yield padded[cell_slices(place, counts, strides, dilation)]


def surrounded(op: relay.PoolOp, data: Array, counts: Sequence[int], value: float) -> Array:
    """Pad the spatial axes of data [n, spatial..., c] with `value`: by the op's padding, and at the end as far as the
    last of `counts` windows along the axis reads."""
    widths: list[tuple[int, int]] = [(0, 0)]
    for size, count, (k, s, d), (before, after) in zip(
        data.shape[1:-1], counts, op.windows(), op.each_padding(), strict=True
    ):
        widths.append((before, max(after, (count - 1) * s + (k - 1) * d + 1 - before - size)))
    return np.pad(data, [*widths, (0, 0)], constant_values=value)


def accumulated(combine: np.ufunc, cells: Iterator[Array], dtype: np.dtype[np.generic]) -> Array:
    """Return the reduction of each window: the arrays that `cells` yields, one for each cell of the window, combined
    elementwise by `combine`, one after the other, in the type `dtype`."""
    result = next(cells).astype(dtype)
    for cell in cells:
        combine(result, cell, out=result)
    return result


def max_pool(op: relay.MaxPoolBase, data: Array) -> Array:
    counts = op.counts(data.shape[1:-1])
    return accumulated(np.maximum, cells(op, surrounded(op, data, counts, lowest(data)), counts), data.dtype)


def avg_pool(op: relay.AvgPoolBase, data: Array) -> Array:
    counts = op.counts(data.shape[1:-1])
    ones = np.ones((1, *data.shape[1:-1], 1), np.int64)
    if op.count_include_pad.value.data:
        ones = np.pad(ones, [(0, 0), *op.each_padding(), (0, 0)], constant_values=1)
        inside = np.zeros(surrounded(op, data[:1, ..., :1], counts, 0).shape, np.int64)
        inside[tuple(slice(0, size) for size in ones.shape)] = 1
    else:
        inside = surrounded(op, ones, counts, 0)
    total = accumulated(np.add, cells(op, surrounded(op, data, counts, 0), counts), wide(data))
    return mean(total, np.add.reduce(list(cells(op, inside, counts))), data)


def global_max_pool(op: relay.GlobalMaxPool2dOp, data: Array) -> Array:
    return data.max(axis=(1, 2), keepdims=True)


def global_avg_pool(op: relay.GlobalAvgPool2dOp, data: Array) -> Array:
    total = data.sum(axis=(1, 2), keepdims=True, dtype=wide(data))
    return mean(total, np.asarray(data.shape[1] * data.shape[2]), data)


def adaptive(op: relay.AdaptivePoolOp, data: Array) -> Array:
    """Adaptive pooling: each window is cut out and reduced separately."""
    wanted = int_values(op.output_size)
    result = np.empty((data.shape[0], *wanted, data.shape[-1]), data.dtype)
    for place in np.ndindex(*wanted):
        sizes = zip(place, wanted, data.shape[1:-1], strict=True)
        window = data[(slice(None), *(slice(i * size // n, -(-(i + 1) * size // n)) for i, n, size in sizes))]
        flat = window.reshape(data.shape[0], -1, data.shape[-1])
        if isinstance(op, relay.AdaptiveMaxBase):
            result[(slice(None), *place)] = flat.max(axis=1)
        else:
            total = flat.sum(axis=1, dtype=wide(data))
            result[(slice(None), *place)] = mean(total, np.asarray(flat.shape[1]), data)
    return result


MEANINGS: Meanings = {
    **dict.fromkeys(ops_of(relay.MaxPoolBase), channels_last(max_pool)),
    **dict.fromkeys(ops_of(relay.AvgPoolBase), channels_last(avg_pool)),
    relay.GlobalMaxPool2dOp: channels_last(global_max_pool),
    relay.GlobalAvgPool2dOp: channels_last(global_avg_pool),
    **dict.fromkeys(ops_of(relay.AdaptivePoolOp), channels_last(adaptive)),
}
