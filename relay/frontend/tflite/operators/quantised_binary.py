"""Imports operators on two quantized tensors other than sums and products."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.op import TensorOp
from relay.frontend.importing.builder import aligned, multiplier_attrs, number, parameters
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, CODES, Node
from relay.frontend.tflite.operators.arithmetic import operands, quantization, with_bounds
from relay.frontend.tflite.table import quantised
from relay.interpreters.arithmetic import quantize_multiplier


def emitted(importer: Importer, node: Node, op: type[TensorOp], properties: dict[str, Attribute]) -> list[SSAValue]:
    """Append an op of class `op` on both inputs of the node, and return its result. Raises Unsupported if the inputs
    have different types."""
    lhs, rhs = node.input(0), node.input(1)
    if lhs.type != rhs.type:
        raise node.refuse_types(lhs, rhs)
    return [importer.call(op, *operands(importer, node), **properties)]


@quantised("DIV", types=ALL_CODES)
def divide(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized DIV; the multiplier is computed in float32."""
    lhs, rhs, out = quantization(node)
    factor = quantize_multiplier(float(lhs.scale / (rhs.scale * out.scale)))
    return emitted(importer, node, qnn.DivideOp, with_bounds(node, lhs, rhs, out) | multiplier_attrs(factor))


@quantised("SQUARED_DIFFERENCE", types=("INT8",))
def squared_difference(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized SQUARED_DIFFERENCE: both operands are shifted left by 7 bits and rescaled to a common scale,
    twice the larger of their scales; the multipliers are computed in double."""
    lhs, rhs, out = quantization(node)
    twice = np.float64(2 * max(lhs.scale, rhs.scale))
    last = float(twice * twice / np.float64(np.float32(1 << 14) * out.scale))
    left, right = (quantize_multiplier(float(np.float64(each.scale) / twice)) for each in (lhs, rhs))
    properties = parameters(lhs=lhs, rhs=rhs, output=out) | {"min": number(out.low), "max": number(out.high)}
    properties |= aligned(7, left, right, quantize_multiplier(last))
    return emitted(importer, node, qnn.SquaredDifferenceOp, properties)


@quantised("PRELU", types=CODES)
def prelu(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized PRELU; both multipliers are computed in float32."""
    source, slope, out = quantization(node)
    kept = quantize_multiplier(float(source.scale / out.scale))
    sloped = quantize_multiplier(float(source.scale * slope.scale / out.scale))
    properties = parameters(input=source, alpha=slope, output=out)
    properties |= multiplier_attrs(kept) | multiplier_attrs(sloped, "alpha_")
    return emitted(importer, node, qnn.PreluOp, properties)


COMPARISONS: dict[str, type[qnn.QnnCompareOp]] = {
    "EQUAL": qnn.EqualOp,
    "NOT_EQUAL": qnn.NotEqualOp,
    "LESS": qnn.LessOp,
    "LESS_EQUAL": qnn.LessEqualOp,
    "GREATER": qnn.GreaterOp,
    "GREATER_EQUAL": qnn.GreaterEqualOp,
}


@quantised("EQUAL", "NOT_EQUAL", types=ALL_CODES)
@quantised("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", types=CODES)
def compare(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a quantized comparison: both operands are shifted left by 8 bits and multiplied by their scales."""
    lhs, rhs = node.codes(node.input(0)), node.codes(node.input(1))
    left, right = (quantize_multiplier(float(each.scale)) for each in (lhs, rhs))
    properties = parameters(lhs=lhs, rhs=rhs) | aligned(8, left, right)
    return emitted(importer, node, COMPARISONS[node.operator.kind], properties)
