"""Exact fixed-point arithmetic of quantized networks: values are held as int64, results are those of int32 or int16
arithmetic.

Source: gemmlowp's fixed-point definitions and TFLite's reference kernels, which the names follow.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument

Int64 = npt.NDArray[np.int64]
Dtype = np.dtype[Any]
Number = TypeVar("Number", np.int16, np.int64)
INT32_MIN: Final = -(1 << 31)
INT32_MAX: Final = (1 << 31) - 1


def int64(x: npt.ArrayLike) -> Int64:
    """`x` as an int64 array."""
    return np.asarray(x, np.int64)


def read_only(table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Make a table read-only and return it, since all callers of a cached function get the same array."""
    table.flags.writeable = False
    return table


def wrap32(x: npt.ArrayLike) -> Int64:
    """`x` modulo 2^32, in [-2^31, 2^31)."""
    return int64(x).astype(np.int32).astype(np.int64)


def round_away(x: Array) -> Array:
    """The nearest integer, halves away from zero (C `round`); exact in the type of `x`, unlike `floor(x + 0.5)`."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0).astype(whole.dtype)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` of float32 numbers with a single rounding.

    float64 holds the product; the sum is rounded to odd there (Boldo and Melquiond, 2008), so that rounding it again to
    float32 gives the nearest number to the exact one.
    """
    product, addend = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
    total = np.asarray(product + addend)
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    even = (total.view(np.int64) & 1) == 0
    other = np.nextafter(total, np.copysign(np.inf, lost))
    return np.where((lost != 0) & even & np.isfinite(total), other, total).astype(np.float32)


def truncating_divide(a: npt.ArrayLike, b: npt.ArrayLike) -> Int64:
    """`a / b` truncated towards zero, as C divides; b is not 0."""
    numerator, denominator = int64(a), int64(b)
    quotient = np.abs(numerator) // np.abs(denominator)
    return np.where((numerator < 0) != (denominator < 0), -quotient, quotient)


