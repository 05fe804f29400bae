"""Numpy implementation of quantized functions of one tensor, as TFLite's reference kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from relay.dialects import qnn
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import tensor
from relay.interpreters.arithmetic import (
    FIXED16,
    FIXED32,
    INT32_MAX,
    Int64,
    code_range,
    int64,
    leading_zeros32,
    multiply_by_quantized_multiplier,
    rounding_doubling_high_multiply,
    rounding_right_shift,
    truncating_divide,
    wrap32,
)
from relay.interpreters.elementwise import exp, in_double
from relay.interpreters.fixed_point import lookup_codes
from relay.interpreters.meaning import Meanings, number
from relay.interpreters.qnn import tabulated, to_codes, to_int32
from relay.interpreters.softmax16 import lines

HALF_SQRT_2 = 1518500250
"""sqrt(2) / 2 in Q0.31."""

erfc = in_double(np.vectorize(math.erfc, otypes=[np.float64]))
expm1, log, tanh = in_double(np.expm1), in_double(np.log), in_double(np.tanh)


def gelu(op: qnn.GeluOp, x: Array) -> Array:
    half, one = np.float32(0.5), np.float32(1)
    if op.approximate.value.data:
        inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
        return half * x * (one + tanh(inner))
    return half * x * erfc(-x * np.float32(math.sqrt(0.5)))


def elu(op: qnn.EluOp, x: Array) -> Array:
    return np.where(x < 0, expm1(x), x)


def logarithm(op: qnn.LogOp, x: Array) -> Array:
    lowest = code_range(dtype_of(tensor(op.input).element_type))[0]
    least = np.float32(lowest - number(op.output_zero_point)) * single(op.output_scale)
    return np.where(x > 0, log(np.where(x > 0, x, np.float32(1))), least)


def inverse_root(op: qnn.RsqrtOp, x: Array) -> Array:
    highest = code_range(dtype_of(tensor(op.input).element_type))[1]
    most = np.float32(highest) * single(op.output_scale)
    return np.where(x > 0, np.float32(1) / np.sqrt(np.where(x > 0, x, np.float32(1))), most)


REALS: dict[type[qnn.QnnFunctionOp], Callable[[Any, Array], Array]] = {
    qnn.GeluOp: gelu,
    qnn.EluOp: elu,
    qnn.ExpOp: lambda op, x: exp(x),
    qnn.LogOp: logarithm,
    qnn.RsqrtOp: inverse_root,
}
"""The float32 function that each op tabulates."""


def single(attr: Any) -> np.float32:
    """A scale as float32."""
    return np.float32(to_numpy(attr))


def table(op: qnn.QnnFunctionOp) -> Array:
    """The op's result for each quantized input value, from the lowest on."""
    function = partial(REALS[type(op)], op)
    dtype = dtype_of(tensor(op.input).element_type)
    return table16(op, function) if dtype.itemsize == 2 else tabulated(op, function, dtype)


def table16(op: qnn.QnnFunctionOp, function: Callable[[Array], Array]) -> Array:
    """The table of a 16-bit function: linear interpolation between 513 samples, computed in float32."""
    low, high = np.float32(-(1 << 15)), np.float32((1 << 15) - 1)
    source, target = single(op.input_scale), single(op.output_scale)
    zero, out_zero = np.float32(number(op.input_zero_point)), np.float32(number(op.output_zero_point))
    first, last = source * (low - zero), source * (high - zero)
    return lines(function, first, last, np.float32(1 << 16) / (target * (high - out_zero) - target * (low - out_zero)))


def by_table(op: qnn.TableOp, x: Array) -> Array:
    return lookup_codes(table(op), x)


def inverse_square_root(x: Int64) -> tuple[Int64, Int64]:
    """Return (m, s) with `1 / sqrt(x) ~ m * 2^(s - 31)`, s <= 0, for integers x; for 0 and 1 m is the largest int32 and
    s is 0.

    Five Newton-Raphson steps, from 1 in Q3.28, for x shifted to [2^27, 2^29). Source: TFLite
    `GetInvSqrtQuantizedMultiplierExp`.
    """
    large = x >= 1 << 29
    moved = np.maximum(np.where(large, x >> 2, x), 2)
    pairs = (leading_zeros32(moved) - 1) // 2 - 1
    shift = 11 + large - pairs
    number = (moved << (2 * pairs)) >> 1
    half = rounding_right_shift(number, 1)
    y = np.full_like(number, 1 << 28)
    for _ in range(5):
        cube = rounding_doubling_high_multiply(rounding_doubling_high_multiply(y, y), y)
        cube = FIXED32.saturating_left_shift(cube, 6)
        product = rounding_doubling_high_multiply((1 << 28) + (1 << 27), y)
        y = FIXED32.saturating_left_shift(wrap32(product - rounding_doubling_high_multiply(half, cube)), 3)
    root = rounding_doubling_high_multiply(y, HALF_SQRT_2) << np.maximum(-shift, 0)
    known = x > 1
    return np.where(known, wrap32(root), INT32_MAX), np.where(known, -np.maximum(shift, 0), 0)


