"""Imports arithmetic of two tensors."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.op import TensorOp
from relay.dialects.relay import AddOp, BinaryOp, DivideOp, FloorDivideOp, MaximumOp, MinimumOp, MultiplyOp, SubtractOp
from relay.frontend.importing.builder import aligned, aligned_sum, multiplier_attrs, number, parameters
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, NUMBERS, Node
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import EVERYWHERE, operator
from relay.interpreters.arithmetic import quantize_multiplier

PLAIN = (*NUMBERS, "INT8", "INT16")
_LEFT_SHIFT = {"INT8": 20, "UINT8": 20, "INT16": 15}


_SUMS: dict[str, tuple[type[BinaryOp], type[TensorOp]]] = {
    "ADD": (AddOp, qnn.AddOp),
    "SUB": (SubtractOp, qnn.SubtractOp),
}


@operator(*_SUMS, versions=(1, 5), inputs=(2, 2), known={"tflm": "INT8"})
def sum_(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ADD and SUB. Quantized: both operands are shifted left by 20 bits (16-bit types: 15) and rescaled to a
    common scale, twice the larger of their scales; the sum is rescaled to the output's scale. The multipliers are
    computed in double."""
    plain, quantised = _SUMS[node.operator.kind]
    if operand_type(node) not in ALL_CODES:
        return [_plain(importer, node, plain)]
    lhs, rhs, out = quantization(node)
    properties = with_bounds(node, lhs, rhs, out)
    if node.flag("pot_scale_int16") and node.output().type == "INT16":
        powers = [power for codes in (lhs, rhs, out) if (power := _power_of_two(codes.scale)) is not None]
        if len(powers) == 3:
            properties |= _shifted(node, *powers)
            return [importer.call(quantised, *operands(importer, node), **properties)]
    properties |= aligned_sum(lhs, rhs, out, _LEFT_SHIFT[node.output().type])
    if quantised is qnn.AddOp:
        properties |= importer.numerics.of_pairs(node.output().type)
    return [importer.call(quantised, *operands(importer, node), **properties)]


def _power_of_two(scale: np.float32) -> int | None:
    """The exponent of a scale that is a power of two up to rounding, else None (CheckedLog2)."""
    exponent = float(np.float32(np.log(scale)) * (np.float32(1) / np.float32(np.log(np.float32(2)))))
    return round(exponent) if abs(exponent - round(exponent)) < np.float32(1e-3) else None


def _shifted(node: Node, lhs: int, rhs: int, out: int) -> dict[str, Attribute]:
    """The properties for scales `2^lhs`, `2^rhs` and `2^out`: the operand with the result's scale is used unchanged,
    and the other is shifted right with halves away from zero. A multiplier of 2^31 - 1 leaves values unchanged."""
    shifts = lhs - out, rhs - out
    if max(shifts) != 0 or min(shifts) < -15:
        raise node.unsupported(
            f"with pot_scale_int16, scales of 2^{lhs} and 2^{rhs} for a result of 2^{out}",
            "one operand must have the result's scale, and the other a smaller one",
        )
    if node.input(0).shape != node.input(1).shape and min(shifts):
        raise node.unsupported(
            f"with pot_scale_int16, shapes {node.input(0).shape} and {node.input(1).shape} of two scales",
            "make pot_scale_int16 false, or both operands one shape",
        )
    return aligned(0, *(((1 << 31) - 1, shift) for shift in (*shifts, 0)))


@operator("MUL", versions=(1, 7), inputs=(2, 2), known={"tflm": "INT8"})
def multiply(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MUL. Quantized: the multiplier is computed in float32, for TFLM in double."""
    if operand_type(node) not in ALL_CODES:
        return [_plain(importer, node, MultiplyOp)]
    lhs, rhs, out = quantization(node)
    real_type = importer.numerics.factors
    multiplier = quantize_multiplier(float(real_type(lhs.scale) * real_type(rhs.scale) / real_type(out.scale)))
    properties = with_bounds(node, lhs, rhs, out) | multiplier_attrs(multiplier)
    properties |= importer.numerics.of_pairs(node.output().type)
    return [importer.call(qnn.MulOp, *operands(importer, node), **properties)]


@operator("SQUARED_DIFFERENCE", versions=(1, 2), inputs=(2, 2))
def squared_difference(importer: Importer, node: Node) -> list[SSAValue]:
    difference = _plain(importer, node, SubtractOp)
    return [importer.call(MultiplyOp, difference, difference)]


_QUOTIENTS: dict[str, type[BinaryOp]] = {"DIV": DivideOp, "FLOOR_DIV": FloorDivideOp}


@operator("DIV", versions=(1, 2), inputs=(2, 2))
@operator("FLOOR_DIV", versions=(1, 3), inputs=(2, 2))
def divide(importer: Importer, node: Node) -> list[SSAValue]:
    return [_plain(importer, node, _QUOTIENTS[node.operator.kind])]


@operator("MAXIMUM", "MINIMUM", versions=(1, 4), inputs=(2, 2), known=EVERYWHERE)
def extreme(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MAXIMUM and MINIMUM; the scales and zero points of quantized operands must agree."""
    op = MaximumOp if node.operator.kind == "MAXIMUM" else MinimumOp
    if operand_type(node) in ALL_CODES:
        node.same_codes(node.input(0), node.input(1), node.output())
        return [importer.call(op, *operands(importer, node))]
    return [_plain(importer, node, op)]


def _plain(importer: Importer, node: Node, op: type[BinaryOp]) -> SSAValue:
    """An op on floats, INT32 or INT64, followed by the fused activation; FLOOR_DIV also accepts INT8 and INT16, which
    it divides as plain integers."""
    type = operand_type(node)
    if type not in (PLAIN if op is FloorDivideOp else NUMBERS):
        raise node.refuse_types(node.input(0), node.input(1))
    result = importer.call(op, *operands(importer, node))
    activation = node.activation() if "fused_activation_function" in node.operator.options else "NONE"
    return importer.clip_reals(result, activation) if type == "FLOAT32" else importer.clip_integers(result, activation)


def operand_type(node: Node) -> str:
    """The common type of operands and result. Raises Unsupported if they differ."""
    first = node.input(0).type
    if any(tensor.type != first for tensor in (node.input(1), node.output())):
        raise node.refuse_types(node.input(0), node.input(1), node.output())
    return first


def operands(importer: Importer, node: Node) -> list[SSAValue]:
    return [importer.value(node.input(0)), importer.value(node.input(1))]


def quantization(node: Node) -> tuple[Codes, Codes, Codes]:
    """The quantization of both operands and the result."""
    return node.codes(node.input(0)), node.codes(node.input(1)), node.codes(node.output())


def with_bounds(node: Node, lhs: Codes, rhs: Codes, out: Codes, to_even: bool = False) -> dict[str, Attribute]:
    """The properties with the quantization of operands and result, and the bounds of the fused activation."""
    low, high = node.bounds(out, to_even=to_even)
    return {**parameters(lhs=lhs, rhs=rhs, output=out), "min": number(low), "max": number(high)}
