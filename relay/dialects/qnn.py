"""The `qnn` dialect: quantised ops. A code q stands for `scale * (q - zero_point)`.

Scales (f32) and zero points (i32) are scalars, or one per index of `axis`. Equal integers need more than a float32
scale: TFLite multiplies some scales in double and some in float, so every op that rescales also carries the
`multiplier` (i32) and `shift` (i32) the reference's kernel would have computed; value ~ multiplier * 2^(shift - 31).
`min` and `max` are the bounds of the result's codes: the dtype's range, tightened by a fused activation.
Source of every formula: TFLite's reference kernels.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)

from relay.dialects.attributes import WeightAttr, int_values, to_numpy
from relay.dialects.op import TensorOp, Type, axis_of, broadcast, is_code, rank, require, shape, tensor
from relay.dialects.relay.fixed_point import ROUNDINGS
from relay.dialects.relay.nn import Conv2dBase, DenseBase

FloatParameter = FloatAttr | WeightAttr | DenseIntOrFPElementsAttr | DenseResourceAttr
IntParameter = IntegerAttr | WeightAttr | DenseIntOrFPElementsAttr | DenseResourceAttr

LAST = IntegerAttr(-1, i64)
TFLITE = StringAttr("tflite")
REQUANTIZE_ROUNDINGS = (*ROUNDINGS, "f64_away", "f32_even")
"""`f64_away`: `round(double(x) * double(scale))`, halves away from zero (TFLite FULLY_CONNECTED since LiteRT 1.3);
`f32_even`: `rint(float(x) * float(scale))`, halves to even (XNNPACK, ONNX Runtime)."""


def parameter(op: Operation, attr: Attribute | None, data: SSAValue, axis: int, what: str) -> None:
    """Check a scale, zero point, multiplier or shift: finite, and a scalar or one number per index of the axis."""
    if attr is None or (isinstance(attr, DenseResourceAttr) and not hasattr(attr, "array")):
        return
    numbers = to_numpy(attr)
    require(numbers.ndim <= 1, f"{op.name}: {what} must be a scalar or a vector")
    if numbers.ndim == 1:
        size = shape(data)[axis_of(axis, rank(data), op.name)]
        require(numbers.size == size or size == -1, f"{op.name}: {numbers.size} numbers in {what} for axis of {size}")
    if "scale" in what:
        require(bool(np.isfinite(numbers).all() and (numbers > 0).all()), f"{op.name}: {what} must be positive")
    if what == "shift":
        require(bool(((numbers >= -31) & (numbers <= 30)).all()), f"{op.name}: shift must lie in -31..30")


def code(op: Operation, type: Attribute) -> Attribute:
    """Check that a type is one of codes."""
    require(is_code(type), f"{op.name}: {type} is no type of codes")
    return type


def bounds(op: Operation, low: IntegerAttr | None, high: IntegerAttr | None, type: Attribute) -> None:
    """Check that clamp bounds are ordered. They may lie outside the type's range; the result saturates to both."""
    if low is not None and high is not None:
        require(low.value.data <= high.value.data, f"{op.name}: min is above max")
    require(isinstance(type, IntegerType), f"{op.name}: clamps integers, not {type}")


@irdl_op_definition
class QuantizeOp(TensorOp):
    """`clamp(round(input / scale) + zero_point)`, float32 division, halves away from zero."""

    name = "qnn.quantize"
    input = operand_def(TensorType[Attribute])
    scale = prop_def(FloatParameter)
    zero_point = prop_def(IntParameter)
    axis = prop_def(IntegerAttr, default_value=LAST)
    out_dtype = prop_def(IntegerType)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        require(tensor(self.input).element_type == f32, f"{self.name}: takes f32")
        for what in ("scale", "zero_point"):
            parameter(self, self.properties[what], self.input, self.axis.value.data, what)
        return [TensorType(code(self, self.out_dtype), shape(self.input))]


@irdl_op_definition
class DequantizeOp(TensorOp):
    """`f32(f64(scale) * (input - zero_point))` per tensor; `scale * f32(input - zero_point)` per axis."""

    name = "qnn.dequantize"
    input = operand_def(TensorType[Attribute])
    scale = prop_def(FloatParameter)
    zero_point = prop_def(IntParameter)
    axis = prop_def(IntegerAttr, default_value=LAST)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        for what in ("scale", "zero_point"):
            parameter(self, self.properties[what], self.input, self.axis.value.data, what)
        require(isinstance(tensor(self.input).element_type, IntegerType), f"{self.name}: takes integers")
        return [TensorType(Float32Type(), shape(self.input))]


