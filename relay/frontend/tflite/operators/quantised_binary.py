"""Imports operators on two quantized tensors other than sums and products."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.frontend.importing.builder import multiplier_attrs, number, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.operators.quantised_functions import BYTES, prefixed
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import quantised
from relay.interpreters.arithmetic import quantize_multiplier

TWO = (2, 2)


def operands(importer: Importer, node: Node) -> list[SSAValue]:
    """Both inputs, which must have one type."""
    lhs, rhs = node.input(0), node.input(1)
    if lhs.type != rhs.type:
        raise node.refuse_types(lhs, rhs)
    return [importer.value(lhs), importer.value(rhs)]


def sides(lhs: Codes, rhs: Codes) -> dict[str, Attribute]:
    """The properties with the scales and zero points of both inputs."""
    return {
        "lhs_scale": real(lhs.scale),
        "lhs_zero_point": number(lhs.zero_point),
        "rhs_scale": real(rhs.scale),
        "rhs_zero_point": number(rhs.zero_point),
    }


def target_of(out: Codes, bounds: tuple[int, int]) -> dict[str, Attribute]:
    """The properties with the scale, zero point and bounds of the output."""
    low, high = bounds
    return {
        "output_scale": real(out.scale),
        "output_zero_point": number(out.zero_point),
        "min": number(low),
        "max": number(high),
    }


@quantised("DIV", types=f"{BYTES} INT16", versions=(1, 2), inputs=TWO)
def divide(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized DIV; the multiplier is computed in float32."""
    lhs, rhs, out = (node.codes(tensor) for tensor in (node.input(0), node.input(1), node.output()))
    factor = quantize_multiplier(float(lhs.scale / (rhs.scale * out.scale)))
    properties = sides(lhs, rhs) | target_of(out, node.bounds(out)) | multiplier_attrs(factor)
    return [importer.emit(qnn.DivideOp, operands(importer, node), properties).result]


@quantised("SQUARED_DIFFERENCE", types="INT8", versions=(1, 2), inputs=TWO)
def squared_difference(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized SQUARED_DIFFERENCE: both operands are shifted left by 7 bits and rescaled to a common scale,
    twice the larger of their scales; the multipliers are computed in double."""
    lhs, rhs, out = (node.codes(tensor) for tensor in (node.input(0), node.input(1), node.output()))
    twice = np.float64(2 * max(lhs.scale, rhs.scale))
    last = float(twice * twice / np.float64(np.float32(1 << 14) * out.scale))
    properties = sides(lhs, rhs) | {
        **target_of(out, (out.low, out.high)),
        "left_shift": number(7),
        **prefixed("lhs", float(np.float64(lhs.scale) / twice)),
        **prefixed("rhs", float(np.float64(rhs.scale) / twice)),
        **multiplier_attrs(quantize_multiplier(last)),
    }
    return [importer.emit(qnn.SquaredDifferenceOp, operands(importer, node), properties).result]


@quantised("PRELU", types=BYTES, versions=(1, 1), inputs=TWO)
def prelu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized PRELU; both multipliers are computed in float32."""
    source, slope, out = (node.codes(tensor) for tensor in (node.input(0), node.input(1), node.output()))
    properties: dict[str, Attribute] = {
        "input_scale": real(source.scale),
        "input_zero_point": number(source.zero_point),
        "alpha_scale": real(slope.scale),
        "alpha_zero_point": number(slope.zero_point),
        "output_scale": real(out.scale),
        "output_zero_point": number(out.zero_point),
        **multiplier_attrs(quantize_multiplier(float(source.scale / out.scale))),
        **prefixed("alpha", float(source.scale * slope.scale / out.scale)),
    }
    return [importer.emit(qnn.PreluOp, operands(importer, node), properties).result]


COMPARISONS: dict[str, type[qnn.QnnCompareOp]] = {
    "EQUAL": qnn.EqualOp,
    "NOT_EQUAL": qnn.NotEqualOp,
    "LESS": qnn.LessOp,
    "LESS_EQUAL": qnn.LessEqualOp,
    "GREATER": qnn.GreaterOp,
    "GREATER_EQUAL": qnn.GreaterEqualOp,
}


@quantised("EQUAL", "NOT_EQUAL", types=f"{BYTES} INT16", versions=(1, 5), inputs=TWO)
@quantised("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", types=BYTES, versions=(1, 5), inputs=TWO)
def compare(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a quantized comparison: both operands are shifted left by 8 bits and multiplied by their scales."""
    lhs, rhs = node.codes(node.input(0)), node.codes(node.input(1))
    properties = sides(lhs, rhs) | {
        "left_shift": number(8),
        **prefixed("lhs", float(lhs.scale)),
        **prefixed("rhs", float(rhs.scale)),
    }
    return [importer.emit(COMPARISONS[node.operator.kind], operands(importer, node), properties).result]
