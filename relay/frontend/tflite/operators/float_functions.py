"""Imports operators on one float tensor that become several ops: activations such as PRELU and ELU, normalizations,
L2 pooling."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects.relay import (
    AddOp,
    AvgPool2dOp,
    DivideOp,
    Expm1Op,
    GreaterOp,
    L2NormalizeOp,
    LeakyReluOp,
    LrnOp,
    MultiplyOp,
    PreluOp,
    RoundOp,
    SqrtOp,
    SubtractOp,
    WhereOp,
)
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.operators.convolution import strides_and_padding
from relay.frontend.tflite.table import operator
from relay.interpreters.arithmetic import round_away

LEAST_NORM = 1e-6
"""The least norm by which TFLite's L2_NORMALIZATION divides."""


@operator("LEAKY_RELU", versions=(1, 2), inputs=(1, 1))
def leaky_relu(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    node.one_type(FLOATS)
    return [importer.call(LeakyReluOp, importer.value(data), alpha=node.real("alpha"))]


@operator("PRELU", versions=(1, 1), inputs=(2, 2))
def prelu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import PRELU: a slope for each channel, or slopes that broadcast."""
    data, alpha = node.input(0), node.input(1)
    node.one_type(FLOATS)
    value = importer.value(data)
    if data.shape and alpha.shape[-1:] == data.shape[-1:] and np.prod(alpha.shape[:-1]) == 1:
        return [importer.call(PreluOp, value, importer.reshape(importer.value(alpha), data.shape[-1:]))]
    negative = importer.call(MultiplyOp, value, importer.value(alpha))
    positive = importer.call(GreaterOp, value, importer.scalar(0.0, value))
    return [importer.call(WhereOp, positive, value, negative)]


@operator("ELU", versions=(1, 1), inputs=(1, 1))
def elu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ELU: `x > 0 ? x : exp(x) - 1`."""
    data = node.input(0)
    node.one_type(FLOATS)
    value = importer.value(data)
    negative = importer.call(Expm1Op, value)
    positive = importer.call(GreaterOp, value, importer.scalar(0.0, value))
    return [importer.call(WhereOp, positive, value, negative)]


@operator("HARD_SWISH", versions=(1, 1), inputs=(1, 1))
def hard_swish(importer: Importer, node: Node) -> list[SSAValue]:
    """Import HARD_SWISH: `x * clamp(x + 3, 0, 6) / 6`."""
    data = node.input(0)
    node.one_type(FLOATS)
    value = importer.value(data)
    moved = importer.call(AddOp, value, importer.scalar(3.0, value))
    gate = importer.clip(moved, 0.0, 6.0)
    product = importer.call(MultiplyOp, value, gate)
    return [importer.call(DivideOp, product, importer.scalar(6.0, value))]


@operator("FAKE_QUANT", versions=(1, 2), inputs=(1, 1))
def fake_quant(importer: Importer, node: Node) -> list[SSAValue]:
    """Import FAKE_QUANT: `round((clamp(x, low, high) - low) / scale) * scale + low`, the floats that quantized values
    of this many bits represent, 0 among them; computed in float32 (TFLite's `fake_quant.h`)."""
    data = node.input(0)
    node.one_type(FLOATS)
    bits, low, high = node.integer("num_bits"), np.float32(node.real("min")), np.float32(node.real("max"))
    if not (2 <= bits <= 16 and low <= 0 <= high and low < high):
        raise node.malformed(f"codes of {bits} bits from {low} to {high}")
    first, last = np.float32(node.flag("narrow_range")), np.float32((1 << bits) - 1)
    scale = (high - low) / (last - first)
    zero_point = np.clip(np.float32(round_away(np.asarray(first - low / scale))), first, last)
    low, high = (first - zero_point) * scale, (last - zero_point) * scale
    value = importer.value(data)
    bounded = importer.clip(value, float(low), float(high))
    lowest, step = importer.scalar(float(low), value), importer.scalar(float(scale), value)
    moved = importer.call(SubtractOp, bounded, lowest)
    inverse = importer.scalar(float(np.float32(1) / scale), value)
    codes = importer.call(RoundOp, importer.call(MultiplyOp, moved, inverse))
    reals = importer.call(MultiplyOp, codes, step)
    return [importer.call(AddOp, reals, lowest)]


@operator("L2_NORMALIZATION", versions=(1, 2), inputs=(1, 1))
def l2_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import L2_NORMALIZATION: each row along the last axis divided by its norm."""
    data = node.input(0)
    node.one_type(FLOATS)
    node.no_activation()
    return [importer.call(L2NormalizeOp, importer.value(data), axis=[-1], eps=LEAST_NORM**2)]


@operator("LOCAL_RESPONSE_NORMALIZATION", versions=(1, 1), inputs=(1, 1))
def local_response_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import LOCAL_RESPONSE_NORMALIZATION: `x / (bias + alpha * the sum of x^2 over the channels up to radius
    away)^beta`."""
    data = node.input(0)
    node.one_type(FLOATS)
    radius = node.integer("radius")
    channels = node.shape(data, 4)[3]
    if radius < 0 or channels < 1:
        raise node.malformed(f"a radius of {radius} for {channels} channels")
    size = 2 * min(radius, channels - 1) + 1
    bias, alpha, beta = (node.real(name) for name in ("bias", "alpha", "beta"))
    return [importer.call(LrnOp, importer.value(data), size=size, bias=bias, alpha=alpha * size, beta=beta)]


@operator("L2_POOL_2D", versions=(1, 1), inputs=(1, 1))
def l2_pool_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import L2_POOL_2D: the square root of the mean of the squares in each window."""
    data = node.input(0)
    node.one_type(FLOATS)
    pool, strides = node.positive("filter_height", "filter_width"), node.positive("stride_h", "stride_w")
    properties = strides_and_padding(node, node.shape(data, 4)[1:3], pool, strides)
    value = importer.value(data)
    squares = importer.call(MultiplyOp, value, value)
    mean = importer.call(AvgPool2dOp, squares, pool_size=pool, **properties)
    return [importer.clip_reals(importer.call(SqrtOp, mean), node.activation())]
