"""Expansions of resizing by Relay's rules: weighted sums of `relay.take` along each axis; repetition for whole
factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import rank, shape
from relay.interpreters.meaning import ops_of
from relay.interpreters.resizing import Rule, outside, rule_of, taps
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions, channels_last, finish


def resize(new: Expansion, data: SSAValue, sizes: Sequence[int], rule: Rule) -> SSAValue:
    """Resize the spatial axes of data whose channels are last."""
    beyond = outside(shape(data)[1:-1], sizes, rule)
    for axis, size in enumerate(sizes, 1):
        data = along(new, data, axis, size, rule)
    if not beyond.any():
        return data
    return new.value(relay.WhereOp, new.constant(beyond, np.bool_), new.constant_like(rule.fill, data), data)


def along(new: Expansion, data: SSAValue, axis: int, size: int, rule: Rule) -> SSAValue:
    """Resize one axis: by a weighted sum of takes, by repetition, or not at all if the size is equal."""
    given = shape(data)[axis]
    indices, weights = taps(given, size, rule, axis - 1)
    if rule.method == "nearest_neighbor" or given == 1:
        if np.array_equal(indices[:, 0], np.repeat(np.arange(given), size // given)):
            return repeated(new, data, axis, size // given)
        weights = np.ones((size, 1))
    elif np.array_equal(weights[:, :1], np.ones((size, 1))):
        weights = np.ones((size, 1))

    def part(n: int) -> SSAValue:
        places = new.constant(indices[:, n], np.int32)
        taken = new.value(relay.TakeOp, data, places, properties={"axis": IntegerAttr(axis, i64)})
        if weights.shape[1] == 1:
            return taken
        return new.times(taken, weights[:, n].reshape(-1, *[1] * (rank(data) - 1 - axis)))

    return new.total(map(part, range(weights.shape[1])))


def repeated(new: Expansion, data: SSAValue, axis: int, times: int) -> SSAValue:
    """Repeat each element along an axis `times` times."""
    if times == 1:
        return data
    dims = shape(data)
    single = new.reshape(data, [*dims[: axis + 1], 1, *dims[axis + 1 :]])
    wanted = [*dims[: axis + 1], times, *dims[axis + 1 :]]
    return new.reshape(new.broadcast(single, wanted), [*dims[:axis], dims[axis] * times, *dims[axis + 1 :]])


def spatial(new: Expansion, op: relay.ResizeOp | relay.UpsampleOp | relay.Resize2dOp) -> SSAValue:
    """relay.image.resize3d, relay.nn.upsampling %x  =>  for each axis relay.take of %x, times weights, added"""
    sizes = op.axes.sizes(shape(op.result))
    data = resize(new, channels_last(new, op), [sizes[letter] for letter in op.SPATIAL], rule_of(op))
    return finish(new, op, data)


def resize2d(new: Expansion, op: relay.Resize2dOp) -> SSAValue | None:
    """relay.image.resize2d %x  =>  for each axis relay.take of %x, times weights, added; unchanged unless the op has a
    `coordinate_transformation_mode`"""
    return None if op.coordinate_transformation_mode is None else spatial(new, op)


EXPANSIONS: Expansions = {
    relay.Resize2dOp: resize2d,
    **dict.fromkeys(ops_of(relay.ResizeOp), spatial),
    **dict.fromkeys(ops_of(relay.UpsampleOp), spatial),
}
