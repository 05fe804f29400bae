"""Exponential functions and logarithms. The parameter `e` is f32 or f64: the type of the operands and the result."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import arith as wide
from relay.lowering.math.arithmetic import Arithmetic
from relay.lowering.math.polynomials import ERF, EXP, EXP_LONG, EXP_SHORT, LOG, LOG_ERFC, LOG_LONG, LOG_TAIL
from relay.lowering.shaped import scalar_of

LN2 = np.log(np.longdouble(2))
SHORT_LN2 = (0.693359375, float(LN2 - np.longdouble(0.693359375)))
"""ln(2) as a number of few digits, so that products with small integers are exact, and the remainder."""
LONG_LN2 = (float.fromhex("0x1.62e42fefap-1"), float(LN2 - np.longdouble(float.fromhex("0x1.62e42fefap-1"))))
SHORT_MAGIC, LONG_MAGIC = 1.5 * 2.0**23, 1.5 * 2.0**52
"""Constants that, added to a small number, leave the nearest integer in the lowest bits, so that no rounding
instruction is needed."""


def is_long(e: Attribute) -> bool:
    """Whether the type is f64."""
    return isinstance(e, Float64Type)


def rounded(b: Arithmetic, x: SSAValue, e: Attribute, factor: float = 1.0) -> tuple[SSAValue, SSAValue]:
    """Return the integer n nearest to `x * factor`, halves to even, in two forms: as a float, and as an i32 (for f64,
    an i64) that is n plus a constant, the bits of the float 1.5 * 2^23 (1.5 * 2^52), so that its lowest bits are those
    of n. The magnitude of n must be less than 2^22 (2^51)."""
    scale, magic = b.number(factor, e), b.number(LONG_MAGIC if is_long(e) else SHORT_MAGIC, e)
    shifted = b.plus(x, magic) if factor == 1 else b.fused(x, scale, magic)
    return b.minus(shifted, magic), b.cast(arith.BitcastOp, shifted, i64 if is_long(e) else i32)


def power_of_two(b: Arithmetic, e: Attribute, n: SSAValue, less: int = 0) -> SSAValue:
    """Return the float `2^(n - less)` for an integer n in the lowest bits of a word, by writing its exponent bits; the
    result must be a normal number."""
    bits, width, bias = (i64, 52, 1023) if is_long(e) else (i32, 23, 127)
    exponent = b.add(arith.ShLIOp(n, b.number(width, bits)))
    return b.cast(arith.BitcastOp, b.add(arith.AddiOp(exponent, b.number((bias - less) << width, bits))), e)


@dataclass(frozen=True)
class Reduced:
    """The argument reduction `x = n ln(2) + r`, |r| <= ln(2) / 2: n as a float, n in the lowest bits of a word, r, and
    the polynomial p with `e^r = 1 + r + r^2 p`."""

    n: SSAValue
    word: SSAValue
    r: SSAValue
    p: SSAValue


def reduced(b: Arithmetic, x: SSAValue, e: Attribute, sign: int = 1) -> Reduced:
    """Return the argument reduction of x for exponential functions. If `sign` is -1, reduce -x instead, without
    computing it: the result holds n of -x, but -r and -p in place of r and p. Functions computed from it have the same
    bits as those of -x."""
    n, word = rounded(b, x, e, sign * float(1 / LN2))
    upper, lower = LONG_LN2 if is_long(e) else SHORT_LN2
    r = b.fused(n, b.number(-sign * lower, e), b.fused(n, b.number(-sign * upper, e), x))
    coefficients = [sign ** (power + 1) * c for power, c in enumerate(EXP_LONG if is_long(e) else EXP)]
    return Reduced(n, word, r, b.polynomial(r, coefficients, e))


def power_of_e(b: Arithmetic, e: Attribute, x: Reduced, sign: int = 1) -> SSAValue:
    """Return `e^r = 1 + r (1 + r p)`, with r and p of the argument reduction `x`. `sign`: the sign with which `reduced`
    was called; at -1, the fields of `x` hold -r and -p."""
    one = b.number(1.0, e)
    rest = b.fused(x.p, x.r, one)
    return b.fused(rest if sign > 0 else b.add(arith.NegfOp(rest)), x.r, one)


def less_one(b: Arithmetic, x: Reduced) -> SSAValue:
    """Return `e^r - 1 = r + r (r p)`, where r is the reduced argument of `x` and p its polynomial (`Reduced`)."""
    return b.fused(b.times(x.p, x.r), x.r, x.r)


def two_to(b: Arithmetic, e: Attribute, n: SSAValue, word: SSAValue, less: int) -> SSAValue:
    """Return `2^(n - less)`, which must be a normal number. The integer n is given twice: as the float `n`, and in the
    lowest bits of the integer `word`."""
    power = b.scaled(b.number(2.0**-less, e), n)
    return power_of_two(b, e, word, less) if power is None else power


def at_most(b: Arithmetic, e: Attribute, x: SSAValue, bound: float) -> SSAValue:
    """Return the minimum of x and a bound; NaN stays NaN."""
    most = b.number(bound, e)
    return b.select(b.compare(x, "ogt", most), most, x)


def at_least(b: Arithmetic, e: Attribute, x: SSAValue, bound: float) -> SSAValue:
    """Return the maximum of x and a bound; NaN stays NaN."""
    least = b.number(bound, e)
    return b.select(b.compare(x, "olt", least), least, x)


def exp(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return `e^x = 2^n e^r`. The power of two is multiplied as two factors, so that results can be denormal, unless
    one instruction multiplies by any power of two. A negation of the operand is folded into the constants."""
    low, high = (-800.0, 800.0) if is_long(e) else (-110.0, 100.0)
    sign = 1
    if isinstance(owner := x.owner, arith.NegfOp):
        sign, x, low, high = -1, owner.operand, -high, -low
    x = at_least(b, e, at_most(b, e, x, high), low)
    parts = reduced(b, x, e, sign)
    y = power_of_e(b, e, parts, sign)
    if (scaled := b.scaled(y, parts.n)) is not None:
        return scaled
    bits, bias = (i64, int(np.float64(LONG_MAGIC).view("i8"))) if is_long(e) else (i32, 0x4B400000)
    n = b.add(arith.SubiOp(parts.word, b.number(bias, bits)))
    half = b.add(arith.ShRSIOp(n, b.number(1, bits)))
    rest = b.add(arith.SubiOp(n, half))
    return b.times(b.times(y, power_of_two(b, e, half)), power_of_two(b, e, rest))


