"""Imports functions of one quantized tensor."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.relay import NegativeOp
from relay.frontend.importing.builder import multiplier_attrs, number, parameters, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import quantised
from relay.interpreters.arithmetic import INT32_MAX, quantize_multiplier

ONE = (1, 1)
BYTES = "INT8 UINT8"


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


@quantised("GELU", types=f"{BYTES} INT16", versions=(1, 2), inputs=ONE)
def gelu(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, qnn.GeluOp, {"approximate": BoolAttr.from_bool(node.flag("approximate"))})


@quantised("ELU", types="INT8", versions=(1, 1), inputs=ONE)
def elu(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, qnn.EluOp)


@quantised("EXP", types="INT8 INT16", versions=(1, 2), inputs=ONE)
def exp(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, qnn.ExpOp)


@quantised("LOG", types="INT8 INT16", versions=(1, 2), inputs=ONE)
def log(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, qnn.LogOp)


@quantised("SQRT", types="INT8 INT16", versions=(1, 2), inputs=ONE)
def sqrt(importer: Importer, node: Node) -> list[SSAValue]:
    return table(importer, node, qnn.SqrtOp)


@quantised("RSQRT", types="INT8 INT16", versions=(1, 3), inputs=ONE)
def rsqrt(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized RSQRT; the multiplier is `1 / (sqrt(scale) * output scale)`, with the root and the product in
    float32, and the quotient in double."""
    source, target, _ = scales_of(node)
    factor = 1.0 / float(np.sqrt(source.scale) * target.scale)
    return table(importer, node, qnn.RsqrtOp, multiplier_attrs(quantize_multiplier(factor)))


@quantised("ABS", types="INT8 INT16", versions=(1, 5), inputs=ONE)
def absolute(importer: Importer, node: Node) -> list[SSAValue]:
    source, target, _ = scales_of(node)
    factor = quantize_multiplier(float(source.scale / target.scale))
    return table(importer, node, qnn.AbsOp, multiplier_attrs(factor) if source.scale != target.scale else None)


@quantised("NEG", types="INT8 INT16", versions=(1, 1), inputs=ONE)
def negative(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized NEG: the quantized values are negated as plain integers, since LiteRT ignores the scales."""
    return [importer.call(NegativeOp, importer.value(node.input(0)))]


@quantised("LEAKY_RELU", types=f"{BYTES} INT16", versions=(1, 2), inputs=ONE)
def leaky_relu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized LEAKY_RELU; both multipliers are computed in float32."""
    source, target, properties = scales_of(node)
    alpha = np.float32(node.real("alpha"))
    kept = quantize_multiplier(float(source.scale / target.scale))
    sloped = quantize_multiplier(float(source.scale * abs(alpha) / target.scale))
    properties |= {"alpha": real(alpha)} | multiplier_attrs(kept) | multiplier_attrs(sloped, "alpha_")
    return [importer.call(qnn.LeakyReluOp, importer.value(node.input(0)), **properties)]


@quantised("HARD_SWISH", types=BYTES, versions=(1, 1), inputs=ONE)
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


@quantised("L2_NORMALIZATION", types=BYTES, versions=(1, 2), inputs=ONE)
def l2_normalization(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized L2_NORMALIZATION along the last axis."""
    node.no_activation()
    source, target, _ = scales_of(node)
    if not math.isclose(target.scale, 1 / 128) or target.zero_point != target.low + 128:
        raise node.malformed(f"the output's scale and zero point are {target.scale} and {target.zero_point}")
    zero_point = number(source.zero_point)
    return [importer.call(qnn.L2NormalizeOp, importer.value(node.input(0)), input_zero_point=zero_point)]