@cache
def code_range(dtype: Dtype) -> tuple[int, int]:
    """The lowest and highest value of an integer type, including the types of `ml_dtypes`."""
    bits = int(dtype.name.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if dtype.name[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def extremes(dtype: Dtype) -> tuple[float, float]:
    """The lowest and highest value of a type of numpy; infinities for floats."""
    return code_range(dtype) if dtype.kind in "iu" else (-np.inf, np.inf)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Return (multiplier, shift) with `real ~ multiplier * 2^(shift - 31)`; the multiplier is 0 or in [2^30, 2^31).

    The multiplier is rounded with halves away from zero; for `real` below 2^-32 it is 0. Source: TFLite
    `QuantizeMultiplier`.
    """
    if not (math.isfinite(real) and real >= 0):
        raise InvalidArgument(f"multiplier {real}", "is not a finite number of at least 0")
    if real == 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = math.floor(fraction * 2.0**31 + 0.5)
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def quantize_multipliers(reals: Array) -> tuple[Array, Array]:
    """`quantize_multiplier` for each number; returns two int32 vectors."""
    pairs = [quantize_multiplier(float(real)) for real in reals]
    return np.array([m for m, _ in pairs], np.int32), np.array([s for _, s in pairs], np.int32)


def rounding_doubling_high_multiply(a: npt.ArrayLike, b: npt.ArrayLike, bits: int = 32) -> Int64:
    """`(a * b + 2^(bits-2)) >> (bits-1)`, which rounds halves up; the product of two lowest values saturates. This is
    gemmlowp's SaturatingRoundingDoublingHighMul."""
    product = int64(a) * int64(b)
    return np.minimum((product + (1 << (bits - 2))) >> (bits - 1), (1 << (bits - 1)) - 1)


def rounding_right_shift(x: npt.ArrayLike, amount: npt.ArrayLike) -> Int64:
    """`x / 2^amount`, halves away from zero, for 0 <= amount <= 62. This is gemmlowp's RoundingDivideByPOT."""
    x, amount = int64(x), int64(amount)
    mask = (np.int64(1) << amount) - 1
    return (x >> amount) + ((x & mask) > (mask >> 1) + (x < 0))


def multiply_by_quantized_multiplier(
    x: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike, rounding: str = "tflite"
) -> Int64:
    """`x * multiplier * 2^(shift - 31)` of int32 values, rounded as `ROUNDINGS` of `relay.fixed_point_multiply`
    defines."""
    x, multiplier, shift = int64(x), int64(multiplier), int64(shift)
    if rounding == "tflite":
        shifted = wrap32(x << np.maximum(shift, 0))
        return rounding_right_shift(rounding_doubling_high_multiply(shifted, multiplier), np.maximum(-shift, 0))
    amount = 31 - shift
    product, half = x * multiplier, np.int64(1) << (amount - 1)
    if rounding in ("tflite_single", "upward"):
        return wrap32((product + half) >> amount)
    if rounding == "tonearest":
        return wrap32((product + half - (product < 0)) >> amount)
    raise InvalidArgument(f"rounding {rounding}", "is unknown")


def multiply_by_quantized_multiplier_64(x: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Int64:
    """`x * multiplier * 2^(shift - 31)` of int64 sums. The multiplier is reduced to 16 bits (rounded, at most 0x7FFF),
    the result rounded once with halves up; it wraps.

    Source: TFLite's `MultiplyByQuantizedMultiplier` of int64, used by 16-bit convolutions with int64 bias.
    """
    multiplier, amount = int64(multiplier), 15 - int64(shift)
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
    return wrap32((int64(x) * reduced + (np.int64(1) << (amount - 1))) >> amount)


def leading_zeros32(x: npt.ArrayLike) -> Int64:
    """The number of leading zero bits of positive int32 values; 0 for negative ones, 32 for 0."""
    _, exponent = np.frexp((int64(x) & 0xFFFFFFFF).astype(np.float64))
    return 32 - exponent.astype(np.int64)


class FixedPoint:
    """gemmlowp's fixed-point functions in 16 or 32 bits; a value with `integer_bits` i is an integer times 2^(i - bits
    + 1). Q0 stands for values without integer bits: Q0.15 in 16 bits, Q0.31 in 32 bits."""

    EXP_FACTORS: Final = (
        (-2, 1672461947),
        (-1, 1302514674),
        (0, 790015084),
        (1, 290630308),
        (2, 39332535),
        (3, 720401),
        (4, 242),
    )
    """exp(-2^k) in Q0.31 for k = -2..4."""

    def __init__(self, bits: int):
        self.bits = bits
        self.low = -(1 << (bits - 1))
        self.high = (1 << (bits - 1)) - 1

    def constant(self, q31: int) -> int:
        """A Q0.31 constant rounded to this object's width."""
        return q31 if self.bits == 32 else int(rounding_right_shift(q31, 32 - self.bits))

    def multiply(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Int64:
        return rounding_doubling_high_multiply(a, b, self.bits)

    def wrap(self, x: npt.ArrayLike) -> Int64:
        half = 1 << (self.bits - 1)
        return ((int64(x) + half) & ((1 << self.bits) - 1)) - half

    def rounding_right_shift(self, x: npt.ArrayLike, amount: int) -> Int64:
        """gemmlowp's RoundingDivideByPOT for `0 <= amount <= 31`. For 16-bit values and an amount of 16 or more,
        gemmlowp's mask becomes all ones, so that the result is 1 for x >= 0 and -1 for x < 0, as here."""
        x, mask = int64(x), self.wrap((1 << amount) - 1)
        return (x >> amount) + ((x & mask) > (mask >> 1) + (x < 0))

    def saturating_left_shift(self, x: npt.ArrayLike, amount: int) -> Int64:
        return np.clip(int64(x) << amount, self.low, self.high)

    def exp_on_quarter(self, a: Int64) -> Int64:
        """exp(a) for a in [-1/4, 0), argument and result in Q0: the Taylor polynomial of degree 4 about -1/8."""
        x = self.wrap(a + (1 << (self.bits - 4)))
        x2 = self.multiply(x, x)
        x3, x4 = self.multiply(x2, x), self.multiply(x2, x2)
        third = self.multiply(self.wrap(rounding_right_shift(x4, 2) + x3), self.constant(715827883))
        tail = rounding_right_shift(self.wrap(third + x2), 1)
        centre = self.constant(1895147668)
        return self.wrap(centre + self.multiply(centre, self.wrap(x + tail)))

    def exp_on_negative_values(self, a: npt.ArrayLike, integer_bits: int) -> Int64:
        """exp(a) in Q0 for a <= 0, where `a` has `integer_bits` integer bits."""
        a = int64(a)
        fraction_bits = self.bits - 1 - integer_bits
        quarter = 1 << (fraction_bits - 2)
        remainder_of_quarter = (a & (quarter - 1)) - quarter
        result = self.exp_on_quarter(self.saturating_left_shift(remainder_of_quarter, integer_bits))
        remainder = remainder_of_quarter - a
        for exponent, factor in self.EXP_FACTORS:
            if integer_bits > exponent:
                bit = 1 << (fraction_bits + exponent)
                result = np.where(remainder & bit, self.multiply(result, self.constant(factor)), result)
        if integer_bits > 5:
            result = np.where(a < -(1 << (36 - integer_bits - (32 - self.bits))), 0, result)
        return np.where(a == 0, self.high, result)

    def _newton_raphson(self, a: Int64) -> Int64:
        """`2 / (1 + a)` in Q2 for a in [0, 1] in Q0: three Newton-Raphson steps towards 1 / d from 48/17 - 32/17 d,
        where d = (1 + a) / 2."""
        total = a + self.high
        half_denominator = truncating_divide(total + np.where(total >= 0, 1, -1), 2)
        x = self.wrap(self.constant(1515870810) + self.multiply(half_denominator, self.constant(-1010580540)))
        for _ in range(3):
            error = self.wrap((1 << (self.bits - 3)) - self.multiply(half_denominator, x))
            x = self.wrap(x + self.saturating_left_shift(self.multiply(x, error), 2))
        return x

    def one_over_one_plus(self, a: npt.ArrayLike) -> Int64:
        """`1 / (1 + a)` in Q0 for a in [0, 1] in Q0."""
        return self.saturating_left_shift(self._newton_raphson(int64(a)), 1)

    def one_minus_over_one_plus(self, a: npt.ArrayLike) -> Int64:
        """`(1 - a) / (1 + a)` in Q0 for a in [0, 1] in Q0."""
        return self.saturating_left_shift(self.wrap(self._newton_raphson(int64(a)) - (1 << (self.bits - 3))), 2)

    def logistic(self, a: npt.ArrayLike, integer_bits: int) -> Int64:
        """`1 / (1 + exp(-a))` in Q0, where `a` has `integer_bits` integer bits."""
        a = int64(a)
        positive = self.one_over_one_plus(self.exp_on_negative_values(-np.abs(a), integer_bits))
        return np.where(a == 0, 1 << (self.bits - 2), np.where(a > 0, positive, self.high - positive))

    def tanh(self, a: npt.ArrayLike, integer_bits: int) -> Int64:
        """The hyperbolic tangent of `a`, a fixed-point number with `integer_bits` integer bits. The result has none: it
        is Q0.15 in 16 bits, Q0.31 in 32 bits."""
        a = int64(a)
        positive = self.one_minus_over_one_plus(self.exp_on_negative_values(-np.abs(a), integer_bits + 1))
        return np.where(a == 0, 0, np.where(a < 0, -positive, positive))


FIXED32: Final = FixedPoint(32)
FIXED16: Final = FixedPoint(16)


def reciprocal(x: npt.ArrayLike) -> tuple[Int64, Int64]:
    """Return (mantissa, headroom) of 1 / x for positive int32 x: headroom h is the number of leading zeros of x,
    mantissa is `one_over_one_plus(x * 2^h - 2^31)`, so that `1 / x ~ mantissa * 2^(h - 62)`. Source: TFLite
    `GetReciprocal`."""
    x = int64(x)
    headroom = leading_zeros32(x)
    return FIXED32.one_over_one_plus(wrap32((x << headroom) - (1 << 31))), headroom
