"""Functions of floats as polynomials. `e` is f32 or f64: the type of the operands and the result."""

from __future__ import annotations

from math import inf, nan, pi

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import arith as wide
from relay.lowering.gpu.arithmetic import Arithmetic
from relay.lowering.gpu.polynomials import COS_LONG, EXP, EXP_LONG, LOG, LOG_LONG, SIN_LONG, TANH

LN2 = np.log(np.longdouble(2))
SHORT_LN2 = (0.693359375, float(LN2 - np.longdouble(0.693359375)))
"""ln(2) as a number of few digits, so that products with small integers are exact, and the rest."""
LONG_LN2 = (float.fromhex("0x1.62e42fefap-1"), float(LN2 - np.longdouble(float.fromhex("0x1.62e42fefap-1"))))
QUARTER = (pi / 2, 6.123233995736766e-17)
"""pi / 2 in two doubles."""


def is_long(e: Attribute) -> bool:
    """Whether it is f64."""
    return isinstance(e, Float64Type)


def power_of_two(b: Arithmetic, e: Attribute, n: SSAValue) -> SSAValue:
    """`2^n` for an integer of the float's width, from the exponents of normal numbers."""
    bits, width, bias = (i64, 52, 1023) if is_long(e) else (i32, 23, 127)
    biased = b.add(arith.AddiOp(n, b.number(bias, bits)))
    return b.cast(arith.BitcastOp, b.add(arith.ShLIOp(biased, b.number(width, bits))), e)


def exp(b: Arithmetic, e: Attribute, x: SSAValue) -> SSAValue:
    """`e^x = 2^n e^r`, r = x - n ln(2). The power of two in two factors, so that denormals come out."""
    bits, low, high = (i64, -800.0, 800.0) if is_long(e) else (i32, -110.0, 100.0)
    bounded = minimum(b, e, high, x)
    bounded = maximum(b, e, low, bounded)
    n = b.add(math.RoundEvenOp(b.times(bounded, b.number(float(1 / LN2), e))))
    upper, lower = LONG_LN2 if is_long(e) else SHORT_LN2
    r = b.fma(n, b.number(-lower, e), b.fma(n, b.number(-upper, e), bounded))
    p = b.polynomial(r, EXP_LONG if is_long(e) else EXP, e)
    y = b.plus(b.fma(p, b.times(r, r), r), b.number(1.0, e))
    whole = b.cast(wide.FPToSIOp, n, bits)
    half = b.add(arith.ShRSIOp(whole, b.number(1, bits)))
    rest = b.add(arith.SubiOp(whole, half))
    scaled = b.times(b.times(y, power_of_two(b, e, half)), power_of_two(b, e, rest))
    return b.select(b.compare(x, "uno", x), x, scaled)


def minimum(b: Arithmetic, e: Attribute, bound: float, x: SSAValue) -> SSAValue:
    """The lower number; the bound for what is none."""
    return b.add(arith.MinnumfOp(x, b.number(bound, e)))


def maximum(b: Arithmetic, e: Attribute, bound: float, x: SSAValue) -> SSAValue:
    """The higher number."""
    return b.add(arith.MaxnumfOp(x, b.number(bound, e)))


def log(b: Arithmetic, e: Attribute, x: SSAValue) -> SSAValue:
    """`log(x) = k ln(2) + log(m)`, sqrt(1/2) <= m < sqrt(2)."""
    bits, width, up = (i64, 52, 54) if is_long(e) else (i32, 23, 25)
    least = float(np.finfo(np.float64 if is_long(e) else np.float32).tiny)
    small = b.compare(x, "olt", b.number(least, e))
    normal = b.select(small, b.times(x, b.number(2.0**up, e)), x)
    word = b.cast(arith.BitcastOp, normal, bits)
    root = int(np.float64(0.5**0.5).view(np.int64) if is_long(e) else np.float32(0.5**0.5).view(np.int32))
    k = b.add(arith.ShRSIOp(b.add(arith.SubiOp(word, b.number(root, bits))), b.number(width, bits)))
    m = b.cast(arith.BitcastOp, b.add(arith.SubiOp(word, b.add(arith.ShLIOp(k, b.number(width, bits))))), e)
    count = b.plus(b.cast(wide.SIToFPOp, k, e), b.select(small, b.number(-float(up), e), b.number(0.0, e)))
    upper, lower = LONG_LN2 if is_long(e) else SHORT_LN2
    f = b.minus(m, b.number(1.0, e))
    if is_long(e):
        s = b.over(f, b.plus(m, b.number(1.0, e)))
        tail = b.times(s, b.polynomial(b.times(s, s), LOG_LONG, e))
        found = b.fma(count, b.number(upper, e), b.fma(count, b.number(lower, e), tail))
    else:
        square = b.times(f, f)
        tail = b.times(b.times(square, f), b.polynomial(f, LOG, e))
        tail = b.fma(count, b.number(lower, e), tail)
        tail = b.fma(square, b.number(-0.5, e), tail)
        found = b.fma(count, b.number(upper, e), b.plus(f, tail))
    found = b.select(b.compare(x, "oeq", b.number(inf, e)), x, found)
    found = b.select(b.compare(x, "oeq", b.number(0.0, e)), b.number(-inf, e), found)
    return b.select(b.compare(x, "oge", b.number(0.0, e)), found, b.number(nan, e))


