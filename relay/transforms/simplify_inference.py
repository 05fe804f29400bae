"""The pass `simplify-inference`, and its patterns, which are part of `legalize` too."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import axis_of, rank, shape
from relay.passes import Pass
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization, own, settle


class BatchNorm(Legalization):
    """relay.nn.batch_norm %x, %g, %b, %m, %v  =>  %x * s + (%b - %m * s), s = %g / sqrt(%v + epsilon)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.BatchNormOp, rewriter: PatternRewriter) -> None:
        new = Expansion(op)
        root = new.value(relay.SqrtOp, new.value(relay.AddOp, op.moving_var, number(new, op.epsilon, op.data)))
        gamma = op.gamma if op.scale.value.data else new.constant_like(1, op.data)
        factor = new.value(relay.DivideOp, gamma, root)
        beta = op.beta if op.center.value.data else new.constant_like(0, op.data)
        offset = new.value(relay.SubtractOp, beta, new.value(relay.MultiplyOp, op.moving_mean, factor))
        axis = axis_of(op.axis.value.data, rank(op.data), op.name)
        product = new.value(relay.MultiplyOp, op.data, channels(new, factor, axis, op.data))
        new.replace(rewriter, new.value(relay.AddOp, product, channels(new, offset, axis, op.data)))


class Norm(Legalization):
    """relay.nn.layer_norm, instance_norm, group_norm %x, %g, %b  =>  (%x - mean) / sqrt(var + epsilon) * %g + %b"""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: relay.LayerNormOp | relay.InstanceNormOp | relay.GroupNormOp, rewriter: PatternRewriter
    ) -> None:
        new, axes = Expansion(op), op.reduced()
        x = new.reshape(op.data, op.shape_of_groups())
        centred = new.value(relay.SubtractOp, x, mean(new, x, axes))
        variance = mean(new, new.value(relay.MultiplyOp, centred, centred), axes)
        root = new.value(relay.SqrtOp, new.value(relay.AddOp, variance, number(new, op.epsilon, op.data)))
        result = new.reshape(new.value(relay.DivideOp, centred, root), shape(op.data))
        if op.scale.value.data:
            result = new.value(relay.MultiplyOp, result, channels(new, op.gamma, op.channel, result))
        if op.center.value.data:
            result = new.value(relay.AddOp, result, channels(new, op.beta, op.channel, result))
        new.replace(rewriter, result)


class L2Normalize(Legalization):
    """relay.nn.l2_normalize %x  =>  %x / sqrt(max(sum(%x * %x), eps))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.L2NormalizeOp, rewriter: PatternRewriter) -> None:
        new = Expansion(op)
        total = summed(new, new.value(relay.MultiplyOp, op.data, op.data), op.axes())
        least = new.value(relay.MaximumOp, total, number(new, op.eps, op.data))
        new.replace(rewriter, new.value(relay.DivideOp, op.data, new.value(relay.SqrtOp, least)))


class Dropout(Legalization):
    """relay.nn.dropout %x  =>  %x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.DropoutOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.data])


def number(new: Expansion, attr: FloatAttr, like: SSAValue) -> SSAValue:
    """A property's number as a constant of a value's element type."""
    return new.constant_like(attr.value.data, like)


def channels(new: Expansion, vector: SSAValue, axis: int, x: SSAValue) -> SSAValue:
    """A vector along an axis of x, or a scalar, shaped so that it broadcasts."""
    dims = shape(vector)
    return new.reshape(vector, [*dims, *[1] * (rank(x) - 1 - axis)]) if dims else vector


def summed(new: Expansion, x: SSAValue, axes: tuple[int, ...]) -> SSAValue:
    """The sum over some axes, which stay as ones."""
    properties = {"axis": ints(axes), "keepdims": IntegerAttr.from_bool(True)}
    return new.value(relay.SumOp, x, properties=properties)


def mean(new: Expansion, x: SSAValue, axes: tuple[int, ...]) -> SSAValue:
    """The sum divided by the count."""
    count = np.float64(prod(shape(x)[axis] for axis in axes))
    return new.value(relay.DivideOp, summed(new, x, axes), new.constant_like(count, x))


PATTERNS: list[type[Legalization]] = [BatchNorm, Norm, L2Normalize, Dropout]
NORMS = (relay.BatchNormOp, relay.NormOp, relay.L2NormalizeOp, relay.DropoutOp)


@dataclass(frozen=True)
class SimplifyInference(Pass):
    """Write normalizations out as sums, products and roots, as inference computes them; dropout goes.

    `batch_norm` becomes a product and a sum per channel, which `fold-scale-axis` takes into weights.
    """

    name: ClassVar[str] = "simplify-inference"
    establishes = ("inference",)
    invalidates = ("folded",)
    why = "writes normalizations out"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(isinstance(inner, NORMS) for inner in own(op))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        settle(op, [pattern() for pattern in PATTERNS])
