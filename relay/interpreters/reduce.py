"""Meaning of the reductions."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.interpreters.meaning import Meanings


def sum_(op: relay.SumOp, x: Array) -> Array:
    return np.add.reduce(x, axis=op.axes(), dtype=x.dtype, keepdims=bool(op.keepdims.value.data))


def max_(op: relay.MaxOp, x: Array) -> Array:
    return np.maximum.reduce(x, axis=op.axes(), keepdims=bool(op.keepdims.value.data))


def min_(op: relay.MinOp, x: Array) -> Array:
    return np.minimum.reduce(x, axis=op.axes(), keepdims=bool(op.keepdims.value.data))


def argmax(op: relay.ArgmaxOp, x: Array) -> Array:
    return np.asarray(x.argmax(op.axes()[0], keepdims=bool(op.keepdims.value.data)), dtype_of(op.dtype))


def argmin(op: relay.ArgminOp, x: Array) -> Array:
    return np.asarray(x.argmin(op.axes()[0], keepdims=bool(op.keepdims.value.data)), dtype_of(op.dtype))


MEANINGS: Meanings = {
    relay.SumOp: sum_,
    relay.MaxOp: max_,
    relay.MinOp: min_,
    relay.ArgmaxOp: argmax,
    relay.ArgminOp: argmin,
}