def tanh(b: Arithmetic, e: Attribute, x: SSAValue) -> SSAValue:
    """A polynomial near zero, else `1 - 2 / (e^2|x| + 1)` with x's sign; in f64 near zero by `e^2x`, too."""
    size = b.add(math.AbsFOp(x))
    one = b.number(1.0, e)
    large = b.minus(one, b.over(b.number(2.0, e), b.plus(exp(b, e, b.plus(size, size)), one)))
    large = b.add(math.CopySignOp(large, x))
    if is_long(e):
        return large
    z = b.times(x, x)
    near = b.fma(b.times(z, x), b.polynomial(z, TANH, e), x)
    return b.select(b.compare(size, "olt", b.number(0.625, e)), near, large)


def quadrant(b: Arithmetic, e: Attribute, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`sin(r)`, `cos(r)` and n of `x = n pi/2 + r`, |r| <= pi / 4."""
    n = b.add(math.RoundEvenOp(b.times(x, b.number(2 / pi, e))))
    r = b.fma(n, b.number(-QUARTER[1], e), b.fma(n, b.number(-QUARTER[0], e), x))
    z = b.times(r, r)
    sine = b.fma(b.times(z, r), b.polynomial(z, SIN_LONG, e), r)
    cosine = b.polynomial(z, COS_LONG, e)
    bounded = maximum(b, e, -(2.0**62), minimum(b, e, 2.0**62, n))
    return sine, cosine, b.cast(wide.FPToSIOp, bounded, i64)


def turned(b: Arithmetic, e: Attribute, sine: SSAValue, cosine: SSAValue, n: SSAValue) -> SSAValue:
    """The sine after so many quarters of a turn."""
    odd = is_odd(b, n)
    negative = is_odd(b, b.add(arith.ShRSIOp(n, b.number(1, i64))))
    found = b.select(odd, cosine, sine)
    return b.select(negative, b.minus(b.number(-0.0, e), found), found)


def is_odd(b: Arithmetic, n: SSAValue) -> SSAValue:
    """The lowest bit."""
    return b.cast(wide.TruncIOp, n, i1)


def sin(b: Arithmetic, e: Attribute, x: SSAValue) -> SSAValue:
    """The sine."""
    sine, cosine, n = quadrant(b, e, x)
    return turned(b, e, sine, cosine, n)


def cos(b: Arithmetic, e: Attribute, x: SSAValue) -> SSAValue:
    """The sine a quarter of a turn on."""
    sine, cosine, n = quadrant(b, e, x)
    return turned(b, e, sine, cosine, b.add(arith.AddiOp(n, b.number(1, i64))))


def power(b: Arithmetic, e: Attribute, x: SSAValue, y: SSAValue) -> SSAValue:
    """`|x|^y = e^(y log|x|)`, negative for a negative x and an odd y; no number for one and a y that is not whole."""
    size, one, zero = b.add(math.AbsFOp(x)), b.number(1.0, e), b.number(0.0, e)
    found = exp(b, e, b.times(y, log(b, e, size)))
    found = b.select(b.compare(y, "oeq", zero), one, found)
    found = b.select(b.compare(size, "oeq", one), one, found)
    whole = b.compare(b.add(math.FloorOp(y)), "oeq", y)
    half = b.times(y, b.number(0.5, e))
    even = b.compare(b.add(math.FloorOp(half)), "oeq", half)
    signed = b.add(math.CopySignOp(found, x))
    odd = b.select(even, found, b.select(whole, signed, found))
    finite = b.compare(size, "olt", b.number(inf, e))
    negative = b.compare(x, "olt", zero)
    none = b.select(finite, b.select(whole, odd, b.number(nan, e)), odd)
    result = b.select(negative, none, odd)
    number = b.compare(x, "oeq", one)
    return b.select(number, one, result)
