"""The fixed-point arithmetic of the accelerator's vector unit (gemmlowp's), on int64 arrays that hold int32 values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
HIGHEST = (1 << 31) - 1


def wrap(x: Int64) -> Int64:
    """`x` modulo 2^32, as a signed 32-bit value."""
    return x.astype(np.int32).astype(np.int64)


def srdhm(a: Int64, b: int | Int64) -> Int64:
    """`(a * b + 2^30) >> 31`, saturated: the high half of the doubled product, with halves rounded up."""
    return np.minimum((a * b + (1 << 30)) >> 31, HIGHEST)


def rounding_shift(x: Int64, amount: int | Int64) -> Int64:
    """`x / 2^amount`, with halves rounded away from zero."""
    whole = np.asarray(amount, np.int64)
    mask = (np.int64(1) << whole) - 1
    return (x >> whole) + ((x & mask) > (mask >> 1) + (x < 0))


def rescale(x: Int64, multiplier: int | Int64, shift: int | Int64) -> Int64:
    """`x * multiplier * 2^(shift - 31)`, rounded twice: by `srdhm`, then by `rounding_shift`."""
    exponent = np.asarray(shift, np.int64)
    return rounding_shift(srdhm(wrap(x << np.maximum(exponent, 0)), multiplier), np.maximum(-exponent, 0))


def rescale_once(x: Int64, multiplier: int | Int64, shift: int | Int64) -> Int64:
    """`x * multiplier * 2^(shift - 31)`, rounded once, with halves away from zero."""
    return rounding_shift(x * multiplier, 31 - np.asarray(shift, np.int64))


def reciprocal(x: int) -> tuple[int, int]:
    """The reciprocal of a positive int32 as (mantissa, headroom), `1 / x ~ mantissa * 2^(headroom - 62)`, by three
    Newton steps."""
    headroom = 32 - x.bit_length()
    fraction = int(wrap(np.asarray((x << headroom) - (1 << 31), np.int64)))

    def product(a: int, b: int) -> int:
        return int(srdhm(np.asarray(a, np.int64), b))

    total = fraction + HIGHEST
    half = (total + 1) // 2 if total >= 0 else -((1 - total) // 2)
    estimate = 1515870810 + product(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - product(half, estimate)
        estimate += clamp(product(estimate, error) << 2)
    return clamp(estimate << 1), headroom


def clamp(x: int) -> int:
    """The value saturated to int32."""
    return max(-(1 << 31), min(x, HIGHEST))
