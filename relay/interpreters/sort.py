"""The formulas of sorting ops in numpy: sorts are stable, and NaN is the largest value."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.interpreters.meaning import Meanings


def order(op: relay.SortOp | relay.ArgsortOp | relay.TopkOp, x: Array) -> Array:
    """The indices that sort `x` along the op's axis. Ranks among the distinct values replace the values, so that they
    can be negated for a descending order."""
    ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.argsort(ranks if op.is_ascend.value.data else -ranks, op.along, kind="stable")


def sort(op: relay.SortOp, x: Array) -> Array:
    return np.take_along_axis(x, order(op, x), op.along)


def argsort(op: relay.ArgsortOp, x: Array) -> Array:
    return order(op, x).astype(dtype_of(op.dtype))


def topk(op: relay.TopkOp, x: Array) -> tuple[Array, ...]:
    axis = op.along
    first = np.take(order(op, x), range(op.k.value.data), axis)
    found = {"values": np.take_along_axis(x, first, axis), "indices": first.astype(dtype_of(op.dtype))}
    return tuple(array for kind, array in found.items() if op.ret_type.data in (kind, "both"))


MEANINGS: Meanings = {relay.SortOp: sort, relay.ArgsortOp: argsort, relay.TopkOp: topk}
