"""Imports operators on one float tensor that become several ops: activations such as PRELU and ELU, normalizations,
log-softmax, L2 pooling."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from relay.dialects.attributes import ints
from relay.dialects.relay import (
    AddOp,
    AvgPool2dOp,
    ClipOp,
    DivideOp,
    Expm1Op,
    GreaterOp,
    L2NormalizeOp,
    LeakyReluOp,
    LogSoftmaxOp,
    LrnOp,
    MultiplyOp,
    PreluOp,
    RoundOp,
    SqrtOp,
    SubtractOp,
    WhereOp,
)
from relay.frontend.importing.builder import real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.scales import window_padding
from relay.frontend.tflite.table import operator
from relay.interpreters.arithmetic import round_away

LEAST_NORM = 1e-6
"""The least norm by which TFLite's L2_NORMALIZATION divides."""


def floats(node: Node, *tensors: Tensor) -> None:
    """Raise Unsupported unless all tensors are floats."""
    if any(tensor.type != "FLOAT32" for tensor in (*tensors, node.output())):
        raise node.refuse_types(*tensors, node.output())


@operator("LEAKY_RELU", versions=(1, 2), inputs=(1, 1))
def leaky_relu(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    floats(node, data)
    return [importer.emit(LeakyReluOp, [importer.value(data)], {"alpha": real(node.real("alpha"))}).result]


@operator("PRELU", versions=(1, 1), inputs=(2, 2))
def prelu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import PRELU: a slope for each channel, or slopes that broadcast."""
    data, alpha = node.input(0), node.input(1)
    floats(node, data, alpha)
    value = importer.value(data)
    if data.shape and alpha.shape[-1:] == data.shape[-1:] and np.prod(alpha.shape[:-1]) == 1:
        return [importer.emit(PreluOp, [value, importer.reshape(importer.value(alpha), data.shape[-1:])]).result]
    negative = importer.emit(MultiplyOp, [value, importer.value(alpha)]).result
    positive = importer.emit(GreaterOp, [value, importer.scalar(0.0, value)]).result
    return [importer.emit(WhereOp, [positive, value, negative]).result]


@operator("ELU", versions=(1, 1), inputs=(1, 1))
def elu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ELU: `x > 0 ? x : exp(x) - 1`."""
    data = node.input(0)
    floats(node, data)
    value = importer.value(data)
    negative = importer.emit(Expm1Op, [value]).result
    positive = importer.emit(GreaterOp, [value, importer.scalar(0.0, value)]).result
    return [importer.emit(WhereOp, [positive, value, negative]).result]


@operator("HARD_SWISH", versions=(1, 1), inputs=(1, 1))
def hard_swish(importer: Importer, node: Node) -> list[SSAValue]:
    """Import HARD_SWISH: `x * clamp(x + 3, 0, 6) / 6`."""
    data = node.input(0)
    floats(node, data)
    value = importer.value(data)
    moved = importer.emit(AddOp, [value, importer.scalar(3.0, value)]).result
    gate = importer.emit(ClipOp, [moved], {"a_min": real(0.0), "a_max": real(6.0)}).result
    product = importer.emit(MultiplyOp, [value, gate]).result
    return [importer.emit(DivideOp, [product, importer.scalar(6.0, value)]).result]


@operator("FAKE_QUANT", versions=(1, 2), inputs=(1, 1))
def fake_quant(importer: Importer, node: Node) -> list[SSAValue]:
    """Import FAKE_QUANT: `round((clamp(x, low, high) - low) / scale) * scale + low`, the floats that quantized values
    of this many bits represent, 0 among them; computed in float32 (TFLite's `fake_quant.h`)."""
    data = node.input(0)
    floats(node, data)
    bits, low, high = node.integer("num_bits"), np.float32(node.real("min")), np.float32(node.real("max"))
    if not (2 <= bits <= 16 and low <= 0 <= high and low < high):
        raise node.malformed(f"codes of {bits} bits from {low} to {high}")
    first, last = np.float32(node.flag("narrow_range")), np.float32((1 << bits) - 1)
    scale = (high - low) / (last - first)
    zero_point = np.clip(np.float32(round_away(np.asarray(first - low / scale))), first, last)
    low, high = (first - zero_point) * scale, (last - zero_point) * scale
    value = importer.value(data)
    bounded = importer.emit(ClipOp, [value], {"a_min": real(low), "a_max": real(high)}).result
    lowest, step = importer.scalar(float(low), value), importer.scalar(float(scale), value)
    moved = importer.emit(SubtractOp, [bounded, lowest]).result
    inverse = importer.scalar(float(np.float32(1) / scale), value)
    codes = importer.emit(RoundOp, [importer.emit(MultiplyOp, [moved, inverse]).result]).result
    reals = importer.emit(MultiplyOp, [codes, step]).result
    return [importer.emit(AddOp, [reals, lowest]).result]


@operator("LOG_SOFTMAX", versions=(1, 2), inputs=(1, 1))
def log_softmax(importer: Importer, node: Node) -> list[SSAValue]:
    """Import LOG_SOFTMAX along the last axis."""
    data = node.input(0)
    floats(node, data)
    return [importer.emit(LogSoftmaxOp, [importer.value(data)]).result]


@operator("L2_NORMALIZATION", versions=(1, 2), inputs=(1, 1))
def l2_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import L2_NORMALIZATION: each row along the last axis divided by its norm."""
    data = node.input(0)
    floats(node, data)
    node.no_activation()
    properties = {"axis": ints([-1]), "eps": real(LEAST_NORM**2)}
    return [importer.emit(L2NormalizeOp, [importer.value(data)], properties).result]


@operator("LOCAL_RESPONSE_NORMALIZATION", versions=(1, 1), inputs=(1, 1))
def local_response_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import LOCAL_RESPONSE_NORMALIZATION: `x / (bias + alpha * the sum of x^2 over the channels up to radius
    away)^beta`."""
    data = node.input(0)
    floats(node, data)
    radius = node.integer("radius")
    channels = node.shape(data, 4)[3]
    if radius < 0 or channels < 1:
        raise node.malformed(f"a radius of {radius} for {channels} channels")
    size = 2 * min(radius, channels - 1) + 1
    properties = {
        "size": IntegerAttr(size, i64),
        "bias": real(node.real("bias")),
        "alpha": real(node.real("alpha") * size),
        "beta": real(node.real("beta")),
    }
    return [importer.emit(LrnOp, [importer.value(data)], properties).result]


@operator("L2_POOL_2D", versions=(1, 1), inputs=(1, 1))
def l2_pool_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import L2_POOL_2D: the square root of the mean of the squares in each window."""
    data = node.input(0)
    floats(node, data)
    pool, strides = node.positive("filter_height", "filter_width"), node.positive("stride_h", "stride_w")
    sizes, padding = node.shape(data, 4)[1:3], node.word("padding")
    (top, bottom), (left, right) = (
        window_padding(padding, *numbers) for numbers in zip(sizes, pool, strides, strict=True)
    )
    value = importer.value(data)
    squares = importer.emit(MultiplyOp, [value, value]).result
    window = {"pool_size": ints(pool), "strides": ints(strides), "padding": ints([top, left, bottom, right])}
    mean = importer.emit(AvgPool2dOp, [squares], window).result
    return [importer.clip_reals(importer.emit(SqrtOp, [mean]).result, node.activation())]
