"""Numpy implementation of ops that read or write elements at positions given by tensors of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.dialects.op import axis_of
from relay.interpreters.meaning import Meanings


def gather(op: relay.GatherOp, x: Array, indices: Array) -> Array:
    axis = op.axis.value.data
    return np.take_along_axis(x, np.clip(indices.astype(np.int64), 0, x.shape[axis] - 1), axis)


def adv_index(op: relay.AdvIndexOp, x: Array, *indices: Array) -> Array:
    clamped = [np.clip(each.astype(np.int64), 0, size - 1) for each, size in zip(indices, x.shape, strict=False)]
    return x[tuple(clamped)]


def reverse_sequence(op: relay.ReverseSequenceOp, x: Array, lengths: Array) -> Array:
    result = x.copy()
    sequence, batch = op.axes()
    rows, given = np.moveaxis(result, (batch, sequence), (0, 1)), np.moveaxis(x, (batch, sequence), (0, 1))
    for number, length in enumerate(np.clip(lengths.astype(np.int64), 0, x.shape[sequence]).tolist()):
        rows[number, :length] = given[number, :length][::-1]
    return result


def scatter(op: relay.ScatterOp | relay.ScatterAddOp, x: Array, indices: Array, updates: Array) -> Array:
    """Apply the updates one after the other along the axis. Negative indices count from the end; updates whose index is
    out of range are skipped."""
    axis = axis_of(op.axis.value.data, x.ndim, op.name)
    result, size = x.copy(), x.shape[axis]
    for place in np.ndindex(indices.shape):
        wanted = int(indices[place])
        wanted += size if wanted < 0 else 0
        if 0 <= wanted < size:
            at = (*place[:axis], wanted, *place[axis + 1 :])
            joined = _JOINED["add" if isinstance(op, relay.ScatterAddOp) else "update"]
            result[at] = joined(result[at], updates[place])
    return result


_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda known, update: update, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
"""How an update is combined with the element that it is applied to."""


def scatter_nd(op: relay.ScatterNdOp, x: Array, indices: Array, updates: Array) -> Array:
    result, count, joined = x.copy(), indices.shape[-1], _JOINED[op.mode.data]
    for place in np.ndindex(indices.shape[:-1]):
        at = tuple(indices[place].tolist())
        if all(0 <= i < size for i, size in zip(at, x.shape[:count], strict=True)):
            result[at] = joined(result[at], updates[place])
    return result


def strided_set(op: relay.StridedSetOp, x: Array, value: Array) -> Array:
    result = x.copy()
    numbers = zip(int_values(op.begin), int_values(op.end), int_values(op.strides), strict=True)
    result[tuple(slice(*bounds) for bounds in numbers)] = value
    return result


def dynamic_update_slice(op: relay.DynamicUpdateSliceOp, x: Array, update: Array, start: Array) -> Array:
    result = x.copy()
    room = np.subtract(x.shape, update.shape)
    first = np.clip(start.astype(np.int64), 0, room)
    result[tuple(slice(at, at + size) for at, size in zip(first.tolist(), update.shape, strict=True))] = update
    return result


def invert_permutation(op: relay.InvertPermutationOp, x: Array) -> Array:
    result = np.zeros_like(x)
    inside = (x >= 0) & (x < x.size)
    result[x[inside].astype(np.int64)] = np.arange(x.size).astype(x.dtype)[inside]
    return result


def unravel_index(op: relay.UnravelIndexOp, indices: Array) -> Array:
    sizes, rest = int_values(op.shape), indices
    found: list[Array] = []
    for size in reversed(sizes):
        found.append(np.remainder(rest, np.asarray(size).astype(indices.dtype)))
        rest = np.floor_divide(rest, np.asarray(size).astype(indices.dtype))
    return np.stack(found[::-1])


MEANINGS: Meanings = {
    relay.GatherOp: gather,
    relay.AdvIndexOp: adv_index,
    relay.ReverseSequenceOp: reverse_sequence,
    relay.ScatterOp: scatter,
    relay.ScatterAddOp: scatter,
    relay.ScatterNdOp: scatter_nd,
    relay.StridedSetOp: strided_set,
    relay.DynamicUpdateSliceOp: dynamic_update_slice,
    relay.InvertPermutationOp: invert_permutation,
    relay.UnravelIndexOp: unravel_index,
}
