"""Numpy implementation of ops that create tensors from properties or positions: constants, ranges, one-hot, cumulative
sums, masks."""

from __future__ import annotations

import math

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values, to_numpy
from relay.dialects.op import shape
from relay.interpreters.meaning import Meanings


def zeros(op: relay.ZerosOp) -> Array:
    return np.zeros(int_values(op.shape), dtype_of(op.dtype))


def ones(op: relay.OnesOp) -> Array:
    return np.ones(int_values(op.shape), dtype_of(op.dtype))


def full(op: relay.FullOp, filler: Array) -> Array:
    return np.full(int_values(op.shape), filler, filler.dtype)


def full_like(op: relay.FullLikeOp, x: Array, filler: Array) -> Array:
    return np.full_like(x, filler)


def arange(op: relay.ArangeOp) -> Array:
    """`start + i * step` for each index i, computed in the result's type."""
    start, step = to_numpy(op.start), to_numpy(op.step)
    (size,) = shape(op.result)
    return np.asarray(start + np.arange(size).astype(start.dtype) * step, start.dtype)


def one_hot(op: relay.OneHotOp, indices: Array, on: Array, off: Array) -> Array:
    hit = indices[..., None].astype(np.int64) == np.arange(op.depth.value.data)
    return np.where(np.moveaxis(hit, -1, op.axis.value.data), on, off)


def made_exclusive(op: relay.CumulativeOp, results: Array, neutral: int) -> Array:
    """The cumulative results. If the op is exclusive, each is replaced by its predecessor along the op's axis, and the
    first by `neutral`."""
    if not op.exclusive.value.data:
        return results
    moved = np.roll(results, 1, op.axis.value.data)
    np.moveaxis(moved, op.axis.value.data, 0)[:1] = neutral
    return moved


def cumsum(op: relay.CumsumOp, x: Array) -> Array:
    return made_exclusive(op, np.cumsum(x, op.axis.value.data, dtype=x.dtype), 0)


def cumprod(op: relay.CumprodOp, x: Array) -> Array:
    return made_exclusive(op, np.cumprod(x, op.axis.value.data, dtype=x.dtype), 1)


def sequence_mask(op: relay.SequenceMaskOp, x: Array, lengths: Array) -> Array:
    result, axis = x.copy(), op.axis.value.data
    for number, length in enumerate(lengths.tolist()):
        np.moveaxis(result, (1 - axis, axis), (0, 1))[number, max(length, 0) :] = to_numpy(op.mask_value)
    return result


def diagonal_places(op: relay.MatrixSetDiagOp) -> tuple[Array, Array]:
    """For each position of a matrix: whether it is on one of the op's diagonals, and the flat index of its element in
    the op's operand `diagonal`."""
    rows, columns = shape(op.input)[-2:]
    low, high = op.diagonals()
    longest = shape(op.diagonal)[-1]
    above, below = op.align.data.split("_")
    inside, at = np.zeros((rows, columns), np.bool_), np.zeros((rows, columns), np.int32)
    for number in range(low, high + 1):
        row, column = max(-number, 0), max(number, 0)
        length = min(rows - row, columns - column)
        right = (above if number >= 0 else below) == "RIGHT"
        start = (high - number) * longest + (longest - length if right else 0)
        steps = np.arange(length)
        inside[row + steps, column + steps] = True
        at[row + steps, column + steps] = start + steps
    return inside, at


def matrix_set_diag(op: relay.MatrixSetDiagOp, x: Array, diagonal: Array) -> Array:
    inside, at = diagonal_places(op)
    flat = diagonal.reshape(*x.shape[:-2], math.prod(diagonal.shape[x.ndim - 2 :]))
    return np.where(inside, flat[..., at], x)


MEANINGS: Meanings = {
    relay.ZerosOp: zeros,
    relay.OnesOp: ones,
    relay.FullOp: full,
    relay.FullLikeOp: full_like,
    relay.ArangeOp: arange,
    relay.OneHotOp: one_hot,
    relay.CumsumOp: cumsum,
    relay.CumprodOp: cumprod,
    relay.SequenceMaskOp: sequence_mask,
    relay.MatrixSetDiagOp: matrix_set_diag,
}
