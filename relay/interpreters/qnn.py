"""Numpy implementation of quantized ops, as TFLite's reference kernels compute them. Recurrent ops are in
`qnn_recurrent`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from relay.dialects import qnn
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import tensor
from relay.interpreters import elementwise, nn, tflm
from relay.interpreters.arithmetic import (
    FIXED32,
    INT32_MAX,
    INT32_MIN,
    Dtype,
    Int64,
    code_range,
    fused_multiply_add,
    int64,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    reciprocal,
    round_away,
    rounding_doubling_high_multiply,
    rounding_right_shift,
    wrap32,
)
from relay.interpreters.convolution import conv_transpose
from relay.interpreters.fixed_point import lookup_codes
from relay.interpreters.matmul import batch_matmul
from relay.interpreters.meaning import Meanings, number, parameter
from relay.interpreters.softmax16 import softmax16


def to_codes(
    x: Int64,
    zero_point: npt.ArrayLike,
    dtype: Dtype,
    low: IntegerAttr | None = None,
    high: IntegerAttr | None = None,
) -> Array:
    """`x + zero_point`, clamped to the bounds, where given, and to the range of `dtype`."""
    lowest, highest = code_range(dtype)
    moved = x + int64(zero_point)
    if low is not None:
        moved = np.maximum(moved, number(low))
    if high is not None:
        moved = np.minimum(moved, number(high))
    return np.clip(moved, lowest, highest).astype(dtype)


def to_int32(x: Array) -> Int64:
    """Convert floats without fraction to integers, saturated to the range of int32."""
    return np.clip(x.astype(np.float64), INT32_MIN, INT32_MAX).astype(np.int64)


def quantize(op: qnn.QuantizeOp, x: Array) -> Array:
    axis = op.axis.value.data
    scale, zero_point = parameter(op.scale, axis, x.ndim), parameter(op.zero_point, axis, x.ndim)
    match op.rounding.data:
        case "even_inverse":
            steps = np.rint(x * (np.float32(1) / scale))
        case "even_sum":
            steps, zero_point = np.rint(x / scale + zero_point.astype(np.float32)), np.zeros_like(zero_point)
        case "even":
            steps = np.rint(x / scale)
        case _:
            steps = round_away(x / scale)
    numbers = np.where(np.isnan(steps), -np.inf, steps)
    return to_codes(to_int32(numbers), zero_point, dtype_of(op.out_dtype))


def dequantize(op: qnn.DequantizeOp, codes: Array) -> Array:
    axis = op.axis.value.data
    scale = parameter(op.scale, axis, codes.ndim)
    steps = int64(codes) - parameter(op.zero_point, axis, codes.ndim)
    if scale.ndim == 0 and op.product.data == "f64":
        return (scale.astype(np.float64) * steps).astype(np.float32)
    return scale * steps.astype(np.float32)


def requantize(op: qnn.RequantizeOp, x: Array) -> Array:
    axis, rounding = op.axis.value.data, op.rounding.data
    steps = int64(x) - number(op.input_zero_point)
    if rounding == "f64_away":
        assert op.real_multiplier is not None
        rescaled = to_int32(round_away(steps * parameter(op.real_multiplier, axis, x.ndim).astype(np.float64)))
    elif rounding == "f32_even":
        scale = single_multiplier(op, x.ndim)
        rescaled = to_int32(np.rint(steps.astype(np.float32) * scale))
    else:
        multiplier, shift = parameter(op.multiplier, axis, x.ndim), parameter(op.shift, axis, x.ndim)
        if x.dtype == np.int64:
            rescaled = multiply_by_quantized_multiplier_64(steps, multiplier, shift)
        else:
            rescaled = multiply_by_quantized_multiplier(wrap32(steps), multiplier, shift, rounding)
    return to_codes(rescaled, number(op.output_zero_point), dtype_of(op.out_dtype), op.min, op.max)


def single_multiplier(op: qnn.RequantizeOp, rank: int) -> Array:
    """The float32 factor by which the rounding `f32_even` multiplies: `real_multiplier` if the op has it, else
    `input_scale / output_scale`; as an array that broadcasts against a tensor of rank `rank`."""
    if op.real_multiplier is not None:
        return parameter(op.real_multiplier, op.axis.value.data, rank).astype(np.float32)
    return parameter(op.input_scale, op.axis.value.data, rank).astype(np.float32) / to_numpy(op.output_scale)


def common_scale(op: qnn.AlignedOp, lhs: Array, rhs: Array) -> tuple[Int64, Int64]:
    """Both operands minus their zero points, rescaled to the common scale in which the op computes."""
    left_shift, rounding = number(op.left_shift), op.rounding.data
    a = wrap32((int64(lhs) - number(op.lhs_zero_point)) << left_shift)
    b = wrap32((int64(rhs) - number(op.rhs_zero_point)) << left_shift)
    return (
        multiply_by_quantized_multiplier(a, number(op.lhs_multiplier), number(op.lhs_shift), rounding),
        multiply_by_quantized_multiplier(b, number(op.rhs_multiplier), number(op.rhs_shift), rounding),
    )


def rescaled_result(op: qnn.QnnBinaryOp, raw: Int64, dtype: Dtype) -> Array:
    """Rescale an int32 result and convert it to quantized values of the op's result type."""
    scaled = multiply_by_quantized_multiplier(wrap32(raw), number(op.multiplier), number(op.shift), op.rounding.data)
    return to_codes(scaled, number(op.output_zero_point), dtype, op.min, op.max)


