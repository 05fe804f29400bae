"""Expansions of normalizations at inference to sums, products and roots."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.dialects.op import axis_of, rank, shape, tensor
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions, reduced
from relay.transforms.legalization import is_static


def batch_norm(new: Expansion, op: relay.BatchNormOp) -> SSAValue:
    """relay.nn.batch_norm %x, %g, %b, %m, %v  =>  %x * s + (%b - %m * s), s = %g / sqrt(%v + epsilon)"""
    root = new.value(relay.SqrtOp, new.value(relay.AddOp, op.moving_var, number(new, op.epsilon, op.data)))
    gamma = op.gamma if op.scale.value.data else new.constant_like(1, op.data)
    factor = new.value(relay.DivideOp, gamma, root)
    beta = op.beta if op.center.value.data else new.constant_like(0, op.data)
    offset = new.value(relay.SubtractOp, beta, new.value(relay.MultiplyOp, op.moving_mean, factor))
    axis = axis_of(op.axis.value.data, rank(op.data), op.name)
    product = new.value(relay.MultiplyOp, op.data, channels(new, factor, axis, op.data))
    return new.value(relay.AddOp, product, channels(new, offset, axis, op.data))


def stays(new: Expansion, op: relay.LayerNormOp | relay.RmsNormOp) -> bool:
    """Whether the op stays since the target processes it row by row: static shapes, float32, along the last axis."""
    whole = new.target.takes_rows_in_turn and is_static(op)
    return whole and op.along_last and tensor(op.data).element_type == f32


def layer_norm(new: Expansion, op: relay.LayerNormOp) -> SSAValue | None:
    """relay.nn.layer_norm %x, %g, %b  =>  unchanged where `stays` is true, else the expansion of `norm`"""
    return None if stays(new, op) else norm(new, op)


def rms_norm(new: Expansion, op: relay.RmsNormOp) -> SSAValue | None:
    """relay.nn.rms_norm %x, %g  =>  unchanged where `stays` is true, else %x * rsqrt(mean(%x * %x) + epsilon) * %g"""
    if stays(new, op):
        return None
    square = mean(new, new.value(relay.MultiplyOp, op.data, op.data), (rank(op.data) - 1,))
    factor = new.value(relay.RsqrtOp, new.value(relay.AddOp, square, number(new, op.epsilon, op.data)))
    return new.value(relay.MultiplyOp, new.value(relay.MultiplyOp, op.data, factor), op.gamma)


def norm(new: Expansion, op: relay.NormOp) -> SSAValue:
    """relay.nn.layer_norm, instance_norm, group_norm %x, %g, %b  =>  (%x - mean) / sqrt(var + epsilon) * %g + %b"""
    axes = op.reduced()
    x = new.reshape(op.data, op.shape_of_groups())
    centred = new.value(relay.SubtractOp, x, mean(new, x, axes))
    variance = mean(new, new.value(relay.MultiplyOp, centred, centred), axes)
    root = new.value(relay.SqrtOp, new.value(relay.AddOp, variance, number(new, op.epsilon, op.data)))
    result = new.reshape(new.value(relay.DivideOp, centred, root), shape(op.data))
    if op.scale.value.data:
        result = new.value(relay.MultiplyOp, result, channels(new, op.gamma, op.along, result))
    if op.center.value.data:
        result = new.value(relay.AddOp, result, channels(new, op.beta, op.along, result))
    return result


def l2_normalize(new: Expansion, op: relay.L2NormalizeOp) -> SSAValue:
    """relay.nn.l2_normalize %x  =>  %x / sqrt(max(sum(%x * %x), eps))"""
    total = reduced(new, relay.SumOp, new.value(relay.MultiplyOp, op.data, op.data), op.axes())
    least = new.value(relay.MaximumOp, total, number(new, op.eps, op.data))
    return new.value(relay.DivideOp, op.data, new.value(relay.SqrtOp, least))


def dropout(new: Expansion, op: relay.DropoutOp) -> SSAValue:
    """relay.nn.dropout %x  =>  %x"""
    return op.data


def number(new: Expansion, attr: FloatAttr, like: SSAValue) -> SSAValue:
    """A float property as a constant of the element type of `like`."""
    return new.constant_like(attr.value.data, like)


def channels(new: Expansion, vector: SSAValue, axis: int, x: SSAValue) -> SSAValue:
    """A vector along an axis of x, or a scalar, reshaped so that it broadcasts against x."""
    dims = shape(vector)
    return new.reshape(vector, [*dims, *[1] * (rank(x) - 1 - axis)]) if dims else vector


def mean(new: Expansion, x: SSAValue, axes: tuple[int, ...]) -> SSAValue:
    """The mean of x over the axes: the sum divided by the count."""
    count = np.float64(prod(shape(x)[axis] for axis in axes))
    return new.value(relay.DivideOp, reduced(new, relay.SumOp, x, axes), new.constant_like(count, x))


EXPANSIONS: Expansions = {
    relay.BatchNormOp: batch_norm,
    relay.LayerNormOp: layer_norm,
    relay.RmsNormOp: rms_norm,
    relay.InstanceNormOp: norm,
    relay.GroupNormOp: norm,
    relay.L2NormalizeOp: l2_normalize,
    relay.DropoutOp: dropout,
}
KEPT: frozenset[type[Operation]] = frozenset([relay.LayerNormOp, relay.RmsNormOp])