def rsqrt(op: qnn.RsqrtOp, x: Array) -> Array:
    if x.dtype.itemsize == 2:
        return lookup_codes(table(op), x)
    steps = int64(x) - number(op.input_zero_point)
    mantissa, exponent = inverse_square_root(np.maximum(steps, 1))
    root = multiply_by_quantized_multiplier(np.ones_like(steps), mantissa, exponent + 20)
    scaled = multiply_by_quantized_multiplier(root, number(op.multiplier), number(op.shift) - 20)
    highest = code_range(x.dtype)[1]
    return np.where(steps > 0, to_codes(scaled, number(op.output_zero_point), x.dtype), highest).astype(x.dtype)


def sqrt(op: qnn.SqrtOp, x: Array) -> Array:
    steps = (int64(x) - number(op.input_zero_point)).astype(np.float32)
    root = np.sqrt(np.maximum(single(op.input_scale) * steps, np.float32(0)))
    return to_codes(to_int32(np.trunc(root / single(op.output_scale))), number(op.output_zero_point), x.dtype)


def absolute(op: qnn.AbsOp, x: Array) -> Array:
    steps = np.abs(int64(x) - number(op.input_zero_point))
    if op.multiplier is not None:
        steps = multiply_by_quantized_multiplier(steps, number(op.multiplier), number(op.shift))
    return to_codes(steps, number(op.output_zero_point), x.dtype)


def leaky_relu(op: qnn.LeakyReluOp, x: Array) -> Array:
    steps = int64(x) - number(op.input_zero_point)
    kept = multiply_by_quantized_multiplier(steps, number(op.multiplier), number(op.shift))
    sloped = multiply_by_quantized_multiplier(steps, number(op.alpha_multiplier), number(op.alpha_shift))
    sloped = -sloped if float(to_numpy(op.alpha)) < 0 else sloped
    return to_codes(np.where(steps >= 0, kept, sloped), number(op.output_zero_point), x.dtype)


def hard_swish(op: qnn.HardSwishOp, x: Array) -> Array:
    high = (int64(x) - number(op.input_zero_point)) << 7
    scaled = FIXED16.multiply(high, number(op.output_multiplier))
    ramp, shift = high, number(op.relu_shift)
    if shift > 0:
        ramp = FIXED16.saturating_left_shift(ramp, shift - 1)
    ramp = FIXED16.multiply(ramp, number(op.relu_multiplier))
    ramp = FIXED16.saturating_left_shift(ramp, 1) if shift > 0 else FIXED16.rounding_right_shift(ramp, -shift)
    ramp = (ramp + (1 << 15)) >> 1
    product = truncating_divide(ramp * scaled, 1 << 15)
    result = FIXED16.rounding_right_shift(product, -number(op.output_shift))
    return to_codes(result, number(op.output_zero_point), x.dtype)


def l2_normalize(op: qnn.L2NormalizeOp, x: Array) -> Array:
    steps = int64(x) - number(op.input_zero_point)
    mantissa, exponent = inverse_square_root(wrap32(np.add.reduce(steps * steps, axis=-1, keepdims=True)))
    if x.dtype == np.int8:
        return to_codes(multiply_by_quantized_multiplier(steps, mantissa, exponent + 7), 0, x.dtype)
    return to_codes(multiply_by_quantized_multiplier(128 * steps, mantissa, exponent), 128, x.dtype)


MEANINGS: Meanings = {
    qnn.GeluOp: by_table,
    qnn.EluOp: by_table,
    qnn.ExpOp: by_table,
    qnn.LogOp: by_table,
    qnn.RsqrtOp: rsqrt,
    qnn.SqrtOp: sqrt,
    qnn.AbsOp: absolute,
    qnn.LeakyReluOp: leaky_relu,
    qnn.HardSwishOp: hard_swish,
    qnn.L2NormalizeOp: l2_normalize,
}
