"""Elementwise ops. Binary ones broadcast as numpy does. `iN` is signed, `uiN` unsigned; integers wrap."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, ReducedPrecisionFloatType, TensorType, UnitAttr, i1
from xdsl.ir import Attribute, SSAValue, TypedAttribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from relay.dialects.attributes import dtype_of
from relay.dialects.element_types import ranked_type
from relay.dialects.op import TENSOR, OneResultOp, Origin, Type, broadcast, is_integer, require, shape, tensor


class UnaryOp(OneResultOp, ABC):
    """`result[i] = f(input[i])`; the result has the input's type."""

    ELEMENTWISE: ClassVar[bool] = True
    FLOAT_ONLY: ClassVar[bool] = True
    BOOLEANS: ClassVar[bool] = True
    input = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(
            self.BOOLEANS or type.element_type != i1,
            f"{self.name}: takes numbers, not {type.element_type}; cast them first",
        )
        require(
            not self.FLOAT_ONLY or isinstance(type.element_type, AnyFloat),
            f"{self.name}: takes floats, not {type.element_type}",
        )
        return [type]


class BinaryOp(OneResultOp, ABC):
    """`result[i] = f(lhs[i], rhs[i])` with numpy broadcasting; both operands have one element type."""

    ELEMENTWISE: ClassVar[bool] = True
    INTEGER_ONLY: ClassVar[bool] = False
    BOOLEANS: ClassVar[bool] = True
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)

    def element(self) -> Attribute:
        lhs, rhs = tensor(self.lhs).element_type, tensor(self.rhs).element_type
        require(lhs == rhs, f"{self.name}: element types differ: {lhs} and {rhs}")
        require(not self.INTEGER_ONLY or is_integer(lhs), f"{self.name}: takes integers, not {lhs}")
        require(self.BOOLEANS or lhs != i1, f"{self.name}: takes numbers, not {lhs}; cast them first")
        return lhs

    def infer(self) -> Sequence[Type]:
        return [ranked_type(self.element(), broadcast(self.name, shape(self.lhs), shape(self.rhs)))]


class CompareOp(BinaryOp, ABC):
    """A `BinaryOp` to booleans (`i1`)."""

    def infer(self) -> Sequence[Type]:
        self.element()
        return [ranked_type(i1, broadcast(self.name, shape(self.lhs), shape(self.rhs)))]


@irdl_op_definition
class AddOp(BinaryOp):
    """`lhs + rhs`."""

    name = "relay.add"
    BOOLEANS: ClassVar[bool] = False


@irdl_op_definition
class SubtractOp(BinaryOp):
    """`lhs - rhs`."""

    name = "relay.subtract"
    BOOLEANS: ClassVar[bool] = False


@irdl_op_definition
class MultiplyOp(BinaryOp):
    """`lhs * rhs`."""

    name = "relay.multiply"


@irdl_op_definition
class DivideOp(BinaryOp):
    """`lhs / rhs`; integers truncate towards zero, and a zero divisor gives 0."""

    name = "relay.divide"


@irdl_op_definition
class FloorDivideOp(BinaryOp):
    """`floor(lhs / rhs)`; an integer zero divisor gives 0."""

    name = "relay.floor_divide"


@irdl_op_definition
class MaximumOp(BinaryOp):
    """`max(lhs, rhs)`; NaN if one of them is NaN."""

    name = "relay.maximum"
    ORIGIN: ClassVar[Origin] = Origin.SELECTED


@irdl_op_definition
class MinimumOp(BinaryOp):
    """`min(lhs, rhs)`; NaN if one of them is NaN."""

    name = "relay.minimum"
    ORIGIN: ClassVar[Origin] = Origin.SELECTED


@irdl_op_definition
class LeftShiftOp(BinaryOp):
    """`lhs << rhs`, 0 <= rhs < bits."""

    name = "relay.left_shift"
    BOOLEANS: ClassVar[bool] = False
    INTEGER_ONLY: ClassVar[bool] = True


@irdl_op_definition
class RightShiftOp(BinaryOp):
    """`lhs >> rhs`, arithmetic for signed types, 0 <= rhs < bits."""

    name = "relay.right_shift"
    BOOLEANS: ClassVar[bool] = False
    INTEGER_ONLY: ClassVar[bool] = True


@irdl_op_definition
class EqualOp(CompareOp):
    """`lhs == rhs`."""

    name = "relay.equal"


@irdl_op_definition
class GreaterOp(CompareOp):
    """`lhs > rhs`."""

    name = "relay.greater"


