"""Imports functions of one quantized tensor, and SUM of quantized values."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.relay import NegativeOp
from relay.frontend.importing.builder import multiplier_attrs, number, parameters, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, CODES, Node
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import quantised
from relay.interpreters.arithmetic import INT32_MAX, quantize_multiplier

INT8_INT16 = ("INT8", "INT16")


def scales_of(node: Node) -> tuple[Codes, Codes, dict[str, Attribute]]:
    """The quantization of input and output, which must have one type, and the properties that state it."""
    data, out = node.input(0), node.output()
    if data.type != out.type:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    if data.type == "INT16" and (source.zero_point or target.zero_point):
        raise node.unsupported("16-bit codes with a zero point")
    return source, target, parameters(input=source, output=target)


def table(
    importer: Importer, node: Node, op: type[qnn.QnnFunctionOp], extra: dict[str, Attribute] | None = None
) -> list[SSAValue]:
    _, _, properties = scales_of(node)
    return [importer.call(op, importer.value(node.input(0)), **properties, **(extra or {}))]


@quantised("GELU", types=ALL_CODES)
def gelu(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, qnn.GeluOp, {"approximate": BoolAttr.from_bool(node.flag("approximate"))})


_FUNCTIONS: dict[str, type[qnn.QnnFunctionOp]] = {
    "ELU": qnn.EluOp,
    "EXP": qnn.ExpOp,
    "LOG": qnn.LogOp,
    "SQRT": qnn.SqrtOp,
}


@quantised("ELU", types=("INT8",))
@quantised("EXP", "LOG", "SQRT", types=INT8_INT16)
def function(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, _FUNCTIONS[node.operator.kind])


@quantised("RSQRT", types=INT8_INT16)
def rsqrt(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized RSQRT; the multiplier is `1 / (sqrt(scale) * output scale)`, with the root and the product in
    float32, and the quotient in double."""
    source, target, _ = scales_of(node)
    factor = 1.0 / float(np.sqrt(source.scale) * target.scale)
    return table(importer, node, qnn.RsqrtOp, multiplier_attrs(quantize_multiplier(factor)))


@quantised("ABS", types=INT8_INT16)
def absolute(importer: Importer, node: Node) -> list[SSAValue]:
    source, target, _ = scales_of(node)
    factor = quantize_multiplier(float(source.scale / target.scale))
    return table(importer, node, qnn.AbsOp, multiplier_attrs(factor) if source.scale != target.scale else None)


@quantised("NEG", types=INT8_INT16)
def negative(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized NEG: the quantized values are negated as plain integers, since LiteRT ignores the scales."""
    return [importer.call(NegativeOp, importer.value(node.input(0)))]


@quantised("LEAKY_RELU", types=ALL_CODES)
def leaky_relu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized LEAKY_RELU; both multipliers are computed in float32."""
    source, target, properties = scales_of(node)
    alpha = np.float32(node.real("alpha"))
    kept = quantize_multiplier(float(source.scale / target.scale))
    sloped = quantize_multiplier(float(source.scale * abs(alpha) / target.scale))
    properties |= {"alpha": real(alpha)} | multiplier_attrs(kept) | multiplier_attrs(sloped, "alpha_")
    return [importer.call(qnn.LeakyReluOp, importer.value(node.input(0)), **properties)]


@quantised("HARD_SWISH", types=CODES)
def hard_swish(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized HARD_SWISH; the multipliers are computed in float32, then rounded to 16 bits."""
    source, target, properties = scales_of(node)
    fine = np.float32(1 / 128) * source.scale
    for name, unit in (("output", target.scale), ("relu", np.float32(3) / np.float32(1 << 15))):
        multiplier, shift = quantize_multiplier(float(fine / unit))
        narrow = (1 << 15) - 1 if multiplier >= INT32_MAX - (1 << 15) else (multiplier + (1 << 15)) >> 16
        properties |= multiplier_attrs((narrow, shift), f"{name}_")
        if name == "output" and shift > 0:
            raise node.unsupported(f"the output's scale {target.scale} is below 1/128 of the input's {source.scale}")
    return [importer.call(qnn.HardSwishOp, importer.value(node.input(0)), **properties)]


@quantised("L2_NORMALIZATION", types=CODES)
def l2_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized L2_NORMALIZATION along the last axis."""
    node.no_activation()
    source, target, _ = scales_of(node)
    if not math.isclose(target.scale, 1 / 128) or target.zero_point != target.low + 128:
        raise node.malformed(f"the output's scale and zero point are {target.scale} and {target.zero_point}")
    zero_point = number(source.zero_point)
    return [importer.call(qnn.L2NormalizeOp, importer.value(node.input(0)), input_zero_point=zero_point)]


UNIT = np.float32(1 / (1 << 15))
"""The output scale of 16-bit softmax, logistic and tanh."""


def check_unit(node: Node) -> None:
    """Raise Unsupported unless the output is in Q0.15."""
    _, target, _ = scales_of(node)
    if target.scale != UNIT:
        raise node.malformed(f"the output's scale is {target.scale}, not 2^-15")


@quantised("LOGISTIC", "TANH", types=("INT16",))
def curve(importer: Importer, node: Node) -> list[SSAValue]:
    check_unit(node)
    _, _, properties = scales_of(node)
    op = qnn.SigmoidOp if node.operator.kind == "LOGISTIC" else qnn.TanhOp
    return [importer.call(op, importer.value(node.input(0)), **properties)]


@quantised("SOFTMAX", types=("INT16",))
def softmax(importer: Importer, node: Node) -> list[SSAValue]:
    """Import 16-bit SOFTMAX along the last axis; the product with beta is computed in float32."""
    check_unit(node)
    source, _, _ = scales_of(node)
    beta = np.float32(node.real("beta"))
    if beta <= 0:
        raise node.unsupported(f"beta is {beta}")
    factor = quantize_multiplier(float(np.float64(source.scale * beta) / (10.0 / 65535.0)))
    properties = {"beta": real(beta), "input_scale": real(source.scale), **multiplier_attrs(factor)}
    return [importer.call(qnn.SoftmaxOp, importer.value(node.input(0)), **properties)]


@quantised("SUM", types=ALL_CODES)
def total(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized SUM: a MEAN without the division. LiteRT's reference kernel reads all types as uint8; its
    results for int8 and int16 are wrong and not reproduced."""
    source, target, properties = scales_of(node)
    shape = node.input(0).shape
    axes = node.axes(node.input(1), len(shape))
    if not axes or 0 in shape:
        raise node.unsupported("nothing is reduced")
    factor = quantize_multiplier(float(np.float64(source.scale) / np.float64(target.scale)))
    properties |= multiplier_attrs(factor)
    keepdims = node.flag("keep_dims")
    return [importer.call(qnn.SumOp, importer.value(node.input(0)), axis=axes, keepdims=keepdims, **properties)]