def single(attr: Attribute) -> Array:
    """A scale or a zero point as float32."""
    return to_numpy(attr).astype(np.float32)


def fused_sum(op: qnn.AddOp) -> tuple[Array, Array, Array]:
    """The coefficients (a, b, c) of `lhs * a + rhs * b + c`, which the rounding `ort` computes."""
    a, b = (single(scale) / single(op.output_scale) for scale in (op.lhs_scale, op.rhs_scale))
    zero = fused_multiply_add(single(op.lhs_zero_point), a, single(op.rhs_zero_point) * b)
    return a, b, single(op.output_zero_point) - zero


def fused_product(op: qnn.MulOp) -> Array:
    """The factor of the product that the rounding `ort` computes: lhs_scale * rhs_scale / output_scale."""
    return single(op.lhs_scale) * single(op.rhs_scale) / single(op.output_scale)


def add(op: qnn.AddOp, lhs: Array, rhs: Array) -> Array:
    if op.rounding.data == "ort":
        a, b, c = fused_sum(op)
        total = fused_multiply_add(lhs, a, fused_multiply_add(rhs, b, c))
        return to_codes(to_int32(np.rint(total)), 0, lhs.dtype, op.min, op.max)
    a, b = common_scale(op, lhs, rhs)
    return rescaled_result(op, a + b, lhs.dtype)


def subtract(op: qnn.SubtractOp, lhs: Array, rhs: Array) -> Array:
    a, b = common_scale(op, lhs, rhs)
    return rescaled_result(op, a - b, lhs.dtype)


def mul(op: qnn.MulOp, lhs: Array, rhs: Array) -> Array:
    product = (int64(lhs) - number(op.lhs_zero_point)) * (int64(rhs) - number(op.rhs_zero_point))
    if op.rounding.data == "ort":
        total = product.astype(np.float32) * fused_product(op) + single(op.output_zero_point)
        return to_codes(to_int32(np.rint(total)), 0, lhs.dtype, op.min, op.max)
    return rescaled_result(op, product, lhs.dtype)


def mean(op: qnn.QnnReduceOp, x: Array) -> Array:
    steps = int64(x) - number(op.input_zero_point)
    total = np.add.reduce(steps, axis=op.axes(), keepdims=bool(op.keepdims.value.data))
    scaled = multiply_by_quantized_multiplier(wrap32(total), number(op.multiplier), number(op.shift), op.rounding.data)
    return to_codes(scaled, number(op.output_zero_point), x.dtype)


def softmax_exp_table(multiplier: int, shift: int) -> npt.NDArray[np.int32]:
    """Return a table of `exp(beta * scale * d)` in Q0.31 for the differences d = -255..0 from the largest quantized
    value (entry 255 is d = 0). `multiplier` and `shift`, as in `qnn.softmax`, stand for `beta * scale * 2^26`.

    Entries for differences below `-floor(31 * 2^26 / 2^shift)` are 0: they add nothing to the sum, and their
    probability becomes the lowest quantized value. Source: TFLite's reference SOFTMAX (5 integer bits).
    """
    difference = np.arange(-255, 1, dtype=np.int64)
    live = difference >= -int(31 * 2.0 ** (26 - shift))
    scaled = wrap32(np.where(live, difference, 0) << max(shift, 0))
    power = FIXED32.exp_on_negative_values(rounding_doubling_high_multiply(scaled, multiplier), 5)
    return np.where(live, power, 0).astype(np.int32)


def softmax(op: qnn.SoftmaxOp, x: Array) -> Array:
    if not x.size:
        return x
    if x.dtype.itemsize == 2:
        return softmax16(op, x)
    table = softmax_exp_table(number(op.multiplier), number(op.shift))
    difference = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
    power = table[difference + 255].astype(np.int64)
    total = wrap32(np.add.reduce(rounding_right_shift(power, 12), axis=-1, keepdims=True))
    mantissa, headroom = reciprocal(total)
    result = rounding_right_shift(rounding_doubling_high_multiply(mantissa, power), 12 - headroom + 31 - 8)
    return to_codes(result, code_range(x.dtype)[0], x.dtype)


def softmax_powers(scale: np.float32, length: int) -> Array:
    """A table for `qnn.table_softmax`: `exp` of the scaled differences -255..0 from the largest quantized value,
    multiplied by a factor chosen so that sums of `length` entries fit in float32."""
    room = float(np.log(np.finfo(np.float32).max / np.float32(length)))
    shift = max(0.0, room - 5) / float(scale)
    return np.exp((np.arange(-255, 1) + shift) * float(scale)).astype(np.float32)


