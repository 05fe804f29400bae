"""Quantize, dequantize and requantize, with scales fixed or computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    f32,
    i8,
    i32,
)
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from relay.dialects.element_types import ranked_type
from relay.dialects.op import TENSOR, OneResultOp, TensorOp, Type, is_integer, rank, require, shape, tensor
from relay.dialects.qnn.parameters import (
    AWAY,
    LAST,
    PRODUCTS,
    QUANTIZE_ROUNDINGS,
    REQUANTIZE_ROUNDINGS,
    TFLITE,
    FloatParameter,
    IntParameter,
    bounds,
    code,
    one_of,
    parameter,
)

UI8 = IntegerType(8, Signedness.UNSIGNED)


@irdl_op_definition
class QuantizeOp(OneResultOp):
    """`clamp(round(input / scale) + zero_point)` in float32, halves away from zero; other `rounding`s: `even`, to even
    (ONNX QuantizeLinear); `even_inverse`, `rint(input * (1 / scale)) + zero_point` (PyTorch); `even_sum`,
    `rint(input / scale + zero_point)` (ONNX Runtime QLinearAveragePool). NaN gives the lowest code. Codes have 4,
    8 or 16 bits."""

    name = "qnn.quantize"
    ELEMENTWISE: ClassVar[bool] = True
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ("scale", "zero_point")
    input = operand_def(TENSOR)
    scale = prop_def(FloatParameter)
    zero_point = prop_def(IntParameter)
    axis = prop_def(IntegerAttr, default_value=LAST)
    rounding = prop_def(StringAttr, default_value=AWAY)
    out_dtype = prop_def(IntegerType)

    def infer(self) -> Sequence[Type]:
        require(tensor(self.input).element_type == f32, f"{self.name}: takes f32")
        one_of(self, "rounding", self.rounding, QUANTIZE_ROUNDINGS)
        for what in ("scale", "zero_point"):
            parameter(self, self.properties[what], self.input, self.axis.value.data, what)
        return [ranked_type(code(self, self.out_dtype, 4, 8, 16), shape(self.input))]


@irdl_op_definition
class DequantizeOp(OneResultOp):
    """`f32(f64(scale) * (input - zero_point))` per tensor; `scale * f32(input - zero_point)` per axis, and always where
    `product` is `f32` (ONNX): the two differ for 32-bit codes. `input` has integers of 2 bits or more."""

    name = "qnn.dequantize"
    ELEMENTWISE: ClassVar[bool] = True
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ("scale", "zero_point")
    input = operand_def(TENSOR)
    scale = prop_def(FloatParameter)
    zero_point = prop_def(IntParameter)
    axis = prop_def(IntegerAttr, default_value=LAST)
    product = prop_def(StringAttr, default_value=StringAttr("f64"))

    def infer(self) -> Sequence[Type]:
        one_of(self, "product", self.product, PRODUCTS)
        for what in ("scale", "zero_point"):
            parameter(self, self.properties[what], self.input, self.axis.value.data, what)
        type = tensor(self.input).element_type
        require(is_integer(type) and type.width.data > 1, f"{self.name}: takes integers of 2 bits and more, not {type}")
        return [ranked_type(Float32Type(), shape(self.input))]


@irdl_op_definition
class RequantizeOp(OneResultOp):
    """`clamp(rescale(input - input_zero_point) + output_zero_point, min, max)`.

    `rescale(x)` is `x * multiplier * 2^(shift-31)` under `rounding`, as `relay.fixed_point_multiply`; for `f64_away` it
    is `round(f64(x) * real_multiplier)` (f64, scalar or per axis); for `f32_even` `rint(f32(x) * s)`, s in f32 being
    `real_multiplier`, or `input_scale / output_scale` where it is absent; both saturate to i32. `input` is i32, codes,
    or i64 (sums of 16-bit convolutions). For i64, the fixed-point rounding is always
    `rescale(x) = i32((x * m + 2^(14-shift)) >> (15-shift))`, which wraps, with m =
    `min((multiplier + 2^15) >> 16, 0x7FFF)`; so shift is at most 14.
    """

    name = "qnn.requantize"
    ELEMENTWISE: ClassVar[bool] = True
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ("input_scale", "multiplier", "shift", "real_multiplier")
    input = operand_def(TENSOR)
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

    def infer(self) -> Sequence[Type]:
        one_of(self, "rounding", self.rounding, REQUANTIZE_ROUNDINGS)
        for what in ("input_scale", "multiplier", "shift", "real_multiplier"):
            parameter(self, self.properties.get(what), self.input, self.axis.value.data, what)
        require(
            self.rounding.data != "f64_away" or self.real_multiplier is not None,
            f"{self.name}: rounding f64_away needs real_multiplier",
        )
        bounds(self, self.min, self.max, self.out_dtype)
        type = tensor(self.input).element_type
        require(is_integer(type) and type.width.data > 1, f"{self.name}: takes integers of 2 bits and more, not {type}")
        return [ranked_type(self.out_dtype, shape(self.input))]


@irdl_op_definition
class DynamicQuantizeOp(TensorOp):
    """Quantize floats to symmetric i8 codes with a scale (f32) computed at run time for each index of the first axis:
    `range = max |x|`, `scale = range / 127`, `code = clamp(round(x * (127 / range)), -127, 127)`; range 0 gives codes 0
    and scale 1. Source: TFLite's hybrid kernels."""

    name = "qnn.dynamic_quantize"
    INDEPENDENT: ClassVar[slice] = slice(1)
    input = operand_def(TENSOR)
    codes = result_def(TENSOR)
    scale = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        require(tensor(self.input).element_type == f32, f"{self.name}: takes f32")
        require(rank(self.input) >= 1, f"{self.name}: takes rank 1 or more")
        return [TensorType(i8, shape(self.input)), TensorType(f32, shape(self.input)[:1])]


@irdl_op_definition
class DynamicQuantizeLinearOp(TensorOp):
    """Quantize floats to ui8 codes with a scale (f32) and zero point (ui8) computed at run time for the whole tensor,
    in float32: `low = min(0, min x)`, `high = max(0, max x)`, `scale = (high - low) / 255` (but 1 if `high = low`),
    `zero_point = clamp(rint(-low / scale))`, `code = clamp(rint(x / scale) + zero_point)`. Source: ONNX
    DynamicQuantizeLinear."""

    name = "qnn.dynamic_quantize_linear"
    input = operand_def(TENSOR)
    codes = result_def(TENSOR)
    scale = result_def(TENSOR)
    zero_point = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        require(tensor(self.input).element_type == f32, f"{self.name}: takes f32")
        return [TensorType(UI8, shape(self.input)), TensorType(f32, []), TensorType(UI8, [])]
