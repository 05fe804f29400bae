"""Fixed-point integer arithmetic of quantized networks, kept as whole ops until `expand-apply-scale`, and table
lookups.

Source of the primitives: gemmlowp's fixed-point definitions, as used by TFLite's reference kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from relay.dialects.op import (
    TENSOR,
    OneResultOp,
    TensorOp,
    Type,
    axis_of,
    broadcast,
    is_code,
    rank,
    require,
    shape,
    tensor,
)

ROUNDINGS = ("tflite", "tflite_single", "upward", "tonearest")
"""How `fixed_point_multiply` rounds x * multiplier * 2^(shift-31):

- `tflite`: twice, as gemmlowp and TFLite's reference kernels do: SRDHM (halves up), then RDBPOT (halves away from
  zero);
- `tflite_single` and `upward`, which are equal and named after TFLite's and TVM's options: once, halves up;
- `tonearest`: once, halves away from zero.
"""


@irdl_op_definition
class FixedPointMultiplyOp(OneResultOp):
    """`round(input * multiplier * 2^(shift - 31))` in i32; multiplier and shift are scalars, one per `axis` index, or
    tensors of the input's rank that broadcast against it (packed layouts).

    `rounding`: `tflite` rounds twice, as TFLite's MultiplyByQuantizedMultiplier does: SRDHM (halves up), then RDBPOT
    (halves away from zero); `tflite_single` and `upward` round once, halves up; `tonearest` once, halves away from
    zero. `multiplier` is i32, 0 or in [2^30, 2^31); `shift` is i32 in [-31, 30], positive to the left: for `tflite` the
    value wraps when shifted left, for the other roundings only the result wraps.
    """

    name = "relay.fixed_point_multiply"
    ELEMENTWISE: ClassVar[bool] = True
    PARAMETERS: ClassVar[tuple[str, ...]] = ("multiplier", "shift")
    ALONG_AXIS: ClassVar[tuple[str, ...]] = PARAMETERS
    input = operand_def(TENSOR)
    multiplier = operand_def(TENSOR)
    shift = operand_def(TENSOR)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))
    rounding = prop_def(StringAttr, default_value=StringAttr("tflite"))

    def infer(self) -> Sequence[Type]:
        require(self.rounding.data in ROUNDINGS, f"{self.name}: rounding {self.rounding} is none of {ROUNDINGS}")
        for value in (self.input, self.multiplier, self.shift):
            require(tensor(value).element_type == i32, f"{self.name}: operands must be i32")
        per_axis(self, self.multiplier, self.input, self.axis.value.data, "multiplier")
        per_axis(self, self.shift, self.input, self.axis.value.data, "shift")
        return [tensor(self.input)]


def per_axis(op: Operation, parameter: SSAValue, data: SSAValue, axis: int, what: str) -> None:
    """Check that a parameter is a scalar, a vector as long as the data's axis, or broadcasts against the data."""
    dims = shape(parameter)
    if len(dims) > 1:
        fits = len(dims) == rank(data) and broadcast(op.name, dims, shape(data)) == shape(data)
        require(fits, f"{op.name}: {what} must be a scalar or a vector, or of the data's rank")
    elif dims:
        size = shape(data)[axis_of(axis, rank(data), op.name)]
        require(dims[0] == size or -1 in (dims[0], size), f"{op.name}: {dims[0]} numbers in {what} for axis of {size}")


@irdl_op_definition
class HighMultiplyOp(OneResultOp):
    """SRDHM, gemmlowp's SaturatingRoundingDoublingHighMul: `(lhs * rhs + 2^30) >> 31` in i32, halves up; min * min
    saturates."""

    name = "relay.rounding_doubling_high_multiply"
    ELEMENTWISE: ClassVar[bool] = True
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        for value in (self.lhs, self.rhs):
            require(tensor(value).element_type == i32, f"{self.name}: operands must be i32")
        return [TensorType(i32, broadcast(self.name, shape(self.lhs), shape(self.rhs)))]


@irdl_op_definition
class RoundingRightShiftOp(OneResultOp):
    """RDBPOT, gemmlowp's RoundingDivideByPOT: `input / 2^amount` in i32, halves away from zero; 0 <= amount <= 31."""

    name = "relay.rounding_right_shift"
    ELEMENTWISE: ClassVar[bool] = True
    input = operand_def(TENSOR)
    amount = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        for value in (self.input, self.amount):
            require(tensor(value).element_type == i32, f"{self.name}: operands must be i32")
        return [TensorType(i32, broadcast(self.name, shape(self.input), shape(self.amount)))]


@irdl_op_definition
class FixedPointReciprocalOp(TensorOp):
    """`1 / input` of positive i32 numbers as `mantissa * 2^(headroom - 62)`.

    `headroom` h = number of leading zeros of input; `mantissa` = Q0.31 of `1 / (1 + f)`, where f = input * 2^h - 2^31
    in Q0.31 lies in [0, 1). With `a = input * 2^(h-1)` (half the denominator in Q0.31), Newton-Raphson steps in Q2.29
    start from `x = 1515870810 + SRDHM(a, -1010580540)` (48/17 - 32/17 a) and are
    `x = x + sat(4 SRDHM(x, 2^29 - SRDHM(a, x)))`, three times; then `mantissa = sat(2 x)`. sat saturates to i32. With e
    in Q0.31 and S = the sum of RDBPOT(e, 12), TFLite's softmax of 8 bits is
    `clamp(RDBPOT(SRDHM(mantissa, e), (12 - headroom) + 31 - 8) + lowest code)`. Source: gemmlowp
    `one_over_one_plus_x_for_x_in_0_1`, TFLite `GetReciprocal`.
    """

    name = "relay.fixed_point_reciprocal"
    ELEMENTWISE: ClassVar[bool] = True
    input = operand_def(TENSOR)
    mantissa = result_def(TENSOR)
    headroom = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        require(tensor(self.input).element_type == i32, f"{self.name}: the operand must be i32")
        return [tensor(self.input), tensor(self.input)]


@irdl_op_definition
class LookupOp(OneResultOp):
    """`table[input - lowest(input type)]`: any function of an 8- or 16-bit code; the table is a vector of 2^bits
    elements."""

    name = "relay.lookup"
    ELEMENTWISE: ClassVar[bool] = True
    PARAMETERS: ClassVar[tuple[str, ...]] = ("table",)
    input = operand_def(TENSOR)
    table = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        code = tensor(self.input).element_type
        if not is_code(code):
            raise VerifyException(f"{self.name}: takes 8- or 16-bit codes")
        entries = 1 << code.width.data
        require(shape(self.table) == (entries,), f"{self.name}: the table must be a vector of {entries}")
        return [TensorType(tensor(self.table).element_type, shape(self.input))]
