"""Patterns for requantize, quantize, dequantize; and `rescale` and `finish`, which other patterns use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerAttr, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import tensor
from relay.dialects.qnn.parameters import TFLITE
from relay.errors import Unsupported
from relay.transforms.expansion import Expansion, along, limits
from relay.transforms.legalization import Legalization, pattern
from relay.transforms.location import place

TO_EVEN = 1.5 * 2.0**23
"""Adding this to a float32 below 2^22 and subtracting it again rounds to the nearest integer, halves to even."""


def codes_to_i32(new: Expansion, x: SSAValue, zero_point: IntegerAttr) -> SSAValue:
    """`i32(x) - zero_point`."""
    return new.subtract(new.cast(x, i32), zero_point.value.data)


def rescale(
    new: Expansion, x: SSAValue, multiplier: npt.ArrayLike, shift: npt.ArrayLike, rounding: Attribute, axis: int = -1
) -> SSAValue:
    """`x * multiplier * 2^(shift-31)` in i32, rounded by `relay.fixed_point_multiply`. With the rounding `tflite`, a
    shift above 0 is a left shift of x, which wraps, before the product. With other roundings nothing wraps, and x
    itself is returned for a factor of 1."""
    exponent = np.asarray(shift)
    if rounding == TFLITE:
        x = new.left_shift(x, along(np.maximum(exponent, 0), axis, x))
        exponent = np.minimum(exponent, 0)
    elif np.all(np.asarray(multiplier) == 1 << 30) and np.all(exponent == 1):
        return x
    factors = [new.constant(multiplier, np.int32), new.constant(exponent, np.int32)]
    properties = {"axis": IntegerAttr(axis, i64), "rounding": rounding}
    return new.value(relay.FixedPointMultiplyOp, x, *factors, properties=properties)


def rescale_i64(new: Expansion, x: SSAValue, multiplier: npt.ArrayLike, shift: npt.ArrayLike, axis: int) -> SSAValue:
    """Rescale an i64 accumulator: `i32((x * m16 + 2^(14-shift)) >> (15-shift))`, which wraps, the multiplier rounded to
    16 bits.

    Source: TFLite's MultiplyByQuantizedMultiplier for int64.
    """
    m, amount = np.asarray(multiplier, np.int64), 15 - np.asarray(shift, np.int64)
    narrow = np.where(m < 0x7FFF0000, (m + (1 << 15)) >> 16, 0x7FFF)
    x = new.plus(new.times(x, along(narrow, axis, x)), along(np.left_shift(np.int64(1), amount - 1), axis, x))
    return new.cast(new.value(relay.RightShiftOp, x, new.constant(along(amount, axis, x), np.int64)), i32)


def code_bounds(low: IntegerAttr | None, high: IntegerAttr | None, type: Attribute) -> tuple[int, int]:
    """The clamp bounds `low` and `high`, limited to the range of the integer type; an absent bound is the type's."""
    least, most = limits(type)
    bottom = least if low is None else min(max(low.value.data, least), most)
    return bottom, most if high is None else min(max(high.value.data, least), most)


def finish(
    new: Expansion, x: SSAValue, zero_point: int, low: IntegerAttr | None, high: IntegerAttr | None, type: Attribute
) -> SSAValue:
    """`type(min(max(x + zero_point, low), high))`; values are clipped to the type's full range, too, because casts
    wrap."""
    return new.cast(new.clip(new.plus(x, zero_point), *code_bounds(low, high, type)), type)


@pattern
def requantize(new: Expansion, op: qnn.RequantizeOp) -> SSAValue:
    """qnn.requantize %x  =>  cast(clip(rescale(i32(%x) - zero point) + zero point))

    The op's `rounding` decides how rescale is computed: `f64_away` as round(f64(x) * real_multiplier); `f32_even` as
    the float32 product, clipped, and rounded to even by adding and subtracting 1.5 * 2^23; any other by
    `relay.fixed_point_multiply`.
    """
    wide = tensor(op.input).element_type == i64
    x = new.subtract(op.input if wide else new.cast(op.input, i32), op.input_zero_point.value.data)
    multiplier, shift, axis = to_numpy(op.multiplier), to_numpy(op.shift), op.axis.value.data
    match op.rounding.data:
        case "f64_away":
            return float64_product(new, op, x)
        case "f32_even":
            return float32_product(new, op, x)
        case rounding if wide and rounding != "tflite":
            raise Unsupported(place(op), f"rounding {rounding} of 64-bit sums", "use tflite or f64_away")
        case _:
            rescaled = (
                rescale_i64(new, x, multiplier, shift, axis)
                if wide
                else rescale(new, x, multiplier, shift, op.rounding, axis)
            )
            return finish(new, rescaled, op.output_zero_point.value.data, op.min, op.max, op.out_dtype)


def real_multiplier(op: qnn.RequantizeOp) -> npt.NDArray[np.float64]:
    """The property `real_multiplier`, or the quotient of the scales."""
    if op.real_multiplier is not None:
        return to_numpy(op.real_multiplier).astype(np.float64)
    return to_numpy(op.input_scale).astype(np.float64) / to_numpy(op.output_scale).astype(np.float64)


