"""Functions of f32 that are computed in f64, where a short formula is accurate enough; and the conversion of f64 to 16
bits."""

from __future__ import annotations

from math import inf, log, nan, pi

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import Attribute, SSAValue

from relay.lowering.math import functions
from relay.lowering.math.arithmetic import Arithmetic
from relay.lowering.math.polynomials import ATAN

SMALL = 2.0**-7
"""Odd functions such as sinh are computed by a power series for arguments of smaller magnitude, since the usual formula
would subtract nearly equal numbers and lose digits."""


def narrow(b: Arithmetic, x: SSAValue, element: Attribute) -> SSAValue:
    """Round an f64 to a type of 16 bits, for which few processors have an instruction: first to f32 by truncation, with
    the last bit set if bits were lost, so that the second rounding gives the result of a single one. Source: Boldo and
    Melquiond, "When double rounding is odd"."""
    nearest = b.cast(arith.TruncFOp, x, f32)
    back = b.cast(arith.ExtFOp, nearest, f64)
    bits, one, zero = b.cast(arith.BitcastOp, nearest, i32), b.number(1, i32), b.number(0, i32)
    above = b.compare(b.add(math.AbsFOp(back)), "ogt", b.add(math.AbsFOp(x)))
    cut = b.add(arith.SubiOp(bits, b.select(above, one, zero)))
    lost = b.select(b.compare(back, "one", x), one, zero)
    return b.cast(arith.TruncFOp, b.cast(arith.BitcastOp, b.add(arith.OrIOp(cut, lost)), f32), element)


def power(b: Arithmetic, x: SSAValue, y: SSAValue) -> SSAValue:
    """Return `|x|^y = e^(y log|x|)`, negated for a negative x and an odd y; NaN for a negative x and a y that is not an
    integer."""
    size, one, zero = b.add(math.AbsFOp(x)), b.number(1.0, f64), b.number(0.0, f64)
    found = functions.exp(b, b.times(y, functions.log(b, size, f64)), f64)
    found = b.select(b.compare(y, "oeq", zero), one, found)
    found = b.select(b.compare(size, "oeq", one), one, found)
    whole = is_whole(b, y)
    even = is_whole(b, b.times(y, b.number(0.5, f64)))
    signed = b.add(math.CopySignOp(found, x))
    odd = b.select(even, found, b.select(whole, signed, found))
    finite = b.compare(size, "olt", b.number(inf, f64))
    negative = b.compare(x, "olt", zero)
    none = b.select(finite, b.select(whole, odd, b.number(nan, f64)), odd)
    result = b.select(negative, none, odd)
    return b.select(b.compare(x, "oeq", one), one, result)


def is_whole(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return whether the number is an integer; numbers that are too large for fraction bits are integers."""
    inside = functions.at_most(b, f64, b.add(math.AbsFOp(x)), 2.0**51)
    return b.compare(functions.rounded(b, inside, f64)[0], "oeq", inside)


def log2(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `log(x) / log(2)`."""
    return b.times(functions.log(b, x, f64), b.number(1 / log(2), f64))


def log10(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `log(x) / log(10)`."""
    return b.times(functions.log(b, x, f64), b.number(1 / log(10), f64))


def atan(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return atan(x): a polynomial up to 1, `pi/2 - atan(1/x)` above."""
    size, one = b.add(math.AbsFOp(x)), b.number(1.0, f64)
    large = b.compare(size, "ogt", one)
    t = b.select(large, b.over(one, size), size)
    z = b.times(t, t)
    near = b.plus(b.times(b.times(z, t), b.polynomial(z, ATAN, f64)), t)
    found = b.select(large, b.minus(b.number(pi / 2, f64), near), near)
    return b.add(math.CopySignOp(found, x))


def asin(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `asin(x) = atan(x / sqrt(1 - x^2))`."""
    one = b.number(1.0, f64)
    return atan(b, b.over(x, b.add(math.SqrtOp(b.times(b.minus(one, x), b.plus(one, x))))))


def acos(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `acos(x) = 2 atan(sqrt((1 - x) / (1 + x)))`."""
    one = b.number(1.0, f64)
    half = atan(b, b.add(math.SqrtOp(b.over(b.minus(one, x), b.plus(one, x)))))
    return b.plus(half, half)


def odd(b: Arithmetic, x: SSAValue, large: SSAValue, third: float, fifth: float) -> SSAValue:
    """Return an odd function: `x + third x^3 + fifth x^5` near zero, else `large` with x's sign."""
    z = b.times(x, x)
    near = b.plus(b.times(b.times(z, x), b.polynomial(z, (third, fifth), f64)), x)
    small = b.compare(b.add(math.AbsFOp(x)), "olt", b.number(SMALL, f64))
    return b.add(math.CopySignOp(b.select(small, near, large), x))


def sinh(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `sinh(x) = (e^x - e^-x) / 2`."""
    up = functions.exp(b, b.add(math.AbsFOp(x)), f64)
    twice = b.minus(up, b.over(b.number(1.0, f64), up))
    return odd(b, x, b.times(twice, b.number(0.5, f64)), 1 / 6, 1 / 120)


def cosh(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `cosh(x) = (e^x + e^-x) / 2`."""
    up = functions.exp(b, b.add(math.AbsFOp(x)), f64)
    return b.times(b.plus(up, b.over(b.number(1.0, f64), up)), b.number(0.5, f64))


def asinh(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `asinh(x) = log(|x| + sqrt(x^2 + 1))` with x's sign."""
    size = b.add(math.AbsFOp(x))
    root = b.add(math.SqrtOp(b.plus(b.times(x, x), b.number(1.0, f64))))
    return odd(b, x, functions.log(b, b.plus(size, root), f64), -1 / 6, 3 / 40)


def acosh(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `acosh(x) = log(x + sqrt(x^2 - 1))`."""
    one = b.number(1.0, f64)
    root = b.add(math.SqrtOp(b.times(b.minus(x, one), b.plus(x, one))))
    found = functions.log(b, b.plus(x, root), f64)
    return b.select(b.compare(x, "olt", one), b.number(nan, f64), found)


def atanh(b: Arithmetic, x: SSAValue) -> SSAValue:
    """Return `atanh(x) = log((1 + |x|) / (1 - |x|)) / 2` with x's sign."""
    size, one = b.add(math.AbsFOp(x)), b.number(1.0, f64)
    twice = functions.log(b, b.over(b.plus(one, size), b.minus(one, size)), f64)
    return odd(b, x, b.times(twice, b.number(0.5, f64)), 1 / 3, 1 / 5)
