"""The pass `signed-codes`, which replaces unsigned 8-bit quantized values by signed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, ModuleOp, StringAttr, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type, scalar_attr, to_numpy
from relay.dialects.op import Origin, TensorOp, is_tensor
from relay.module import is_constant
from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import own

UI8 = element_type(np.dtype(np.uint8))
OFFSET = 128
"""The difference between an unsigned code and its signed counterpart."""

ONE = IntegerAttr(1 << 30, i32), IntegerAttr(1, i32)
"""A multiplier and shift whose factor is 1: 2^30 * 2^(1 - 31)."""
PRODUCT = {"data": "input_zero_point", "kernel": "kernel_zero_point"}
BINARY = {"lhs": "lhs_zero_point", "rhs": "rhs_zero_point"}
ZERO_POINTS: dict[type[TensorOp], dict[str, str]] = {
    qnn.Conv2dOp: PRODUCT,
    qnn.Conv2dTransposeOp: PRODUCT,
    qnn.DenseOp: PRODUCT,
    qnn.AddOp: BINARY,
    qnn.SubtractOp: BINARY,
    qnn.MulOp: BINARY,
    qnn.MeanOp: {"input": "input_zero_point"},
    qnn.SumOp: {"input": "input_zero_point"},
    qnn.RequantizeOp: {"input": "input_zero_point"},
}
"""For ops whose formulas use codes only minus their zero points, the name of each operand's zero point property."""


FIXED_POINT = (StringAttr("tflite"), StringAttr("tflite_single"))
"""Roundings of sums and products of two tensors that depend only on codes minus their zero points; other roundings add
in floats."""


@dataclass(frozen=True)
class SignedCodes(Pass):
    """Replace unsigned 8-bit quantized values by signed ones. Codes and zero points decrease by 128, so that the real
    numbers they stand for do not change. It is for external compilers that multiply only int8; they name it in
    `before_annotation`. Convolutions, products, sums and rescaling get signed operands and results, as do following ops
    that move or select codes; constants are rewritten. Where another op, an argument or a result of the function has
    unsigned codes, a `qnn.requantize` of scale 1 converts them. Ops that would round smaller codes differently stay
    unsigned: average pools, tables, concatenations that rescale, and sums and products that are computed in floats."""

    name: ClassVar[str] = "signed-codes"
    invalidates = ()
    why = "gives compilers that take signed codes only the products of unsigned ones"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        signed: dict[SSAValue, SSAValue] = {}
        for inner in list(own(op)):
            known = type(inner) in ZERO_POINTS or any(value in signed for value in inner.operands)
            if known and isinstance(inner, TensorOp) and changes(inner):
                replace(inner, signed)
        erase_dead(op.walk())


def unsigned(value: SSAValue) -> bool:
    """Whether the value is a tensor of unsigned 8-bit codes."""
    return is_tensor(value.type) and value.type.element_type == UI8


def changes(op: TensorOp) -> bool:
    """Whether the op has unsigned codes that can be made signed."""
    if not any(map(unsigned, (*op.operands, *op.results))) or len(op.results) != 1 or isinstance(op, relay.ConstantOp):
        return False
    if isinstance(op, qnn.RequantizeOp) and (op.multiplier, op.shift) == ONE:
        return False  # the one that this pass puts between
    if type(op) in ZERO_POINTS:
        return ZERO_POINTS[type(op)] is not BINARY or op.properties.get("rounding") in FIXED_POINT
    return op.origin in (Origin.MOVED, Origin.SELECTED) and unsigned(op.results[0])


def replace(op: TensorOp, signed: dict[SSAValue, SSAValue]) -> None:
    """Build the op on signed codes, and convert its result back for users that still need unsigned ones."""
    new = Expansion(op)
    properties = dict[str, Attribute | None](op.properties)
    operands = list(op.operands)
    names = ZERO_POINTS.get(type(op), {})
    for index, value in enumerate(op.operands):
        if unsigned(value) and (value in op.data_operands() or names):
            operands[index] = signed[value] = signed.get(value) or as_signed(new, value)
    for operand, name in names.items():
        if unsigned(getattr(op, operand)):
            properties[name] = less(op.properties[name])
    result = op.results[0]
    if unsigned(result):
        for name in ("output_zero_point", "min", "max", *op.FILLS):
            if name in op.properties:
                properties[name] = less(op.properties[name])
        if "out_dtype" in properties:
            properties["out_dtype"] = i8
    made = new.value(type(op), *operands, properties=properties)
    made.name_hint = result.name_hint
    given = rescaled(new, made, OFFSET, UI8) if unsigned(result) else made
    Rewriter.replace_op(op, new.ops, [given])
    if given is not made:
        signed[given] = made


def less(attr: Attribute) -> Attribute:
    """A zero point, bound or fill value, decreased by 128."""
    number = to_numpy(attr)
    return scalar_attr(int(number) - OFFSET, i8 if number.dtype == np.uint8 else i32)


def as_signed(new: Expansion, value: SSAValue) -> SSAValue:
    """The codes decreased by 128, as signed codes."""
    if isinstance(value.owner, Operation) and is_constant(value.owner):
        return new.constant((to_numpy(value.owner.value).astype(np.int16) - OFFSET).astype(np.int8), np.int8)
    return rescaled(new, value, -OFFSET, i8)


def rescaled(new: Expansion, value: SSAValue, offset: int, type: Attribute) -> SSAValue:
    """`value + offset` as codes of this type."""
    one = FloatAttr(1.0, Float32Type())
    return new.value(
        qnn.RequantizeOp,
        value,
        properties={
            "input_scale": one,
            "input_zero_point": IntegerAttr(0, i32),
            "output_scale": one,
            "output_zero_point": IntegerAttr(offset, i32),
            "multiplier": ONE[0],
            "shift": ONE[1],
            "out_dtype": type,
        },
    )
