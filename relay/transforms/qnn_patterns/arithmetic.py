"""Patterns for sums, differences, products and means of quantized values, in i32."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, f32, f64, i8, i16, i32
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, ints
from relay.dialects.op import DYNAMIC, TensorOp, rank, shape, tensor
from relay.errors import Unsupported
from relay.interpreters import qnn as interpreter
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization, pattern
from relay.transforms.location import place
from relay.transforms.qnn_patterns.rescale import code_bounds, codes_to_i32, finish, rescale, to_even
from relay.transforms.qnn_patterns.tables import every_code


def sides(
    new: Expansion, op: qnn.QnnAddBase | qnn.QnnCompareOp, lhs: SSAValue, rhs: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Both operands' codes, converted to the scale common to both: `rescale((x - zero point) << left_shift)`."""
    lhs = new.left_shift(codes_to_i32(new, lhs, op.lhs_zero_point), op.left_shift.value.data)
    lhs = rescale(new, lhs, op.lhs_multiplier.value.data, op.lhs_shift.value.data, op.rounding)
    rhs = new.left_shift(codes_to_i32(new, rhs, op.rhs_zero_point), op.left_shift.value.data)
    rhs = rescale(new, rhs, op.rhs_multiplier.value.data, op.rhs_shift.value.data, op.rounding)
    return lhs, rhs


def end(new: Expansion, op: qnn.QnnBinaryOp, x: SSAValue) -> SSAValue:
    """`clamp(rescale(x) + output zero point)`."""
    x = rescale(new, x, op.multiplier.value.data, op.shift.value.data, op.rounding)
    return finish(new, x, op.output_zero_point.value.data, op.min, op.max, tensor(op.result).element_type)


def everywhere(new: Expansion, x: SSAValue, result: SSAValue) -> SSAValue:
    """Broadcast 8-bit codes to the result's shape, unless they are constant."""
    constant, narrow = isinstance(x.owner, relay.ConstantOp), dtype_of(tensor(x).element_type).itemsize == 1
    if constant or shape(x) == shape(result) or DYNAMIC in shape(result) or not narrow:
        return x
    return new.broadcast(x, shape(result))


@pattern
def sum_(new: Expansion, op: qnn.AddOp | qnn.SubtractOp) -> SSAValue:
    """qnn.add, qnn.subtract %a, %b  =>  cast(clip(rescale(rescale(a' << L) +- rescale(b' << L)) + zero point))

    The rounding `ort`: cast(clip(rint(fma(%a, a, fma(%b, b, c))))), with the factors a, b, c of `qnn.add`. In the other
    form, a' and b' are the codes minus their zero points, and L is `left_shift`. Broadcasts come before the rescaling,
    so that `expand-apply-scale` can treat the sum of two codes as one rescale.
    """
    if isinstance(op, qnn.AddOp) and op.rounding.data == "ort":
        return fused_sum(new, op)
    lhs, rhs = (everywhere(new, x, op.result) for x in (op.lhs, op.rhs))
    kind: type[TensorOp] = relay.AddOp if isinstance(op, qnn.AddOp) else relay.SubtractOp
    return end(new, op, new.value(kind, *sides(new, op, lhs, rhs)))


def fused_sum(new: Expansion, op: qnn.AddOp) -> SSAValue:
    """`rint(fma(%a, a, fma(%b, b, c)))` with the factors a, b, c of `qnn.add`: by products and sums in f64, each sum
    rounded to f32, if the codes equal the interpreter's for all 65,536 pairs of codes; else by a table with an entry
    per pair."""
    a, b, c = interpreter.fused_sum(op)
    codes: Array = every_code(tensor(op.result).element_type)
    first, second = codes[:, None], codes[None, :]
    wanted = interpreter.add(op, first, second)
    inner = (second * np.float64(b) + np.float64(c)).astype(np.float32)
    total = np.rint((first * np.float64(a) + inner.astype(np.float64)).astype(np.float32))
    low, high = code_bounds(op.min, op.max, tensor(op.result).element_type)
    if np.array_equal(np.clip(total, low, high), wanted):
        y = new.cast(new.plus(new.times(new.cast(op.rhs, f64), np.float64(b)), np.float64(c)), f32)
        x = new.value(relay.AddOp, new.times(new.cast(op.lhs, f64), np.float64(a)), new.cast(y, f64))
        return to_codes(new, new.cast(x, f32), op)
    lhs, rhs = (new.plus(new.cast(x, i32), -int(codes[0])) for x in (op.lhs, op.rhs))
    place = new.plus(new.value(relay.AddOp, new.times(lhs, 256), rhs), -(1 << 15))
    return new.lookup(new.cast(place, i16), wanted.reshape(-1), wanted.dtype)


def to_codes(new: Expansion, x: SSAValue, op: qnn.QnnBinaryOp) -> SSAValue:
    """`clamp(rint(x))` of a float32 x, as codes."""
    type = tensor(op.result).element_type
    return new.cast(new.cast(to_even(new, new.clip(x, *code_bounds(op.min, op.max, type))), i32), type)