@irdl_op_definition
class LessOp(CompareOp):
    """`lhs < rhs`."""

    name = "relay.less"


@irdl_op_definition
class WhereOp(OneResultOp):
    """`condition[i] ? lhs[i] : rhs[i]`, with broadcasting."""

    name = "relay.where"
    ELEMENTWISE: ClassVar[bool] = True
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("condition",)
    condition = operand_def(TENSOR)
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        lhs, rhs = tensor(self.lhs).element_type, tensor(self.rhs).element_type
        require(tensor(self.condition).element_type == i1, "relay.where: the condition must be i1")
        require(lhs == rhs, f"relay.where: element types differ: {lhs} and {rhs}")
        return [TensorType(lhs, broadcast(self.name, shape(self.condition), shape(self.lhs), shape(self.rhs)))]

    def broadcast_operands(self) -> tuple[SSAValue, ...]:
        return tuple(self.operands)


@irdl_op_definition
class NegativeOp(UnaryOp):
    """`-x`."""

    name = "relay.negative"
    BOOLEANS: ClassVar[bool] = False
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class AbsOp(UnaryOp):
    """`|x|`; the smallest integer stays itself."""

    name = "relay.abs"
    FLOAT_ONLY: ClassVar[bool] = False


@irdl_op_definition
class SqrtOp(UnaryOp):
    """`x ** 0.5`; NaN below 0."""

    name = "relay.sqrt"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """`1 / sqrt(x)`."""

    name = "relay.rsqrt"


@irdl_op_definition
class ExpOp(UnaryOp):
    """`e**x`."""

    name = "relay.exp"


@irdl_op_definition
class LogOp(UnaryOp):
    """`ln(x)`; minus infinity at 0, NaN below."""

    name = "relay.log"


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """`1 / (1 + exp(-x))`."""

    name = "relay.sigmoid"


@irdl_op_definition
class TanhOp(UnaryOp):
    """`(e**x - e**-x) / (e**x + e**-x)`."""

    name = "relay.tanh"


@irdl_op_definition
class RoundOp(UnaryOp):
    """`sign(x) * floor(|x| + 1/2)`: the nearest integer, halves away from zero (C `round`, TFLite `TfLiteRound`)."""

    name = "relay.round"


@irdl_op_definition
class FloorOp(UnaryOp):
    """`floor(x)`: the largest integer not above x."""

    name = "relay.floor"


@irdl_op_definition
class CeilOp(UnaryOp):
    """`ceil(x)`: the smallest integer not below x."""

    name = "relay.ceil"


@irdl_op_definition
class ClipOp(OneResultOp):
    """`min(max(x, a_min), a_max)`; the bounds have the element type."""

    name = "relay.clip"
    ELEMENTWISE: ClassVar[bool] = True
    ORIGIN: ClassVar[Origin] = Origin.SELECTED
    FILLS: ClassVar[tuple[str, ...]] = ("a_min", "a_max")
    input = operand_def(TENSOR)
    a_min = prop_def(TypedAttribute)
    a_max = prop_def(TypedAttribute)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        for bound in (self.a_min, self.a_max):
            require(bound.get_type() == type.element_type, f"relay.clip: bound {bound} is not of {type.element_type}")
        return [type]


@irdl_op_definition
class CastOp(OneResultOp):
    """Convert the elements to `dtype`: integers wrap, floats truncate towards zero (out of range: undefined).

    To i1: `x != 0`. To a float: each number is rounded once, halves to even. What rounds beyond the largest finite
    number becomes infinity; NaN where the type has no infinity (`f8E4M3FN`, the FNUZ ones); the largest number where it
    has neither (`f6`, `f4`), and there NaN becomes a zero of the other sign. Numbers become the same as by upstream's
    `arith.truncf`, NaNs the same as by `ml_dtypes`. With `saturate`, only for floats of 8 bits and less, values beyond
    the range and infinities become the largest finite number of their sign: ONNX's `Cast` unless `saturate=0`."""

    name = "relay.cast"
    ELEMENTWISE: ClassVar[bool] = True
    input = operand_def(TENSOR)
    dtype = prop_def(Attribute)
    saturate = opt_prop_def(UnitAttr)

    def infer(self) -> Sequence[Type]:
        dtype_of(self.dtype)
        small = isinstance(self.dtype, ReducedPrecisionFloatType)
        require(self.saturate is None or small, f"relay.cast: only floats of few bits saturate, not {self.dtype}")
        return [ranked_type(self.dtype, shape(self.input))]