@irdl_op_definition
class RequantizeOp(TensorOp):
    """`clamp(rescale(input - input_zero_point) + output_zero_point, min, max)`.

    `rescale(x)` is `x * multiplier * 2^(shift-31)` under `rounding`, as `relay.fixed_point_multiply`; for `f64_away` it
    is `round(f64(x) * real_multiplier)` (f64, scalar or per axis); for `f32_even` `rint(f32(x) * s)`, s in f32 being
    `real_multiplier`, or `input_scale / output_scale` where it is absent; both saturate to i32. `input` is i32, codes
    or i64 (sums of 16-bit convolutions): with m = `min((multiplier + 2^15) >> 16, 0x7FFF)` then, whatever the
    fixed-point `rounding`, `rescale(x) = (x * m + 2^(14-shift)) >> (15-shift)`.
    """

    name = "qnn.requantize"
    input = operand_def(TensorType[Attribute])
    input_scale = prop_def(FloatParameter)
    input_zero_point = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)
    multiplier = prop_def(IntParameter)
    shift = prop_def(IntParameter)
    real_multiplier = opt_prop_def(FloatParameter)
    axis = prop_def(IntegerAttr, default_value=LAST)
    rounding = prop_def(StringAttr, default_value=TFLITE)
    min = opt_prop_def(IntegerAttr)
    max = opt_prop_def(IntegerAttr)
    out_dtype = prop_def(IntegerType)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        require(
            self.rounding.data in REQUANTIZE_ROUNDINGS,
            f"{self.name}: rounding {self.rounding} is none of {REQUANTIZE_ROUNDINGS}",
        )
        for what in ("input_scale", "multiplier", "shift", "real_multiplier"):
            parameter(self, self.properties.get(what), self.input, self.axis.value.data, what)
        require(
            self.rounding.data != "f64_away" or self.real_multiplier is not None,
            f"{self.name}: rounding f64_away needs real_multiplier",
        )
        bounds(self, self.min, self.max, self.out_dtype)
        require(isinstance(tensor(self.input).element_type, IntegerType), f"{self.name}: takes integers")
        return [TensorType(self.out_dtype, shape(self.input))]


@irdl_op_definition
class Conv2dOp(Conv2dBase):
    """Convolution of `data - input_zero_point` with `kernel - kernel_zero_point`, in i32 (wrapping) or i64.

    The result has scale `input_scale * kernel_scale` and zero point 0.
    """

    name = "qnn.conv2d"
    input_scale = prop_def(FloatParameter)
    input_zero_point = prop_def(IntegerAttr)
    kernel_scale = prop_def(FloatParameter)
    kernel_zero_point = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))


@irdl_op_definition
class DenseOp(DenseBase):
    """Matrix product of `data - input_zero_point` with `kernel - kernel_zero_point`, in i32 (wrapping) or i64."""

    name = "qnn.dense"
    input_scale = prop_def(FloatParameter)
    input_zero_point = prop_def(IntegerAttr)
    kernel_scale = prop_def(FloatParameter)
    kernel_zero_point = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))


class QnnBinaryOp(TensorOp, ABC):
    """A binary op on codes with broadcasting; both operands have the result's type."""

    lhs = operand_def(TensorType[Attribute])
    rhs = operand_def(TensorType[Attribute])
    lhs_scale = prop_def(FloatAttr)
    lhs_zero_point = prop_def(IntegerAttr)
    rhs_scale = prop_def(FloatAttr)
    rhs_zero_point = prop_def(IntegerAttr)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    rounding = prop_def(StringAttr, default_value=TFLITE)
    min = opt_prop_def(IntegerAttr)
    max = opt_prop_def(IntegerAttr)
    result = result_def(TensorType[Attribute])
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        type = code(self, tensor(self.lhs).element_type)
        require(tensor(self.rhs).element_type == type, f"{self.name}: element types differ")
        require(self.rounding.data in ROUNDINGS, f"{self.name}: rounding {self.rounding} is none of {ROUNDINGS}")
        bounds(self, self.min, self.max, type)
        for what in ("lhs_scale", "rhs_scale", "output_scale"):
            parameter(self, self.properties[what], self.lhs, 0, what)
        return [TensorType(type, broadcast(self.name, shape(self.lhs), shape(self.rhs)))]


