"""Functions of one quantized value: all but sigmoid and tanh, which are in `elementwise`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from relay.dialects.op import TENSOR, OneResultOp, Type, is_code, rank, require, tensor
from relay.dialects.qnn.elementwise import CodesOp
from relay.dialects.qnn.parameters import parameter


class QnnFunctionOp(CodesOp, ABC):
    """A function of codes of `WIDTHS` bits with one scale and zero point, to codes with another."""

    ELEMENTWISE: ClassVar[bool] = True
    WIDTHS: ClassVar[tuple[int, ...]] = (8, 16)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        what = " or ".join(map(str, self.WIDTHS))
        require(is_code(type.element_type, *self.WIDTHS), f"{self.name}: takes {what}-bit codes")
        for scale in ("input_scale", "output_scale"):
            parameter(self, self.properties[scale], self.input, 0, scale)
        for name in self.properties:
            if name.endswith("shift"):
                parameter(self, self.properties[name], self.input, 0, "shift")
        return [type]


class TableOp(QnnFunctionOp, ABC):
    """A function f of real numbers, by TFLite's tables. 8 bits:
    `clamp(round(f(scale * (x - zero_point)) / output_scale) + output_zero_point)` in float32, where the division is a
    product with the reciprocal of output_scale. 16 bits: linear interpolation between 513 samples y, one for every 128
    codes. `y[i] = clamp(round(f / output_scale) - bias)`, where bias is half of the interpolation's error at the middle
    of the interval; the difference `y[i + 1] - y[i]` wraps in 16 bits, as LiteRT's does.

    Source: TFLite `LUTPopulate`, `LUTLookup`.
    """


@irdl_op_definition
class GeluOp(TableOp):
    """`0.5 x (1 + erf(x / sqrt(2)))`, or `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))` if `approximate`."""

    name = "qnn.gelu"
    approximate = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))


@irdl_op_definition
class EluOp(TableOp):
    """`x` where that is not negative, else `exp(x) - 1`."""

    name = "qnn.elu"


@irdl_op_definition
class ExpOp(TableOp):
    """`exp(x)`."""

    name = "qnn.exp"


@irdl_op_definition
class LogOp(TableOp):
    """`log(x)`; 0 and negative numbers give the lowest code."""

    name = "qnn.log"


@irdl_op_definition
class RsqrtOp(QnnFunctionOp):
    """`1 / sqrt(x)`; 0 and negative numbers, at which TFLite fails, give the highest code.

    16 bits by a table, see `TableOp`; 8 bits by gemmlowp's inverse square root (m, s) of the integer x - zero_point:
    `clamp(rescale(rescale(1, m, s + 20), multiplier, shift - 20) + output_zero_point)`, where multiplier and shift are
    those of `1 / (sqrt(input_scale) * output_scale)`. Source: TFLite RSQRT.
    """

    name = "qnn.rsqrt"
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)


@irdl_op_definition
class SqrtOp(QnnFunctionOp):
    """`clamp(trunc(sqrt(scale * (x - zero_point)) / output_scale) + output_zero_point)` in float32; negative numbers,
    at which TFLite fails, count as 0."""

    name = "qnn.sqrt"


@irdl_op_definition
class AbsOp(QnnFunctionOp):
    """`clamp(rescale(|x - zero_point|) + output_zero_point)`; without multiplier and shift, which are absent where both
    scales are equal, nothing is rescaled (TFLite ABS)."""

    name = "qnn.abs"
    multiplier = opt_prop_def(IntegerAttr)
    shift = opt_prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        require((self.multiplier is None) == (self.shift is None), f"{self.name}: multiplier and shift belong together")
        return super().infer()


@irdl_op_definition
class LeakyReluOp(QnnFunctionOp):
    """With `x' = x - zero_point`: `clamp(rescale(x') + output_zero_point)` where x' is not negative, else
    `clamp(sign(alpha) * rescale(x', alpha_multiplier, alpha_shift) + output_zero_point)`, where alpha_multiplier and
    alpha_shift stand for `|alpha| * input_scale / output_scale` (TFLite LEAKY_RELU)."""

    name = "qnn.leaky_relu"
    alpha = prop_def(FloatAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    alpha_multiplier = prop_def(IntegerAttr)
    alpha_shift = prop_def(IntegerAttr)


@irdl_op_definition
class HardSwishOp(QnnFunctionOp):
    """`x * clamp(x + 3, 0, 6) / 6` in gemmlowp's fixed point of 16 bits (TFLite HARD_SWISH).

    With `h = 128 (x - zero_point)`, `p = SRDHM16(h, output_multiplier)`; r = h, saturated to 16 bits when shifted: `r =
    SRDHM16(r << (relu_shift - 1), relu_multiplier) << 1` where relu_shift > 0, else `RDBPOT(SRDHM16(r,
    relu_multiplier), -relu_shift)`; `r = (r + 2^15) >> 1` in Q0.15, in [0, 1]; `clamp(RDBPOT(trunc(r p / 2^15),
    -output_shift) + output_zero_point)`. The 16-bit multipliers are those of `input_scale / 128 / output_scale`, whose
    shift is not positive, and of `input_scale / 128 / (3 / 2^15)`. RDBPOT by 16 and more gives 1, or -1 for a negative
    operand, because its mask has 16 bits.
    """

    name = "qnn.hard_swish"
    WIDTHS: ClassVar[tuple[int, ...]] = (8,)
    output_multiplier = prop_def(IntegerAttr)
    output_shift = prop_def(IntegerAttr)
    relu_multiplier = prop_def(IntegerAttr)
    relu_shift = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        require(self.output_shift.value.data <= 0, f"{self.name}: output_shift is positive")
        return super().infer()


@irdl_op_definition
class L2NormalizeOp(OneResultOp):
    """`x' / sqrt(sum of x'^2)` along the last axis, `x' = x - input_zero_point`; the result's scale is 1/128 and its
    zero point the middle of the codes.

    (m, s) is gemmlowp's inverse square root of the sum. `i8`: `clamp(rescale(x', m, s + 7))`; `ui8`:
    `clamp(rescale(128 x', m, s) + 128)`. Source: TFLite L2_NORMALIZATION, `GetInvSqrtQuantizedMultiplierExp`.
    """

    name = "qnn.l2_normalize"
    INDEPENDENT: ClassVar[slice] = slice(-1)
    input = operand_def(TENSOR)
    input_zero_point = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(is_code(type.element_type, 8), f"{self.name}: takes 8-bit codes, not {type.element_type}")
        require(rank(self.input) >= 1, f"{self.name}: takes rank 1 or more")
        return [type]
