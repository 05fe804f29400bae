"""Expansion of non-maximum suppression: an `scf.while` that selects the best box of every batch and class per
iteration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects import tensor as tensors
from xdsl.dialects.builtin import FloatAttr, i1, i32
from xdsl.ir import Block, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import TensorOp, shape
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions

NONE = -np.inf
"""The score of a box that is not a candidate."""


def non_max_suppression(new: Expansion, op: relay.NonMaxSuppressionOp) -> Sequence[SSAValue]:
    """relay.vision.non_max_suppression %b, %s  =>  scf.while (%scores, %indices, %count, %best, %score, %step)"""
    (batch, classes, boxes), most = shape(op.scores), op.max_output_size.value.data
    if 0 in (batch, classes, boxes, most):
        return [new.constant(np.zeros(shape(result), np.int32), np.int32) for result in op.results]
    planes = [new.reshape(new.sliced(op.boxes, -1, n, n + 1), [batch, 1, boxes]) for n in range(4)]
    ends = [
        _two(new, kind, a, b)
        for kind in (relay.MinimumOp, relay.MaximumOp) for a, b in zip(planes[:2], planes[2:], strict=True)
    ]  # fmt: skip
    areas = _area(new, ends)
    first = new.constant((np.arange(batch) * boxes)[:, None], np.int32)
    none = new.constant(NONE, np.float32)
    chosen = _above(new, op.scores, op.score_threshold)
    scores = new.value(relay.WhereOp, chosen, op.scores, none)
    zeros = [new.constant(np.zeros(shape(result), np.int32), np.int32) for result in op.results]
    states = [scores, *zeros, *_best(new, scores), new.constant(0, np.int32)]
    before, after = (Block(arg_types=[each.type for each in states]) for _ in range(2))
    outer, new.ops = new.ops, []

    *_, top, step = before.args
    more = _above(new, new.value(relay.MaxOp, top, properties={"axis": ints([0, 1])}), NONE)
    go = _two(new, relay.LogicalAndOp, more, _two(new, relay.LessOp, step, new.constant(most, np.int32)))
    before.add_ops(new.ops)
    before.add_op(here := tensors.ExtractOp(go, [], i1))
    before.add_op(scf.ConditionOp(here.result, *before.args))

    new.ops = []
    scores, indices, count, best, top, step = after.args
    place = _two(new, relay.AddOp, best, first)
    own = [new.reshape(_two(new, relay.TakeOp, each, place), [batch, classes, 1]) for each in ends]
    limits = (relay.MaximumOp, relay.MaximumOp, relay.MinimumOp, relay.MinimumOp)
    common = [_two(new, kind, a, b) for kind, a, b in zip(limits, own, ends, strict=True)]
    shared = _area(new, common, least=0.0)
    size = _area(new, own)
    union = _two(new, relay.SubtractOp, _two(new, relay.AddOp, size, areas), shared)
    there = _two(new, relay.LogicalAndOp, *(_above(new, each, 0.0) for each in (size, areas)))
    overlap = new.value(relay.WhereOp, there, _two(new, relay.DivideOp, shared, union), new.constant(0.0, np.float32))
    itself = _two(new, relay.EqualOp, new.reshape(best, [batch, classes, 1]), new.constant(np.arange(boxes), np.int32))
    gone = _two(new, relay.LogicalOrOp, _above(new, overlap, op.iou_threshold), itself)
    rest = new.value(relay.WhereOp, gone, none, scores)
    live = _above(new, top, NONE)
    here = _two(new, relay.EqualOp, step, new.constant(np.arange(most), np.int32))
    here = _two(new, relay.LogicalAndOp, here, new.reshape(live, [batch, classes, 1]))
    indices = new.value(relay.WhereOp, here, new.reshape(best, [batch, classes, 1]), indices)
    count = _two(new, relay.AddOp, count, new.cast(live, i32))
    following = [rest, indices, count, *_best(new, rest), new.plus(step, 1)]
    after.add_ops(new.ops)
    after.add_op(scf.YieldOp(*following))
    new.ops = outer
    loop = scf.WhileOp(states, [each.type for each in states], [before], [after])
    loop.location = op.location
    new.ops.append(loop)
    return loop.results[1:3]


def _two(new: Expansion, kind: type[TensorOp], a: SSAValue, b: SSAValue) -> SSAValue:
    return new.value(kind, a, b)


def _above(new: Expansion, x: SSAValue, bound: FloatAttr | float) -> SSAValue:
    """`x > bound`, elementwise."""
    number = bound.value.data if isinstance(bound, FloatAttr) else bound
    return new.value(relay.GreaterOp, x, new.constant_like(number, x))


def _area(new: Expansion, corners: Sequence[SSAValue], least: float | None = None) -> SSAValue:
    """Height times width of the boxes, each side at least `least`."""
    sides = [_two(new, relay.SubtractOp, high, low) for low, high in zip(corners[:2], corners[2:], strict=True)]
    if least is not None:
        sides = [_two(new, relay.MaximumOp, side, new.constant_like(least, side)) for side in sides]
    return _two(new, relay.MultiplyOp, *sides)


def _best(new: Expansion, scores: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The index of the first largest element along the last axis, and its value."""
    best = new.value(relay.ArgmaxOp, scores, properties={"axis": ints([2])})
    return new.cast(best, i32), new.value(relay.MaxOp, scores, properties={"axis": ints([2])})


EXPANSIONS: Expansions = {relay.NonMaxSuppressionOp: non_max_suppression}
