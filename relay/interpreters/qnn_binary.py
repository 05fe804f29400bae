"""Numpy implementation of quantized division, squared difference, PReLU and comparisons, as TFLite's reference kernels
compute them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.dialects import qnn
from relay.dialects.attributes import Array
from relay.interpreters.arithmetic import (
    Int64,
    int64,
    leading_zeros32,
    multiply_by_quantized_multiplier,
    reciprocal,
    rounding_doubling_high_multiply,
    rounding_right_shift,
    wrap32,
)
from relay.interpreters.meaning import Meaning, Meanings, number
from relay.interpreters.qnn import common_scale, rescaled_result, to_codes


def divide(op: qnn.DivideOp, lhs: Array, rhs: Array) -> Array:
    a, b = int64(lhs) - number(op.lhs_zero_point), int64(rhs) - number(op.rhs_zero_point)
    a = np.where(b == 0, 0, np.where(b < 0, -a, a))
    inverse, headroom = reciprocal(np.maximum(np.abs(b), 1))
    free = leading_zeros32(np.where(a < 0, ~a, a)) - 1
    quotient = rounding_doubling_high_multiply(wrap32(a << free), inverse)
    scaled = rounding_doubling_high_multiply(quotient, number(op.multiplier))
    amount = free + (31 - headroom) - number(op.shift)
    return to_codes(shifted(scaled, amount), number(op.output_zero_point), lhs.dtype, op.min, op.max)


def shifted(x: Int64, amount: Int64) -> Int64:
    """`x / 2^amount`, rounded with halves away from zero; 0 for amounts above 31. For negative amounts x is shifted
    left by `-amount` bits (at most 31), and wraps at 32 bits."""
    right = np.where(amount > 31, 0, rounding_right_shift(x, np.clip(amount, 0, 31)))
    return np.where(amount >= 0, right, wrap32(x << np.clip(-amount, 0, 31)))


def squared_difference(op: qnn.SquaredDifferenceOp, lhs: Array, rhs: Array) -> Array:
    a, b = common_scale(op, lhs, rhs)
    return rescaled_result(op, (a - b) ** 2, lhs.dtype)


def prelu(op: qnn.PreluOp, x: Array, alpha: Array) -> Array:
    steps, slope = int64(x) - number(op.input_zero_point), int64(alpha) - number(op.alpha_zero_point)
    kept = multiply_by_quantized_multiplier(steps, number(op.multiplier), number(op.shift))
    product = wrap32(steps * slope)
    sloped = multiply_by_quantized_multiplier(product, number(op.alpha_multiplier), number(op.alpha_shift))
    return to_codes(np.where(steps >= 0, kept, sloped), number(op.output_zero_point), x.dtype)


def comparison(function: Callable[[Array, Array], Array]) -> Meaning:
    def meaning(op: qnn.QnnCompareOp, lhs: Array, rhs: Array) -> Array:
        return function(*common_scale(op, lhs, rhs))

    return meaning


MEANINGS: Meanings = {
    qnn.DivideOp: divide,
    qnn.SquaredDifferenceOp: squared_difference,
    qnn.PreluOp: prelu,
    qnn.EqualOp: comparison(np.equal),
    qnn.NotEqualOp: comparison(np.not_equal),
    qnn.LessOp: comparison(np.less),
    qnn.LessEqualOp: comparison(np.less_equal),
    qnn.GreaterOp: comparison(np.greater),
    qnn.GreaterEqualOp: comparison(np.greater_equal),
}