def table_softmax(op: qnn.TableSoftmaxOp, x: Array) -> Array:
    if not x.size:
        return x
    difference = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
    power = softmax_powers(np.float32(single(op.input_scale)), max(x.shape[-1], 1))[difference + 255]
    # add in the order of the elements; np.add.reduce uses another order
    total = np.add.accumulate(power, axis=-1)[..., -1:]
    steps = np.rint(power * np.float64(np.floor(np.float32(1) / single(op.output_scale))) / total)
    return to_codes(to_int32(steps), number(op.output_zero_point), x.dtype)


FUNCTIONS: dict[type[qnn.QnnUnaryOp], Callable[[Array], Array]] = {
    qnn.SigmoidOp: elementwise.sigmoid,
    qnn.TanhOp: elementwise.tanh,
}
"""The float32 function that each op tabulates."""


def unary_table(op: qnn.QnnUnaryOp) -> Array:
    """The op's result for each quantized input value, from the lowest on, in the input's type."""
    dtype = dtype_of(tensor(op.input).element_type)
    lowest, highest = code_range(dtype)
    if dtype.itemsize == 2:
        return tflm.curve16(op)
    if op.numerics.data == "tflm":
        return (tflm.curve8(op, np.arange(lowest, highest + 1)) + (lowest + 128)).astype(dtype)
    return tabulated(op, FUNCTIONS[type(op)], dtype)


def tabulated(op: qnn.CodesOp, function: Callable[[Array], Array], dtype: Dtype) -> Array:
    """The function's result for each quantized input value, from the lowest on; computed in float32."""
    lowest, highest = code_range(dtype)
    steps = (np.arange(lowest, highest + 1) - number(op.input_zero_point)).astype(np.float32)
    real = function(single(op.input_scale) * steps)
    inverse = np.float32(1) / single(op.output_scale)
    return to_codes(to_int32(round_away(real * inverse) + np.float32(number(op.output_zero_point))), 0, dtype)


def unary(op: qnn.QnnUnaryOp, x: Array) -> Array:
    return lookup_codes(unary_table(op), x)


def concatenate(op: qnn.ConcatenateOp, *inputs: Array) -> Array:
    out_scale, out_zero_point = to_numpy(op.output_scale).astype(np.float32), number(op.output_zero_point)
    parts: list[Array] = []
    for x, scale, zero_point in zip(inputs, to_numpy(op.input_scales), to_numpy(op.input_zero_points), strict=True):
        if scale == out_scale and zero_point == out_zero_point:
            parts.append(x)
            continue
        factor = np.float32(scale) * (np.float32(1) / out_scale)
        steps = round_away(x.astype(np.float32) * factor + np.float32(-int(zero_point)) * factor)
        parts.append(to_codes(to_int32(steps), out_zero_point, x.dtype))
    return np.concatenate(parts, op.axis.value.data)


def dynamic_quantize(op: qnn.DynamicQuantizeOp, x: Array) -> tuple[Array, Array]:
    largest = np.abs(x).max(axis=tuple(range(1, x.ndim)), keepdims=True)
    known = largest != 0
    factor = np.float32(127) / np.where(known, largest, np.float32(1))
    codes = np.where(known, np.clip(round_away(x * factor), -127, 127), 0).astype(np.int8)
    return codes, np.where(known, largest / np.float32(127), np.float32(1)).reshape(x.shape[:1])


def dynamic_quantize_linear(op: qnn.DynamicQuantizeLinearOp, x: Array) -> tuple[Array, Array, Array]:
    low, high = np.minimum(x.min(initial=0), np.float32(0)), np.maximum(x.max(initial=0), np.float32(0))
    scale = np.asarray((high - low) / np.float32(255) if high > low else 1, np.float32)
    zero_point = to_codes(to_int32(np.rint(-low / scale)), 0, np.dtype(np.uint8))
    return to_codes(to_int32(np.rint(x / scale)), zero_point, np.dtype(np.uint8)), scale, zero_point


MEANINGS: Meanings = {
    qnn.QuantizeOp: quantize,
    qnn.DequantizeOp: dequantize,
    qnn.RequantizeOp: requantize,
    qnn.Conv2dOp: nn.conv2d,
    qnn.DenseOp: nn.dense,
    qnn.Conv2dTransposeOp: conv_transpose,
    qnn.BatchMatmulOp: batch_matmul,
    qnn.AddOp: add,
    qnn.SubtractOp: subtract,
    qnn.MulOp: mul,
    qnn.MeanOp: mean,
    qnn.SumOp: mean,
    qnn.SoftmaxOp: softmax,
    qnn.TableSoftmaxOp: table_softmax,
    qnn.SigmoidOp: unary,
    qnn.TanhOp: unary,
    qnn.ConcatenateOp: concatenate,
    qnn.DynamicQuantizeOp: dynamic_quantize,
    qnn.DynamicQuantizeLinearOp: dynamic_quantize_linear,
}
