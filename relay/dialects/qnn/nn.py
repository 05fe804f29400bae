"""Convolution, matrix products, softmax, mean, concatenation of quantized values."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, StringAttr, i16, i32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, var_operand_def

from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.element_types import ranked_type
from relay.dialects.op import (
    TENSOR,
    AxisOp,
    OneResultOp,
    TensorOp,
    Type,
    axis_of,
    is_code,
    rank,
    require,
    shape,
    tensor,
)
from relay.dialects.qnn.elementwise import CodesOp
from relay.dialects.qnn.parameters import TFLITE, FloatParameter, IntParameter, code, parameter
from relay.dialects.relay.nn import Conv2dBase, DenseBase


class QnnProductOp(TensorOp, ABC):
    """A product of codes of data and kernel; the kernel may have a scale for each output channel."""

    input_scale = prop_def(FloatParameter)
    input_zero_point = prop_def(IntegerAttr)
    kernel_scale = prop_def(FloatParameter)
    kernel_zero_point = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))


@irdl_op_definition
class Conv2dOp(QnnProductOp, Conv2dBase):
    """Convolution of `data - input_zero_point` with `kernel - kernel_zero_point`, in i32 (wrapping) or i64.

    The result has scale `input_scale * kernel_scale` and zero point 0.
    """

    name = "qnn.conv2d"


@irdl_op_definition
class DenseOp(QnnProductOp, DenseBase):
    """Matrix product of `data - input_zero_point` with `kernel - kernel_zero_point`, in i32 (wrapping) or i64."""

    name = "qnn.dense"


class QnnReduceOp(CodesOp, ABC):
    """`clamp(rescale(sum - count * input_zero_point) + output_zero_point)` of codes along `axis`."""

    axis = prop_def(DenseArrayBase[IntegerType])
    keepdims = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    rounding = prop_def(StringAttr, default_value=TFLITE)

    def axes(self) -> tuple[int, ...]:
        """The reduced axes: sorted, distinct, not negative."""
        return tuple(sorted({axis_of(a, rank(self.input), self.name) for a in int_values(self.axis)}))

    def infer(self) -> Sequence[Type]:
        axes, keep, type = self.axes(), bool(self.keepdims.value.data), tensor(self.input)
        code(self, type.element_type)
        dims = [1 if i in axes else d for i, d in enumerate(shape(self.input)) if keep or i not in axes]
        return [ranked_type(type.element_type, tuple(dims))]

    def independent_along(self, axis: int) -> bool:
        return axis not in self.axes() and (bool(self.keepdims.value.data) or axis < min(self.axes(), default=axis + 1))


@irdl_op_definition
class MeanOp(QnnReduceOp):
    """Mean of codes: `clamp(rescale(sum - count * input_zero_point) + output_zero_point)`, where the multiplier
    includes the division by count (TFLite MEAN)."""

    name = "qnn.mean"


@irdl_op_definition
class SumOp(QnnReduceOp):
    """Sum of codes: `clamp(rescale(sum - count * input_zero_point) + output_zero_point)` (TFLite SUM)."""

    name = "qnn.sum"


@irdl_op_definition
class SoftmaxOp(OneResultOp):
    """Softmax of 8-bit codes along the last axis in gemmlowp's fixed point; result scale 1/256, zero point lowest.

    `multiplier` and `shift` stand for the factor `min(beta * input_scale * 2^26, 2^31 - 1)`. With d = x - max,
    `e = exp_on_negative_values(SRDHM(d * 2^shift, multiplier))` has its argument in Q5.26 and its result in Q0.31; e =
    0 where d < `-floor(31 * 2^26 / 2^shift)`. With
    `(mantissa, headroom) = relay.fixed_point_reciprocal(sum of RDBPOT(e, 12))`, the result is
    `clamp(RDBPOT(SRDHM(mantissa, e), (12 - headroom) + 31 - 8) + lowest code)`. Where the sum reaches 2^28 (512 equal
    codes), the amount of this right shift is above 31: RDBPOT still rounds in the same way, whereas TFLite's reference
    aborts. Source: TFLite's reference SOFTMAX for int8 and uint8; `relay.interpreters.qnn.softmax_exp_table` gives e.

    16-bit codes: result scale 2^-15, zero point 0; multiplier and shift stand for `beta * input_scale / (10 / 65535)`.
    E is a table of exp over [-10, 0] and R one of 1 / (1 + x) over [0, 1], both interpolated linearly between 513
    samples in Q0.15. With `e = E[clamp(rescale(d) + 32767)]`, S the sum of all e, h the number of leading zeros of S,
    and `r = R[(((S << h-1) + 2^13) >> 14) - 2^15 - 2^16]`, the result is `clamp((e r + 2^(30-h)) >> (31-h), 0, 32767)`
    (TFLite's SOFTMAX for int16).
    """

    name = "qnn.softmax"
    INDEPENDENT: ClassVar[slice] = slice(-1)
    input = operand_def(TENSOR)
    beta = prop_def(FloatAttr)
    input_scale = prop_def(FloatAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(
            is_code(type.element_type, 8) or type.element_type == i16,
            f"{self.name}: takes 8- or 16-bit codes, not {type.element_type}",
        )
        require(rank(self.input) >= 1, f"{self.name}: takes rank 1 or more")
        return [type]


@irdl_op_definition
class TableSoftmaxOp(OneResultOp):
    """Softmax of 8-bit codes along the last axis, the exponential by a table:
    `clamp(rint(f64(e) * floor(1 / output_scale) / sum of e) + output_zero_point)`, the sum in float32, in order.

    `e = f32(exp((x - max + s) * input_scale))` in float64, one of 256 numbers; with n codes in a row
    `s = max(0, log(largest float / n) - 5) / input_scale` keeps the sum within float32. Source: ONNX Runtime
    QLinearSoftmax; `relay.interpreters.qnn.softmax_powers` gives e.
    """

    name = "qnn.table_softmax"
    INDEPENDENT: ClassVar[slice] = slice(-1)
    input = operand_def(TENSOR)
    input_scale = prop_def(FloatAttr)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(is_code(type.element_type, 8), f"{self.name}: takes 8-bit codes, not {type.element_type}")
        require(rank(self.input) >= 1, f"{self.name}: takes rank 1 or more")
        for what in ("input_scale", "output_scale"):
            parameter(self, self.properties[what], self.input, 0, what)
        return [type]


@irdl_op_definition
class ConcatenateOp(AxisOp, OneResultOp):
    """Concatenate codes along `axis`; an operand whose parameters differ from the result's is rescaled in float32:
    `clamp(round(x * s + (-zp * s)) + output_zero_point)`, `s = input_scale * (1 / output_scale)` (TFLite, uint8)."""

    name = "qnn.concatenate"
    SAME_AXES: ClassVar[bool] = True
    inputs = var_operand_def(TENSOR)
    input_scales = prop_def(FloatParameter)
    input_zero_points = prop_def(IntParameter)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        from relay.dialects.relay.shape import ConcatenateOp as Plain

        count = len(self.inputs)
        for what in ("input_scales", "input_zero_points"):
            require(to_numpy(self.properties[what]).shape == (count,), f"{self.name}: {what} needs {count} numbers")
        plain = Plain.make(self.inputs, {"axis": self.axis})
        types = [tensor(plain.result)]
        plain.erase()
        return types