@pattern
def multiply(new: Expansion, op: qnn.MulOp) -> SSAValue:
    """qnn.mul %a, %b  =>  cast(clip(rescale((%a - zero point) * (%b - zero point)) + zero point)); `ort`:
    cast(clip(rint(f32(product) * factor + zero point)))"""
    lhs, rhs = codes_to_i32(new, op.lhs, op.lhs_zero_point), codes_to_i32(new, op.rhs, op.rhs_zero_point)
    if op.rounding.data == "ort":
        x = new.times(new.cast(new.value(relay.MultiplyOp, lhs, rhs), f32), interpreter.fused_product(op))
        return to_codes(new, new.plus(x, op.output_zero_point.value.data), op)
    return end(new, op, new.value(relay.MultiplyOp, lhs, rhs))


@pattern
def mean(new: Expansion, op: qnn.MeanOp | qnn.SumOp) -> SSAValue:
    """qnn.mean, qnn.sum %x  =>  cast(clip(rescale(sum(i32(%x)) - count * zero point) + zero point))"""
    axes = op.axes()
    count = prod(shape(op.input)[axis] for axis in axes)
    if count < 0:
        raise Unsupported(place(op), "the reduced axes have no known size", "give the model fixed shapes")
    x = new.cast(op.input, i32)
    if axes:
        x = new.value(relay.SumOp, x, properties={"axis": ints(axes), "keepdims": op.keepdims})
    x = new.subtract(x, count * op.input_zero_point.value.data)
    x = rescale(new, x, op.multiplier.value.data, op.shift.value.data, op.rounding)
    return finish(new, x, op.output_zero_point.value.data, None, None, tensor(op.result).element_type)


@pattern
def dynamic_quantize(new: Expansion, op: qnn.DynamicQuantizeOp) -> tuple[SSAValue, SSAValue]:
    """qnn.dynamic_quantize %x  =>  range = max |%x| (1 where 0); codes = cast(clip(round(%x * (127 / range)))),
    scale = where(range == 0, 1, range / 127)"""
    axes = range(1, rank(op.input))
    batch = shape(op.input)[0]
    if batch == DYNAMIC:
        raise Unsupported(place(op), "the batch is not known", "give the model fixed shapes")
    largest = new.value(relay.AbsOp, op.input)
    if axes:
        keep = {"axis": ints(axes), "keepdims": IntegerAttr.from_bool(True)}
        largest = new.value(relay.MaxOp, largest, properties=keep)
    one, most = new.constant(1.0, "float32"), new.constant(127.0, "float32")
    zero = new.value(relay.EqualOp, largest, new.constant(0.0, "float32"))
    divisor = new.value(relay.WhereOp, zero, one, largest)
    scale = new.value(relay.WhereOp, zero, one, new.value(relay.DivideOp, largest, most))
    codes = new.value(relay.MultiplyOp, op.input, new.value(relay.DivideOp, most, divisor))
    codes = new.clip(new.value(relay.RoundOp, codes), -127, 127)
    assert tensor(scale).element_type == f32
    return new.cast(new.cast(codes, i32), i8), new.reshape(scale, [batch])


@pattern
def dynamic_quantize_linear(new: Expansion, op: qnn.DynamicQuantizeLinearOp) -> tuple[SSAValue, SSAValue, SSAValue]:
    """qnn.dynamic_quantize_linear %x  =>  low, high = min(min %x, 0), max(max %x, 0); scale = (high - low) / 255, but 1
    if high = low; zero point = cast(clip(rint(-low / scale))); codes = cast(clip(rint(%x / scale) + zero point))"""
    axes = {"axis": ints(range(rank(op.input)))}
    zero = new.constant(0.0, "float32")
    low = new.value(relay.MinimumOp, new.value(relay.MinOp, op.input, properties=axes), zero)
    high = new.value(relay.MaximumOp, new.value(relay.MaxOp, op.input, properties=axes), zero)
    width = new.value(relay.SubtractOp, high, low)
    scale = new.value(relay.DivideOp, width, new.constant(255.0, "float32"))
    empty = new.value(relay.EqualOp, width, zero)
    scale = new.value(relay.WhereOp, empty, new.constant(1.0, "float32"), scale)
    point = new.value(relay.DivideOp, new.value(relay.NegativeOp, low), scale)
    point = to_even(new, new.clip(point, 0, 255))
    codes = to_even(new, new.clip(new.value(relay.DivideOp, op.input, scale), -255, 255))
    codes = new.clip(new.value(relay.AddOp, codes, point), 0, 255)
    type = tensor(op.zero_point).element_type
    return new.cast(new.cast(codes, i32), type), scale, new.cast(new.cast(point, i32), type)


PATTERNS: list[type[Legalization]] = [sum_, multiply, mean, dynamic_quantize, dynamic_quantize_linear]
