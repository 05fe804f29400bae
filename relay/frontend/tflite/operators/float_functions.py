"""Imports operators on one float tensor that become several ops: activations such as PRELU and ELU, normalizations,
L2 pooling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing import functions
from relay.frontend.importing.formulas import Scalar
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.operators.convolution import strides_and_padding
from relay.frontend.tflite.table import operator
from relay.interpreters.arithmetic import round_away

LEAST_NORM = 1e-6
"""The least norm by which TFLite's L2_NORMALIZATION divides."""

_FORMULAS: dict[str, Callable[[Scalar, Node], Scalar]] = {
    "ELU": lambda x, n: (x > 0.0).choose(x, x.of(relay.Expm1Op), x),
    "GELU": lambda x, n: x.of(relay.GeluOp, approximate=n.flag("approximate")),
    "HARD_SWISH": lambda x, n: x * (x + 3.0).between(0.0, 6.0) / 6.0,
    "LEAKY_RELU": lambda x, n: x.of(relay.LeakyReluOp, alpha=n.real("alpha")),
    "ROUND": lambda x, n: x.to_even(),
    "SQUARE": lambda x, n: x * x,
}
"""Functions without other operands, by operator."""


@operator("ELU", "HARD_SWISH", "ROUND", "SQUARE", versions=(1, 1), inputs=(1, 1))
@operator("GELU", "LEAKY_RELU", versions=(1, 2), inputs=(1, 1))
def formula(importer: Importer, node: Node) -> list[SSAValue]:
    node.one_type(FLOATS)
    return [_FORMULAS[node.operator.kind](Scalar(importer, importer.value(node.input(0))), node).value]


@operator("PRELU", versions=(1, 1), inputs=(2, 2))
def prelu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import PRELU: a slope for each channel, or slopes that broadcast."""
    data, alpha = node.input(0), node.input(1)
    node.one_type(FLOATS)
    x, slope = importer.value(data), importer.value(alpha)
    if data.shape and alpha.shape[-1:] == data.shape[-1:] and np.prod(alpha.shape[:-1]) == 1:
        return [importer.call(relay.PreluOp, x, importer.reshape(slope, data.shape[-1:]))]
    return [functions.prelu(Scalar(importer, x), Scalar(importer, slope)).value]


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
    bounded = Scalar(importer, importer.value(data)).between(float(low), float(high))
    codes = ((bounded - float(low)) * float(np.float32(1) / scale)).of(relay.RoundOp)
    return [(codes * float(scale) + float(low)).value]


@operator("L2_NORMALIZATION", versions=(1, 2), inputs=(1, 1))
def l2_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import L2_NORMALIZATION: each row along the last axis divided by its norm."""
    data = node.input(0)
    node.one_type(FLOATS)
    node.no_activation()
    return [importer.call(relay.L2NormalizeOp, importer.value(data), axis=[-1], eps=LEAST_NORM**2)]


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
    return [importer.call(relay.LrnOp, importer.value(data), size=size, bias=bias, alpha=alpha * size, beta=beta)]


@operator("L2_POOL_2D", versions=(1, 1), inputs=(1, 1))
def l2_pool_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import L2_POOL_2D: the square root of the mean of the squares in each window."""
    data = node.input(0)
    node.one_type(FLOATS)
    pool, strides = node.positive("filter_height", "filter_width"), node.positive("stride_h", "stride_w")
    properties = strides_and_padding(node, node.shape(data, 4)[1:3], pool, strides)
    x = Scalar(importer, importer.value(data))
    root = (x * x).of(relay.AvgPool2dOp, pool_size=pool, **properties).of(relay.SqrtOp)
    return [importer.clip_reals(root.value, node.activation())]
