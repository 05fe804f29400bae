"""Operations on two quantized values: quotients, squared differences, PReLU (whose slopes are the second value) and
comparisons. Sums and products are in `elementwise`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, i1
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.op import TENSOR, Type, broadcast, is_code, require, shape, tensor
from relay.dialects.qnn.elementwise import AlignedOp, CodesOp, QnnAddBase, QnnBinaryOp
from relay.dialects.qnn.parameters import code, parameter


@irdl_op_definition
class DivideOp(QnnBinaryOp):
    """`clamp(rescale(lhs' / rhs') + output_zero_point, min, max)` of codes, `x' = x - zero_point` (TFLite DIV).

    Both lhs' and rhs' change their sign where rhs' is negative. h is the number of redundant sign bits of lhs'; r is
    the mantissa of the reciprocal of rhs' (`relay.fixed_point_reciprocal`), and s is 31 minus its headroom. Then
    `q = SRDHM(lhs' << h, r)`, and the rescaled quotient is `RDBPOT(SRDHM(q, multiplier), h + s - shift)`, with a left
    shift if that amount is negative. Amounts above 31 and a rhs' of 0, which TFLite leaves undefined, give 0.
    """

    name = "qnn.divide"

    def infer(self) -> Sequence[Type]:
        require(is_code(tensor(self.lhs).element_type), f"{self.name}: takes codes")
        return super().infer()


@irdl_op_definition
class SquaredDifferenceOp(QnnAddBase):
    """`clamp(rescale((lhs' - rhs')^2) + output_zero_point, min, max)`, both sides in the common scale of `qnn.add`
    (TFLite SQUARED_DIFFERENCE: left_shift 7)."""

    name = "qnn.squared_difference"


@irdl_op_definition
class PreluOp(CodesOp):
    """With `x' = input - input_zero_point`: `clamp(rescale(x') + output_zero_point)` where x' is not negative, else
    `clamp(rescale(x' * (alpha - alpha_zero_point), alpha_multiplier, alpha_shift) + output_zero_point)`; alpha
    broadcasts (TFLite PRELU)."""

    name = "qnn.prelu"
    INDEPENDENT: ClassVar[slice] = slice(None)
    input = operand_def(TENSOR)
    alpha = operand_def(TENSOR)
    alpha_scale = prop_def(FloatAttr)
    alpha_zero_point = prop_def(IntegerAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    alpha_multiplier = prop_def(IntegerAttr)
    alpha_shift = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        type = code(self, tensor(self.input).element_type)
        require(tensor(self.alpha).element_type == type, f"{self.name}: element types differ")
        for what in ("input_scale", "alpha_scale", "output_scale"):
            parameter(self, self.properties[what], self.input, 0, what)
        for what in ("shift", "alpha_shift"):
            parameter(self, self.properties[what], self.input, 0, "shift")
        return [TensorType(type, broadcast(self.name, shape(self.input), shape(self.alpha)))]


class QnnCompareOp(AlignedOp, ABC):
    """A comparison of codes in one scale: both sides are rescaled to it as `rescale((x - zero_point) << left_shift)`,
    each with the multiplier and shift of its own scale (TFLite: left_shift 8). The result is of `i1`."""

    def infer(self) -> Sequence[Type]:
        (result,) = super().infer()
        for name in ("lhs_shift", "rhs_shift"):
            parameter(self, self.properties[name], self.lhs, 0, "shift")
        return [TensorType(i1, result.get_shape())]


@irdl_op_definition
class EqualOp(QnnCompareOp):
    """Whether both codes stand for equal numbers in the common scale."""

    name = "qnn.equal"


@irdl_op_definition
class NotEqualOp(QnnCompareOp):
    """Whether the codes stand for different numbers in the common scale."""

    name = "qnn.not_equal"


@irdl_op_definition
class LessOp(QnnCompareOp):
    """`lhs < rhs` in the common scale."""

    name = "qnn.less"


@irdl_op_definition
class LessEqualOp(QnnCompareOp):
    """`lhs <= rhs` in the common scale."""

    name = "qnn.less_equal"


@irdl_op_definition
class GreaterOp(QnnCompareOp):
    """`lhs > rhs` in the common scale."""

    name = "qnn.greater"


@irdl_op_definition
class GreaterEqualOp(QnnCompareOp):
    """`lhs >= rhs` in the common scale."""

    name = "qnn.greater_equal"
