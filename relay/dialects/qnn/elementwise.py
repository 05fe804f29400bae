"""Elementwise operations on quantized values: sums, products, functions."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, TensorType, i16
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from relay.dialects.op import TENSOR, OneResultOp, Type, broadcast, is_code, require, shape, tensor
from relay.dialects.qnn.parameters import LITERT, TFLITE, bounds, code, numerics, one_of, parameter
from relay.dialects.relay.fixed_point import ROUNDINGS


class TwoCodesOp(OneResultOp, ABC):
    """An op on codes of two scales and zero points, with broadcasting."""

    ELEMENTWISE: ClassVar[bool] = True
    KNOWN_ROUNDINGS: ClassVar[tuple[str, ...]] = ROUNDINGS
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    lhs_scale = prop_def(FloatAttr)
    lhs_zero_point = prop_def(IntegerAttr)
    rhs_scale = prop_def(FloatAttr)
    rhs_zero_point = prop_def(IntegerAttr)
    rounding = prop_def(StringAttr, default_value=TFLITE)

    def infer(self) -> Sequence[Type]:
        type = code(self, tensor(self.lhs).element_type)
        require(tensor(self.rhs).element_type == type, f"{self.name}: element types differ")
        one_of(self, "rounding", self.rounding, self.KNOWN_ROUNDINGS)
        for name in self.properties:
            if name.endswith("_scale"):
                parameter(self, self.properties[name], self.lhs, 0, name)
        return [TensorType(type, broadcast(self.name, shape(self.lhs), shape(self.rhs)))]


class AlignedOp(TwoCodesOp, ABC):
    """An op that first converts both operands to a common scale: `x' = (x - zero_point) << left_shift`, rescaled by the
    operand's own multiplier and shift."""

    left_shift = prop_def(IntegerAttr)
    lhs_multiplier = prop_def(IntegerAttr)
    lhs_shift = prop_def(IntegerAttr)
    rhs_multiplier = prop_def(IntegerAttr)
    rhs_shift = prop_def(IntegerAttr)


class QnnBinaryOp(TwoCodesOp, ABC):
    """A binary op on codes with broadcasting; both operands have the result's type."""

    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    min = opt_prop_def(IntegerAttr)
    max = opt_prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        (result,), type = super().infer(), tensor(self.lhs).element_type
        if self.rounding.data == "ort":
            require(is_code(type, 8), f'{self.name}: rounding "ort" takes 8-bit codes, not {type}')
        bounds(self, self.min, self.max, type)
        return [result]


class QnnAddBase(AlignedOp, QnnBinaryOp, ABC):
    """With `x' = (x - zero_point) << left_shift` rescaled by each side's multiplier and shift:
    `clamp(rescale(lhs' +- rhs') + output_zero_point, min, max)`."""


@irdl_op_definition
class AddOp(QnnAddBase):
    """Sum of codes (TFLite ADD: left_shift 20 for 8 bits, 15 for 16).

    With `rounding = "ort"`, for 8-bit codes only, the multipliers are not used, and the result is
    `clamp(rint(fma(lhs, a, fma(rhs, b, c))), min, max)` in float32, with a = `lhs_scale / output_scale`, b =
    `rhs_scale / output_scale` and c = `output_zero_point - fma(lhs_zero_point, a, rhs_zero_point * b)`. Source: ONNX
    Runtime QLinearAdd, its AVX2 kernel.
    """

    name = "qnn.add"
    KNOWN_ROUNDINGS: ClassVar[tuple[str, ...]] = (*ROUNDINGS, "ort")


@irdl_op_definition
class SubtractOp(QnnAddBase):
    """Difference of codes (TFLite SUB)."""

    name = "qnn.subtract"


@irdl_op_definition
class MulOp(QnnBinaryOp):
    """`clamp(rescale((lhs - zp) * (rhs - zp)) + output_zero_point, min, max)` (TFLite MUL).

    With `rounding = "ort"`, for 8-bit codes only, the multiplier is not used, and the result is
    `clamp(rint(p * f + output_zero_point), min, max)` in float32, with p = `(lhs - zp) * (rhs - zp)` and f =
    `lhs_scale * rhs_scale / output_scale`. The zero point is added before rounding, so halves are rounded to even
    codes. Source: ONNX Runtime QLinearMul.
    """

    name = "qnn.mul"
    KNOWN_ROUNDINGS: ClassVar[tuple[str, ...]] = (*ROUNDINGS, "ort")


class CodesOp(OneResultOp, ABC):
    """An op from codes of one scale and zero point to codes of another scale and zero point."""

    input = operand_def(TENSOR)
    input_scale = prop_def(FloatAttr)
    input_zero_point = prop_def(IntegerAttr)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)


class QnnUnaryOp(CodesOp, ABC):
    """A function of 8-bit codes: `q = clamp(round(f(scale * (x - zero_point)) / output_scale) + output_zero_point)` in
    float32, where the division is a product with the reciprocal of output_scale, as TFLite builds its 256-entry tables.

    With `numerics = "tflm"`, sigmoid and tanh are computed in TFLite Micro's fixed point, with the output scales 1/256
    and 1/128: `x' = rescale(x - zero_point)` in Q4.27, gemmlowp's function of it in Q0.31, rounded to 8 or 7 bits.

    16-bit codes have zero points 0 and an output scale of 2^-15. The argument `x * m / 2^s`, halves rounded up, selects
    a point between two entries of TFLite's table of the logistic function, which are interpolated linearly
    (`relay.interpreters.tflm`). m and s are 3 and 0 for an input scale of 2^-12 (6 and 0 for tanh of 2^-11), else m is
    `3 * 2^12 * input_scale`, doubled s times until it is above 2^14 - 1/2, and then truncated.
    """

    ELEMENTWISE: ClassVar[bool] = True
    numerics = prop_def(StringAttr, default_value=LITERT)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(
            is_code(type.element_type, 8) or type.element_type == i16,
            f"{self.name}: takes 8- or 16-bit codes, not {type.element_type}",
        )
        numerics(self, self.numerics)
        return [type]


@irdl_op_definition
class SigmoidOp(QnnUnaryOp):
    """Logistic function of codes."""

    name = "qnn.sigmoid"


@irdl_op_definition
class TanhOp(QnnUnaryOp):
    """Hyperbolic tangent of codes."""

    name = "qnn.tanh"