class QnnAddBase(QnnBinaryOp, ABC):
    """With `x' = (x - zero_point) << left_shift` rescaled by each side's multiplier and shift:
    `clamp(rescale(lhs' +- rhs') + output_zero_point, min, max)`."""

    left_shift = prop_def(IntegerAttr)
    lhs_multiplier = prop_def(IntegerAttr)
    lhs_shift = prop_def(IntegerAttr)
    rhs_multiplier = prop_def(IntegerAttr)
    rhs_shift = prop_def(IntegerAttr)


@irdl_op_definition
class AddOp(QnnAddBase):
    """Sum of codes (TFLite ADD: left_shift 20 for 8 bits, 15 for 16)."""

    name = "qnn.add"


@irdl_op_definition
class SubtractOp(QnnAddBase):
    """Difference of codes (TFLite SUB)."""

    name = "qnn.subtract"


@irdl_op_definition
class MulOp(QnnBinaryOp):
    """`clamp(rescale((lhs - zp) * (rhs - zp)) + output_zero_point, min, max)` (TFLite MUL)."""

    name = "qnn.mul"


@irdl_op_definition
class MeanOp(TensorOp):
    """`clamp(rescale(sum - count * input_zero_point) + output_zero_point)`: the division by count is in the
    multiplier (TFLite MEAN)."""

    name = "qnn.mean"
    input = operand_def(TensorType[Attribute])
    axis = prop_def(DenseArrayBase[IntegerType])
    keepdims = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))
    input_scale = prop_def(FloatAttr)
    input_zero_point = prop_def(IntegerAttr)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    rounding = prop_def(StringAttr, default_value=TFLITE)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def axes(self) -> tuple[int, ...]:
        """The reduced axes: sorted, distinct, not negative."""
        return tuple(sorted({axis_of(a, rank(self.input), self.name) for a in int_values(self.axis)}))

    def infer(self) -> Sequence[Type]:
        axes, keep, type = self.axes(), bool(self.keepdims.value.data), tensor(self.input)
        code(self, type.element_type)
        dims = [1 if i in axes else d for i, d in enumerate(shape(self.input)) if keep or i not in axes]
        return [TensorType(type.element_type, dims)]