def float64_product(new: Expansion, op: qnn.RequantizeOp, x: SSAValue) -> SSAValue:
    """`clamp(round(f64(x) * factor) + zero point)`; an i32 x times a factor below 0.999 fits i32; other products are
    clipped in f64, before the cast to i32."""
    factor, axis, zero_point = real_multiplier(op), op.axis.value.data, op.output_zero_point.value.data
    fits = tensor(x).element_type == i32 and float(factor.max()) < 0.999
    x = new.value(relay.RoundOp, new.times(new.cast(x, f64), along(factor, axis, x)))
    if fits:
        return finish(new, new.cast(x, i32), zero_point, op.min, op.max, op.out_dtype)
    low, high = code_bounds(op.min, op.max, op.out_dtype)
    x = new.clip(x, low - zero_point, high - zero_point)
    return new.cast(new.plus(new.cast(x, i32), zero_point), op.out_dtype)


def float32_product(new: Expansion, op: qnn.RequantizeOp, x: SSAValue) -> SSAValue:
    """`clamp(rint(f32(x) * f32(factor)) + zero point)`; the product is clipped before it is rounded, which gives the
    same result, since the bounds are integers."""
    factor, axis, zero_point = real_multiplier(op), op.axis.value.data, op.output_zero_point.value.data
    low, high = code_bounds(op.min, op.max, op.out_dtype)
    if max(abs(low - zero_point), abs(high - zero_point)) > 1 << 22:
        raise Unsupported(place(op), f"rounding f32_even to {op.out_dtype}", "use 8- or 16-bit codes")
    x = new.times(new.cast(x, f32), along(factor.astype(np.float32), axis, x))
    x = to_even(new, new.clip(x, low - zero_point, high - zero_point))
    return new.cast(new.plus(new.cast(x, i32), zero_point), op.out_dtype)


def to_even(new: Expansion, x: SSAValue) -> SSAValue:
    """rint(x) of float32 values below 2^22, or of float64 values below 2^51."""
    large = TO_EVEN * 2**29 if tensor(x).element_type == f64 else TO_EVEN
    return new.subtract(new.plus(x, large), large)


def clip_numbers(new: Expansion, x: SSAValue, low: float, high: float) -> SSAValue:
    """Clip floats to bounds; NaN becomes the lower bound, as in the reference compiled for x86."""
    least = new.constant_like(low, x)
    raised = new.value(relay.WhereOp, new.value(relay.GreaterOp, x, least), x, least)
    return new.value(relay.MinimumOp, raised, new.constant_like(high, x))


@pattern
def quantize(new: Expansion, op: qnn.QuantizeOp) -> SSAValue:
    """qnn.quantize %x  =>  cast(i32(clip(round(%x / scale))) + zero point); `even_inverse` multiplies by 1 / scale
    instead of dividing, `even_sum` adds the zero point before rounding

    The clip is before the cast, so that floats beyond the integers' range give the nearest code, and NaN the lowest.
    """
    axis = op.axis.value.data
    scale, zero_point = to_numpy(op.scale).astype(np.float32), to_numpy(op.zero_point).astype(np.int64)
    least, most = limits(op.out_dtype)
    if op.rounding.data == "even_inverse":
        x = new.times(op.input, along(np.float32(1) / scale, axis, op.input))
    else:
        x = new.value(relay.DivideOp, op.input, new.constant(along(scale, axis, op.input), np.float32))
    if op.rounding.data == "even_sum":
        x = new.plus(x, along(zero_point, axis, x))
        zero_point = np.zeros((), np.int64)
    bounds = least - int(zero_point.max()), most - int(zero_point.min())
    if op.rounding.data == "away":
        x = clip_numbers(new, new.value(relay.RoundOp, x), *bounds)
    else:
        x = to_even(new, clip_numbers(new, x, *bounds))
    x = new.plus(new.cast(x, i32), along(zero_point, axis, x))
    if zero_point.size > 1:
        x = new.clip(x, least, most)
    return new.cast(x, op.out_dtype)


@pattern
def dequantize(new: Expansion, op: qnn.DequantizeOp) -> SSAValue:
    """qnn.dequantize %x  =>  f32(i32(%x) - zero point) * scale

    For 8- and 16-bit codes with one scale the float32 product equals the float64 product of the reference, rounded to
    float32. The product of 32-bit codes with one scale is computed in f64, unless the op's `product` is `f32`.
    """
    axis = op.axis.value.data
    scale, zero_point = to_numpy(op.scale), to_numpy(op.zero_point)
    x = new.subtract(new.cast(op.input, i32), along(zero_point, axis, op.input))
    exact = (
        scale.ndim > 0
        or op.product.data == "f32"
        or (limits(tensor(op.input).element_type)[1] < 1 << 16 and scale.dtype == np.float32)
    )
    x = new.cast(x, Float32Type() if exact else Float64Type())
    return new.cast(new.times(x, along(scale, axis, x)), f32)


PATTERNS: list[type[Legalization]] = [requantize, quantize, dequantize]
