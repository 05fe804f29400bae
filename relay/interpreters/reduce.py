"""Numpy implementation of reductions."""

from __future__ import annotations

import math

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.interpreters.elementwise import divide
from relay.interpreters.meaning import Meaning, Meanings


def reduction(function: np.ufunc) -> Meaning:
    """The meaning of an op that combines elements by `function`, in their own type."""

    def meaning(op: relay.ReduceOp, x: Array) -> Array:
        return function.reduce(x, axis=op.axes(), dtype=x.dtype, keepdims=bool(op.keepdims.value.data))

    return meaning


def divided_sum(op: relay.ReducingOp, x: Array, less: int = 0) -> Array:
    """Sum along the op's axes, divided by `count - less`, where `count` is the number of elements in each sum."""
    wide = np.dtype(np.int32) if x.dtype.kind in "iu" and x.dtype.itemsize < 4 else x.dtype
    total = np.add.reduce(x, axis=op.axes(), dtype=wide, keepdims=bool(op.keepdims.value.data))
    count = math.prod(x.shape[axis] for axis in op.axes()) - less
    return divide(np.asarray(total), np.asarray(count, wide)).astype(x.dtype)


def variance(op: relay.VarianceOp, x: Array, mean: Array) -> Array:
    return divided_sum(op, np.square(x - mean), bool(op.unbiased.value.data))


def argmax(op: relay.ArgmaxOp, x: Array) -> Array:
    return np.asarray(x.argmax(op.axes()[0], keepdims=bool(op.keepdims.value.data)), dtype_of(op.dtype))


def argmin(op: relay.ArgminOp, x: Array) -> Array:
    return np.asarray(x.argmin(op.axes()[0], keepdims=bool(op.keepdims.value.data)), dtype_of(op.dtype))


MEANINGS: Meanings = {
    relay.SumOp: reduction(np.add),
    relay.MaxOp: reduction(np.maximum),
    relay.MinOp: reduction(np.minimum),
    relay.ProdOp: reduction(np.multiply),
    relay.AllOp: reduction(np.logical_and),
    relay.AnyOp: reduction(np.logical_or),
    relay.MeanOp: divided_sum,
    relay.VarianceOp: variance,
    relay.ArgmaxOp: argmax,
    relay.ArgminOp: argmin,
}