def exp_below(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return `e^x` of f32 for -25 < x < -0.6, accurate enough for results that are subtracted from another number
    (`erf`, `gelu`): by a shorter polynomial and, with fused products, a single constant for ln(2). No intermediate
    result is denormal."""
    one, r = b.number(1.0, e), x
    n, word = rounded(b, x, e, float(1 / LN2))
    for part in (float(LN2),) if b.target.fuses else SHORT_LN2:
        r = b.fused(n, b.number(-part, e), r)
    y = b.fused(b.fused(b.polynomial(r, EXP_SHORT, e), r, one), r, one)
    scaled = b.scaled(y, n)
    return b.times(y, power_of_two(b, e, word)) if scaled is None else scaled


def expm1(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return `e^x - 1 = 2 (2^(n-1) - 1/2 + 2^(n-1) (e^r - 1))`. Half of it is computed first, because 2^n may be too
    large for the type. The result gets the sign of x, so that zeros keep their sign."""
    low, high = (-50.0, 710.0) if is_long(e) else (-30.0, 89.0)
    parts = reduced(b, at_least(b, e, at_most(b, e, x, high), low), e)
    power = two_to(b, e, parts.n, parts.word, 1)
    half = b.fused(power, less_one(b, parts), b.minus(power, b.number(0.5, e)))
    return b.add(math.CopySignOp(b.plus(half, half), x))


def inverse(b: Arithmetic, x: SSAValue, near: SSAValue) -> SSAValue:
    """Return `1 / x` of floats, given the approximation `near`, which must be exact where 1 / x is 0, infinite or NaN.
    One step of Newton's iteration yields y, its last bit is set to 1, and the result is `y + y (e + e^2)` with
    `e = 1 - x y`. For x from 2^-100 to 2^100, this rounds as a division does, as tests of all x of one exponent
    showed."""
    e = scalar_of(x.type)
    one, negative = b.number(1.0, e), b.add(arith.NegfOp(x))
    found = b.fused(near, b.fused(negative, near, one), near)
    odd = b.add(arith.OrIOp(b.cast(arith.BitcastOp, found, i32), b.number(1, i32)))
    found = b.cast(arith.BitcastOp, odd, e)
    error = b.fused(negative, found, one)
    found = b.fused(found, b.fused(error, error, error), found)
    return b.select(b.compare(found, "ord", found), found, near)


def over(b: Arithmetic, x: SSAValue, number: float) -> SSAValue:
    """Return `x / number` of floats, for a number from 1 to 2^26, as the product with the inverse plus a correction
    (Markstein). The result is rounded as by a division, except where the magnitude of `x` is below 2^-100. If the
    correction is zero or NaN, the product is returned: zeros keep their signs, and infinity or NaN is passed on."""
    e, inverse = scalar_of(x.type), float(np.float32(1) / np.float32(number))
    near, one_over = b.times(x, b.number(inverse, e)), b.number(inverse, e)
    lacking = b.fma(near, b.number(-number, e), x)
    return b.select(b.compare(lacking, "ueq", b.number(0.0, e)), near, b.fma(lacking, one_over, near))


def log(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return `log(x) = k ln(2) + log(m)`, sqrt(1/2) <= m < sqrt(2)."""
    bits, width, up = (i64, 52, 54) if is_long(e) else (i32, 23, 25)
    least = float(np.finfo(np.float64 if is_long(e) else np.float32).tiny)
    small = b.compare(x, "olt", b.number(least, e))
    normal = b.select(small, b.times(x, b.number(2.0**up, e)), x)
    word = b.cast(arith.BitcastOp, normal, bits)
    root = int(np.float64(0.5**0.5).view(np.int64) if is_long(e) else np.float32(0.5**0.5).view(np.int32))
    k = b.add(arith.ShRSIOp(b.add(arith.SubiOp(word, b.number(root, bits))), b.number(width, bits)))
    m = b.cast(arith.BitcastOp, b.add(arith.SubiOp(word, b.add(arith.ShLIOp(k, b.number(width, bits))))), e)
    count = b.plus(b.cast(wide.SIToFPOp, k, e), b.select(small, b.number(-float(up), e), b.number(0.0, e)))
    upper, lower = (b.number(part, e) for part in (LONG_LN2 if is_long(e) else SHORT_LN2))
    f = b.minus(m, b.number(1.0, e))
    if is_long(e):
        s = b.over(f, b.plus(m, b.number(1.0, e)))
        tail = b.times(s, b.polynomial(b.times(s, s), LOG_LONG, e))
        found = b.fused(count, upper, b.fused(count, lower, tail))
    else:
        square = b.times(f, f)
        tail = b.times(b.times(square, f), b.polynomial(f, LOG, e))
        tail = b.fused(square, b.number(-0.5, e), b.fused(count, lower, tail))
        found = b.fused(count, upper, b.plus(f, tail))
    found = b.select(b.compare(x, "olt", b.number(inf, e)), found, x)
    found = b.select(b.compare(x, "oeq", b.number(0.0, e)), b.number(-inf, e), found)
    return b.select(b.compare(x, "olt", b.number(0.0, e)), b.number(nan, e), found)


def tanh(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return tanh(x) as `(t - 1) / (t + 1)` with the sign of x, where `t = e^-2|x|`. An integer n with `|x| = h - n
    ln(2) / 2` reduces the argument to h, and `t = 2^n - 2^(n+1) m` with `m = (1 - e^-2h) / 2`. Near zero, n is 0 and m
    is precise; farther away, t is small, and so are its errors. So in f32 with fused multiply-adds, n may be multiplied
    by a single float for ln(2), and m computed by `polynomial_by_halves`; without fused multiply-adds, that would lose
    too much precision."""
    size, one = b.add(math.AbsFOp(x)), b.number(1.0, e)
    h, fused = at_most(b, e, size, 20.0), b.target.fuses and not is_long(e)
    n, word = rounded(b, h, e, float(-2 / LN2))
    for part in (float(LN2),) if fused else LONG_LN2 if is_long(e) else SHORT_LN2:
        h = b.fused(n, b.number(part / 2, e), h)
    coefficients = [c * (-2.0) ** power for power, c in enumerate(EXP_LONG if is_long(e) else EXP, 1)]
    if fused:
        square = b.times(h, h)
        m = b.fused(square, b.polynomial_by_halves(h, square, coefficients, e), h)
    else:
        m = b.fused(b.times(h, b.polynomial(h, coefficients, e)), h, h)
    twice, half = two_to(b, e, n, word, -1), b.number(0.5, e)
    above, below = (
        b.fused(b.add(arith.NegfOp(twice)), m, b.fused(twice, half, end)) for end in (b.number(-1.0, e), one)
    )
    return b.add(math.CopySignOp(b.over(above, below), x))


def erf(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return erf(x) of f32: a polynomial near zero, else 1 minus the exponential function of a polynomial, with x's
    sign."""
    size, one, z = b.add(math.AbsFOp(x)), b.number(1.0, e), b.times(x, x)
    near = b.fused(x, b.polynomial(z, ERF, e), x)
    far = b.polynomial(at_most(b, e, size, 4.0), LOG_ERFC, e)
    far = b.add(math.CopySignOp(b.minus(one, exp_below(b, far, e)), x))
    return b.select(b.compare(size, "olt", one), near, far)


def gelu(b: Arithmetic, x: SSAValue, e: Attribute) -> SSAValue:
    """Return `x (1 + erf(x / sqrt(2))) / 2` of f32 as `max(x, 0) - |x| q`, where q, the normal distribution's
    probability beyond |x|, is the exponential function of a polynomial; from 6.5 on, |x| q is 3e-10."""
    size = at_most(b, e, b.add(math.AbsFOp(x)), 6.5)
    beyond = exp_below(b, b.polynomial(size, LOG_TAIL, e), e)
    return b.fused(b.add(arith.NegfOp(size)), beyond, at_least(b, e, x, 0.0))
