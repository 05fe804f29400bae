"""Sines, cosines and tangents, computed in f64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import SSAValue

from relay.dialects import arith as wide
from relay.lowering.math.arithmetic import Arithmetic
from relay.lowering.math.functions import rounded
from relay.lowering.math.polynomials import COS_LONG, SIN_LONG

TWO_BY_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBB
"""The first 240 fractional bits of 2 / pi."""
Turned = Callable[[Arithmetic, SSAValue], tuple[SSAValue, SSAValue]]
PIECE = 26
"""The number of bits of 2 / pi in a piece whose product with an f32 is exact in f64."""
STEPS = tuple(2.0 ** (51 + PIECE * n) for n in range(3))
"""For a float32 x of at least the n-th of these magnitudes, the products of x and the first n pieces of 2 / pi are
multiples of 4 quarter turns, that is, whole turns; these pieces are left out."""
QUARTER = (pi / 2, 6.123233995736766e-17)
"""pi / 2 as a sum of two doubles."""


def pieces(first: int) -> list[float]:
    """Return 2 / pi without its first `26 * first` fractional bits, as the sum of four f64 numbers: the next three
    pieces of 26 bits, which are exact, and the remaining bits, rounded."""
    words = [TWO_BY_PI >> (240 - PIECE * (n + 1)) & ((1 << PIECE) - 1) for n in range(first, first + 3)]
    rest = TWO_BY_PI & ((1 << (240 - PIECE * (first + 3))) - 1)
    return [word * 2.0 ** (-PIECE * (first + n + 1)) for n, word in enumerate(words)] + [rest * 2.0**-240]


def turned_back(b: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return r and n of `x = n pi/2 + r`, |r| <= pi / 4, for any f32 x. Only the lowest bits of the integer n are
    right, since this is Payne and Hanek's method: it computes only those bits of x times 2 / pi that are near the
    binary point."""
    size = b.add(math.AbsFOp(x))
    parts = [b.number(number, f64) for number in pieces(0)]
    for first, step in enumerate(STEPS, 1):
        large = b.compare(size, "oge", b.number(step, f64))
        parts = [b.select(large, b.number(n, f64), old) for n, old in zip(pieces(first), parts, strict=True)]
    high, middle, low, least = (b.times(x, part) for part in parts)
    first, count = rounded(b, high, f64)
    second, more = rounded(b, middle, f64)
    one, two = b.minus(high, first), b.minus(middle, second)
    total = b.plus(one, two)
    back = b.minus(total, one)
    error = b.plus(b.minus(one, b.minus(total, back)), b.minus(two, back))
    third, last = rounded(b, total, f64)
    fraction = b.plus(b.minus(total, third), b.plus(low, b.plus(least, error)))
    fourth, end = rounded(b, fraction, f64)
    for word in (more, last, end):
        count = b.add(arith.AddiOp(count, word))
    return b.times(b.minus(fraction, fourth), b.number(pi / 2, f64)), count


def turned_back_long(b: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return r (f64) and n (i64) of `x = n pi/2 + r` for an x in f64. Above a magnitude of 2^30, r is less accurate."""
    n = b.add(math.RoundEvenOp(b.times(x, b.number(2 / pi, f64))))
    r = b.fma(n, b.number(-QUARTER[1], f64), b.fma(n, b.number(-QUARTER[0], f64), x))
    limit = b.number(2.0**62, f64)
    inside = b.select(b.compare(b.add(math.AbsFOp(n)), "olt", limit), n, b.number(0.0, f64))
    return r, b.cast(wide.FPToSIOp, inside, i64)


def sine_and_cosine(b: Arithmetic, r: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return the sine and the cosine of r, |r| <= pi / 4."""
    z = b.times(r, r)
    return b.plus(b.times(b.times(z, r), b.polynomial(z, SIN_LONG, f64)), r), b.polynomial(z, COS_LONG, f64)


def bit(b: Arithmetic, n: SSAValue, number: int) -> SSAValue:
    """Return bit `number` of the word n."""
    return b.cast(wide.TruncIOp, b.add(arith.ShRUIOp(n, b.number(number, i64))) if number else n, i1)


def after(b: Arithmetic, sine: SSAValue, cosine: SSAValue, n: SSAValue) -> SSAValue:
    """Return the sine of an angle rotated by n quarter turns, from the angle's sine and cosine."""
    found = b.select(bit(b, n, 0), cosine, sine)
    return b.select(bit(b, n, 1), b.minus(b.number(-0.0, f64), found), found)


def sine_by(turned: Turned, b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return the sine of x, with `turned` as the argument reduction."""
    r, n = turned(b, x)
    return zero_itself(b, x, after(b, *sine_and_cosine(b, r), n))


def cosine_by(turned: Turned, b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return the cosine of x: the sine a quarter turn later."""
    r, n = turned(b, x)
    return after(b, *sine_and_cosine(b, r), b.add(arith.AddiOp(n, b.number(1, i64))))


sin, cos = partial(sine_by, turned_back), partial(cosine_by, turned_back)
sin_long, cos_long = partial(sine_by, turned_back_long), partial(cosine_by, turned_back_long)
"""Sine and cosine of f64."""


def tan(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return the tangent: sine / cosine, or, for odd quarter turns, -cosine / sine."""
    r, n = turned_back(b, x)
    sine, cosine = sine_and_cosine(b, r)
    odd = bit(b, n, 0)
    above = b.select(odd, b.minus(b.number(-0.0, f64), cosine), sine)
    return zero_itself(b, x, b.over(above, b.select(odd, sine, cosine)))


def zero_itself(b: Arithmetic, x: SSAValue, found: SSAValue) -> SSAValue:
    """Return `found`, but x itself where x is zero, so that zeros keep their signs."""
    return b.select(b.compare(x, "oeq", b.number(0.0, f64)), x, found)