@irdl_op_definition
class SoftmaxOp(TensorOp):
    """Softmax of 8-bit codes along the last axis in gemmlowp's fixed point; result scale 1/256, zero point lowest.

    `multiplier`, `shift`: of `min(beta * input_scale * 2^26, 2^31 - 1)`. With d = x - max and, in Q5.26 to Q0.31,
    `e = exp_on_negative_values(SRDHM(d * 2^shift, multiplier))`, but e = 0 where d < `-floor(31 * 2^26 / 2^shift)`:
    `(mantissa, headroom) = relay.fixed_point_reciprocal(sum of RDBPOT(e, 12))`, result
    `clamp(RDBPOT(SRDHM(mantissa, e), (12 - headroom) + 31 - 8) + lowest code)`. The shift passes 31 where the sum
    reaches 2^28 (512 equal codes): it rounds likewise; TFLite's reference aborts there.
    Source: TFLite's reference SOFTMAX for int8 and uint8; `relay.interpreters.qnn.softmax_exp_table` gives e.
    """

    name = "qnn.softmax"
    input = operand_def(TensorType[Attribute])
    beta = prop_def(FloatAttr)
    input_scale = prop_def(FloatAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(
            is_code(type.element_type, 8),
            f"{self.name}: takes 8-bit codes, not {type.element_type}",
        )
        require(rank(self.input) >= 1, f"{self.name}: takes rank 1 or more")
        return [type]


class QnnUnaryOp(TensorOp, ABC):
    """A function of 8-bit codes: `q = clamp(round(f(scale * (x - zero_point)) / output_scale) + output_zero_point)`
    in float32 (multiplied by the reciprocal of output_scale), as TFLite builds its 256-entry tables."""

    input = operand_def(TensorType[Attribute])
    input_scale = prop_def(FloatAttr)
    input_zero_point = prop_def(IntegerAttr)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        require(
            is_code(type.element_type, 8),
            f"{self.name}: takes 8-bit codes, not {type.element_type}",
        )
        return [type]


@irdl_op_definition
class SigmoidOp(QnnUnaryOp):
    """Logistic function of codes."""

    name = "qnn.sigmoid"


@irdl_op_definition
class TanhOp(QnnUnaryOp):
    """Hyperbolic tangent of codes."""

    name = "qnn.tanh"


@irdl_op_definition
class ConcatenateOp(TensorOp):
    """Concatenate codes along `axis`; an operand whose parameters differ from the result's is rescaled in float32:
    `clamp(round(x * s + (-zp * s)) + output_zero_point)`, `s = input_scale * (1 / output_scale)` (TFLite, uint8)."""

    name = "qnn.concatenate"
    inputs = var_operand_def(TensorType[Attribute])
    axis = prop_def(IntegerAttr)
    input_scales = prop_def(FloatParameter)
    input_zero_points = prop_def(IntParameter)
    output_scale = prop_def(FloatAttr)
    output_zero_point = prop_def(IntegerAttr)
    result = result_def(TensorType[Attribute])
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        from relay.dialects.relay.shape import ConcatenateOp as Plain

        count = len(self.inputs)
        for what in ("input_scales", "input_zero_points"):
            require(to_numpy(self.properties[what]).shape == (count,), f"{self.name}: {what} needs {count} numbers")
        plain = Plain.make(self.inputs, {"axis": self.axis})
        types = [tensor(plain.result)]
        plain.erase()
        return types


@irdl_op_definition
class DynamicQuantizeOp(TensorOp):
    """Symmetric i8 codes of floats, and the scale (f32), found at run time, per index of the first axis:
    `range = max |x|`, `scale = range / 127`, `code = clamp(round(x * (127 / range)), -127, 127)`; range 0 gives
    codes 0 and scale 1. Source: TFLite's hybrid kernels."""

    name = "qnn.dynamic_quantize"
    input = operand_def(TensorType[Attribute])
    codes = result_def(TensorType[Attribute])
    scale = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        require(tensor(self.input).element_type == f32, f"{self.name}: takes f32")
        require(rank(self.input) >= 1, f"{self.name}: takes rank 1 or more")
        return [TensorType(i8, shape(self.input)), TensorType(f32, shape(self.input)[:1])]


@irdl_op_definition
class LstmOp(TensorOp):
    """A sequence of int8 LSTM steps with int16 cell state (TFLite UNIDIRECTIONAL_SEQUENCE_LSTM 8x8_16).

    `data` is [time, batch, input] (or [batch, time, input] unless `time_major`). `input_kernel` is [gates*units,
    input], `recurrent_kernel` [gates*units, units], `bias` i32 [gates*units], gates in the order input (absent with
    `cifg`), forget, cell, output; the two multipliers and shifts have one number per gate. Per step, with sat16 and
    gemmlowp's int16 sigmoid (s) and tanh (t) of Q3.12:
    `g = sat16(sat16(rescale(W (x - zp_x) + b)) + rescale(R (h - zp_h)))`;
    `c = clip(sat16(RDBPOT(s(f) c, 15) + RDBPOT(s(i) t(g), 30 + cell_shift)), +-cell_clip)` (no clip if 0);
    `h = clamp(rescale(s(o) t(c)) + zp_h)`. `cell_shift` is log2 of the cell's scale.
    Results: the sequence of h, the last h, the last c.
    """

    name = "qnn.lstm"
    data = operand_def(TensorType[Attribute])
    input_kernel = operand_def(TensorType[Attribute])
    recurrent_kernel = operand_def(TensorType[Attribute])
    bias = operand_def(TensorType[Attribute])
    hidden_state = operand_def(TensorType[Attribute])
    cell_state = operand_def(TensorType[Attribute])
    input_zero_point = prop_def(IntegerAttr)
    hidden_zero_point = prop_def(IntegerAttr)
    input_multiplier = prop_def(IntParameter)
    input_shift = prop_def(IntParameter)
    recurrent_multiplier = prop_def(IntParameter)
    recurrent_shift = prop_def(IntParameter)
    hidden_multiplier = prop_def(IntegerAttr)
    hidden_shift = prop_def(IntegerAttr)
    cell_shift = prop_def(IntegerAttr)
    cell_clip = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))
    cifg = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))
    time_major = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))
    numerics = prop_def(StringAttr, default_value=StringAttr("litert"))
    result = result_def(TensorType[Attribute])
    last_hidden = result_def(TensorType[Attribute])
    last_cell = result_def(TensorType[Attribute])
    assembly_format = (
        "$data `,` $input_kernel `,` $recurrent_kernel `,` $bias `,` $hidden_state `,` $cell_state attr-dict `:` "
        "functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Type]:
        data, units = shape(self.data), shape(self.hidden_state)[-1]
        gates = 3 if self.cifg.value.data else 4
        require(len(data) == 3, f"{self.name}: data must have rank 3")
        batch = data[1] if self.time_major.value.data else data[0]
        require(shape(self.input_kernel) == (gates * units, data[2]), f"{self.name}: input_kernel has the wrong shape")
        require(
            shape(self.recurrent_kernel) == (gates * units, units), f"{self.name}: recurrent_kernel has the wrong shape"
        )
        require(shape(self.bias) == (gates * units,), f"{self.name}: bias has the wrong shape")
        require(
            shape(self.hidden_state) == shape(self.cell_state) == (batch, units),
            f"{self.name}: state is not [{batch}, {units}]",
        )
        types = [tensor(v).element_type for v in self.operands]
        require(types == [i8, i8, i8, i32, i8, i16], f"{self.name}: operands must be i8, i8, i8, i32, i8, i16")
        require(self.numerics.data == "litert", f"{self.name}: unknown numerics {self.numerics}")
        for what in ("input_multiplier", "input_shift", "recurrent_multiplier", "recurrent_shift"):
            require(to_numpy(self.properties[what]).shape == (gates,), f"{self.name}: {what} needs {gates} numbers")
        return [TensorType(i8, [*data[:2], units]), tensor(self.hidden_state), tensor(self.cell_state)]


@irdl_op_definition
class SvdfOp(TensorOp):
    """One step of an int8 SVDF layer: a rank-`rank` filter over the last `memory` inputs (TFLite SVDF).

    data [batch, input]; feature_kernel i8 [filters, input]; time_kernel i16 (or i8) [filters, memory]; bias i32
    [filters / rank]; state i16 (or i8) [batch, filters * memory], shifted by one slot per step:
    `s = sat(rescale(feature_kernel (x - zp)))`, `y = clamp(rescale2(sum over rank and memory of state * time_kernel
    + bias) + output_zero_point, min, max)`. Results: y and the new state.
    """

    name = "qnn.svdf"
    data = operand_def(TensorType[Attribute])
    feature_kernel = operand_def(TensorType[Attribute])
    time_kernel = operand_def(TensorType[Attribute])
    bias = opt_operand_def(TensorType[Attribute])
    state = operand_def(TensorType[Attribute])
    input_zero_point = prop_def(IntegerAttr)
    rank = prop_def(IntegerAttr)
    feature_multiplier = prop_def(IntegerAttr)
    feature_shift = prop_def(IntegerAttr)
    multiplier = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    output_zero_point = prop_def(IntegerAttr)
    min = opt_prop_def(IntegerAttr)
    max = opt_prop_def(IntegerAttr)
    result = result_def(TensorType[Attribute])
    new_state = result_def(TensorType[Attribute])
    assembly_format = (
        "$data `,` $feature_kernel `,` $time_kernel `,` $state (`bias` $bias^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Type]:
        (batch, inputs), (filters, memory) = shape(self.data), shape(self.time_kernel)
        ranks = self.rank.value.data
        require(ranks > 0 and filters % ranks == 0, f"{self.name}: {filters} filters are not divisible by the rank")
        require(shape(self.feature_kernel) == (filters, inputs), f"{self.name}: feature_kernel has the wrong shape")
        require(
            shape(self.state) == (batch, filters * memory), f"{self.name}: state is not [{batch}, {filters * memory}]"
        )
        require(self.bias is None or shape(self.bias) == (filters // ranks,), f"{self.name}: bias has the wrong shape")
        return [TensorType(i8, [batch, filters // ranks]), tensor(self.state)]


Qnn = Dialect(
    "qnn",
    [
        QuantizeOp,
        DequantizeOp,
        RequantizeOp,
        Conv2dOp,
        DenseOp,
        AddOp,
        SubtractOp,
        MulOp,
        MeanOp,
        SoftmaxOp,
        SigmoidOp,
        TanhOp,
        ConcatenateOp,
        DynamicQuantizeOp,
        LstmOp,
        SvdfOp,
    ],
)
