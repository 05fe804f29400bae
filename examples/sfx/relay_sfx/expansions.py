"""Ops of `sfx` as ops of relay that mean the same."""

import numpy as np
from xdsl.dialects.builtin import f32, i8, i16, i32, i64

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.transforms.expansion import Expansion, along
from relay_sfx import ops


def power(numbers, axis, x):
    """2^numbers, shaped so that it broadcasts against x."""
    return np.ldexp(1.0, along(int_values(numbers), axis.value.data, x) if len(numbers) > 1 else int_values(numbers)[0])


def saturated(new: Expansion, x, bits):
    most = 2 ** (bits.value.data - 1)
    return new.cast(new.clip(x, -most, most - 1), i8 if bits.value.data <= 8 else i16)


def quantize(new: Expansion, op: ops.QuantizeOp):
    """sfx.quantize %x  =>  cast (clip (round (%x * 2^exponents)))"""
    scaled = new.times(op.input, power(op.exponents, op.axis, op.input))
    return saturated(new, new.value(relay.RoundOp, scaled), op.bits)


def dequantize(new: Expansion, op: ops.DequantizeOp):
    """sfx.dequantize %x  =>  (cast %x : f32) * 2^-exponents"""
    return new.times(new.cast(op.input, f32), 1 / power(op.exponents, op.axis, op.input))


def rescale(new: Expansion, op: ops.RescaleOp):
    """sfx.rescale %x  =>  cast (clip ((((cast %x : i64) << left) + half) >> right))"""
    shifts = np.array(int_values(op.shifts))
    shifts = along(shifts, op.axis.value.data, op.input) if len(shifts) > 1 else shifts[0]
    right, left = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    wide = new.plus(new.left_shift(new.cast(op.input, i64), left), (1 << right) >> 1)
    if np.any(right):
        wide = new.value(relay.RightShiftOp, wide, new.constant_like(right, wide))
    return saturated(new, wide, op.bits)


def add(new: Expansion, op: ops.AddOp):
    """sfx.add %a, %b  =>  cast (clip ((cast %a : i32) + (cast %b : i32)))"""
    return saturated(new, new.value(relay.AddOp, new.cast(op.lhs, i32), new.cast(op.rhs, i32)), op.bits)


def dense(new: Expansion, op: ops.DenseOp):
    """sfx.dense %x, %k, %b  =>  cast (clip ((cast (nn.dense %x, %k) : i64) + (cast %b : i64)))"""
    sums = new.cast(new.value(relay.DenseOp, op.data, op.kernel), i64)
    whole = new.value(relay.AddOp, sums, new.cast(op.bias, i64))
    return new.cast(new.clip(whole, -(2**31), 2**31 - 1), i32)


EXPANSIONS = {
    ops.QuantizeOp: quantize,
    ops.DequantizeOp: dequantize,
    ops.RescaleOp: rescale,
    ops.AddOp: add,
    ops.DenseOp: dense,
}
