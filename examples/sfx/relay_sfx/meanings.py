"""What the ops of `sfx` mean: functions of numpy arrays, one for each op."""

import numpy as np

from relay.dialects.attributes import int_values
from relay_sfx import ops


def along(numbers, axis, x):
    """One number, or one for each index of the axis, shaped so that it broadcasts against x."""
    numbers = np.array(int_values(numbers), np.int64)
    if len(numbers) == 1:
        return numbers[0]
    return numbers.reshape([-1 if d == axis.value.data % x.ndim else 1 for d in range(x.ndim)])


def saturated(x, bits):
    most = 2 ** (bits.value.data - 1)
    return np.clip(x, -most, most - 1).astype(np.int8 if bits.value.data <= 8 else np.int16)


def quantize(op: ops.QuantizeOp, x):
    scaled = np.ldexp(x.astype(np.float64), along(op.exponents, op.axis, x))
    return saturated(np.copysign(np.floor(np.abs(scaled) + 0.5), scaled), op.bits)


def dequantize(op: ops.DequantizeOp, codes):
    return np.ldexp(codes.astype(np.float32), -along(op.exponents, op.axis, codes)).astype(np.float32)


def rescale(op: ops.RescaleOp, x):
    shifts = along(op.shifts, op.axis, x)
    right, left = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    half = (np.int64(1) << right) >> 1
    return saturated(((x.astype(np.int64) << left) + half) >> right, op.bits)


def add(op: ops.AddOp, lhs, rhs):
    return saturated(lhs.astype(np.int64) + rhs, op.bits)


def dense(op: ops.DenseOp, data, kernel, bias):
    sums = data.astype(np.int64) @ kernel.astype(np.int64).T + bias
    return np.clip(sums, -(2**31), 2**31 - 1).astype(np.int32)


MEANINGS = {
    ops.QuantizeOp: quantize,
    ops.DequantizeOp: dequantize,
    ops.RescaleOp: rescale,
    ops.AddOp: add,
    ops.DenseOp: dense,
}
