"""Scalar code for quotients, remainders and powers, with guards for operands on which the hardware traps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.arith import RemFOp
from relay.dialects.op import tensor
from relay.lowering.linalg.emitter import Emitter, Kind, kind, number


def kind_of(op: relay.BinaryOp) -> Kind:
    return kind(tensor(op.lhs).element_type)


class Words:
    """The operands of a division. Integers of 8 and 16 bits are widened to 32 bits, and their quotients are computed by
    f32 division, whose truncated results are exact for them, and which has vector
    instructions. (LLVM 22.1 also miscompiles sign tests of
    vectors of 2 bytes for AVX-512.)"""

    def __init__(self, e: Emitter, op: relay.BinaryOp, xs: Sequence[SSAValue]):
        self.e, self.of = e, kind_of(op)
        self.width = width_of(xs[0].type)
        self.short = 0 < self.width <= 16
        self.a, self.b = (self.widened(x) for x in xs) if self.short else xs

    def widened(self, x: SSAValue) -> SSAValue:
        """Return the number in 32 bits."""
        if (known := number(x)) is not None:
            mask = (1 << self.width) - 1
            return self.e.constant(known if self.of == "signed" else int(known) & mask, i32)
        return self.e((arith.ExtSIOp if self.of == "signed" else arith.ExtUIOp)(x, i32))

    def narrowed(self, x: SSAValue) -> Sequence[SSAValue]:
        """Return the quotient or remainder `x`, converted to the type of the operands if these were widened to 32
        bits."""
        return [self.e(arith.TruncIOp(x, IntegerType(self.width))) if self.short else x]

    def quotient(self) -> SSAValue:
        """Return `a / b` truncated; 0 where the divisor b is 0."""
        e, a, b = self.e, self.a, self.b
        if not self.short:
            return integer_divide(e, a, b, self.of == "signed")
        zero, one = e.constant(0, i32), e.constant(1, i32)
        by_zero = e(arith.CmpiOp(b, zero, "eq"))
        divisor = e(arith.SelectOp(by_zero, one, b))
        return e(arith.SelectOp(by_zero, zero, quotient_of_floats(e, a, divisor)))

    def remainder(self) -> SSAValue:
        """Return `a - b * trunc(a / b)`; for integers 0 where b is 0."""
        return (
            self.e(RemFOp(self.a, self.b)) if self.of == "float" else rest_of(self.e, self.a, self.b, self.quotient())
        )


def quotient_of_floats(e: Emitter, number: SSAValue, divisor: SSAValue) -> SSAValue:
    """Emit `number / divisor`, truncated, for integers below 2^24, by float division: a quotient that is not an integer
    differs from any integer by at least 1 / divisor, which exceeds the rounding error."""
    above, below = (e(arith.SIToFPOp(x, f32)) for x in (number, divisor))
    return e(arith.FPToSIOp(e(arith.DivfOp(above, below)), i32))


def rest_of(e: Emitter, a: SSAValue, b: SSAValue, quotient: SSAValue) -> SSAValue:
    """Return `a - b * quotient` of integers; 0 where b is 0."""
    left = e(arith.SubiOp(a, e(arith.MuliOp(quotient, b))))
    zero = e.constant(0, a.type)
    return e(arith.SelectOp(e(arith.CmpiOp(b, zero, "eq")), zero, left))


def width_of(type: Attribute) -> int:
    """Return the bits of an integer type; 0 for a float."""
    return type.width.data if isa(type, IntegerType) else 0


def divide(e: Emitter, op: relay.DivideOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit a division; that of integers truncates, and yields 0 for a divisor of 0."""
    words = Words(e, op, xs)
    return [e(arith.DivfOp(xs[0], xs[1]))] if words.of == "float" else words.narrowed(words.quotient())


def integer_divide(e: Emitter, a: SSAValue, b: SSAValue, signed: bool) -> SSAValue:
    """Emit a truncating division. Unless b is a constant other than 0 and -1, it is guarded against divisors on which
    the hardware traps: 0, where the result is 0, and -1 for the lowest dividend, where it wraps."""
    make = arith.DivSIOp if signed else arith.DivUIOp
    if number(b) not in (None, 0, -1):
        return e(make(a, b))
    zero, one = e.constant(0, a.type), e.constant(1, a.type)
    by_zero = e(arith.CmpiOp(b, zero, "eq"))
    if not signed:
        return e(arith.SelectOp(by_zero, zero, e(make(a, e(arith.SelectOp(by_zero, one, b))))))
    by_minus_one = e(arith.CmpiOp(b, e.constant(-1, a.type), "eq"))
    trap = e(arith.OrIOp(by_zero, by_minus_one))
    quotient = e(make(a, e(arith.SelectOp(trap, one, b))))
    quotient = e(arith.SelectOp(by_minus_one, e(arith.SubiOp(zero, a)), quotient))
    return e(arith.SelectOp(by_zero, zero, quotient))


def floor_divide(e: Emitter, op: relay.FloorDivideOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit a floor division. Floats: floor of the quotient. Signed integers: the truncated quotient, minus one if it is
    inexact and the signs differ."""
    words = Words(e, op, xs)
    a, b = words.a, words.b
    if words.of == "float":
        return [e(math.FloorOp(e(arith.DivfOp(a, b))))]
    quotient = words.quotient()
    if words.of == "unsigned":
        return words.narrowed(quotient)
    zero = e.constant(0, a.type)
    rest = e(arith.SubiOp(a, e(arith.MuliOp(quotient, b))))
    inexact = e(arith.CmpiOp(rest, zero, "ne"))
    opposite = e(arith.CmpiOp(e(arith.XOrIOp(a, b)), zero, "slt"))
    less = e(arith.SubiOp(quotient, e.constant(1, a.type)))
    lower = e(arith.SelectOp(e(arith.AndIOp(inexact, opposite)), less, quotient))
    divisible = e(arith.CmpiOp(b, zero, "ne"))
    return words.narrowed(e(arith.SelectOp(divisible, lower, zero)))


def mod(e: Emitter, op: relay.ModOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    words = Words(e, op, xs)
    return words.narrowed(words.remainder())


def floor_mod(e: Emitter, op: relay.FloorModOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit the remainder, plus b if the remainder is not 0 and its sign differs from b's."""
    words = Words(e, op, xs)
    b, rest = words.b, words.remainder()
    if words.of == "unsigned":
        return words.narrowed(rest)
    zero = e.constant(0, b.type)
    if words.of == "float":
        below = [e(arith.CmpfOp(x, zero, "olt")) for x in (rest, b)]
        inexact, higher = e(arith.CmpfOp(rest, zero, "une")), e(arith.AddfOp(rest, b))
    else:
        below = [e(arith.CmpiOp(x, zero, "slt")) for x in (rest, b)]
        inexact, higher = e(arith.CmpiOp(rest, zero, "ne")), e(arith.AddiOp(rest, b))
    wrong = e(arith.AndIOp(inexact, e(arith.XOrIOp(below[0], below[1]))))
    return words.narrowed(e(arith.SelectOp(wrong, higher, rest)))


def power(e: Emitter, op: relay.PowerOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit a power; that of integers by repeated squaring, a step per bit of the exponent."""
    base, exponent = xs
    of = kind_of(op)
    if of == "float":
        return [e(math.PowFOp(base, exponent))]
    type, known = base.type, number(exponent)
    assert isa(type, IntegerType)
    zero, one = e.constant(0, type), e.constant(1, type)
    bits = type.width.data - (of == "signed") if known is None or known < 0 else int(known).bit_length()
    result = one
    for bit in range(bits):
        rest = e(arith.ShRUIOp(exponent, e.constant(bit, type))) if bit else exponent
        odd = e(arith.CmpiOp(e(arith.AndIOp(rest, one)), zero, "ne"))
        result = e(arith.SelectOp(odd, e(arith.MuliOp(result, base)), result))
        base = e(arith.MuliOp(base, base)) if bit < bits - 1 else base
    if of == "unsigned":
        return [result]
    return [e(arith.SelectOp(e(arith.CmpiOp(exponent, zero, "slt")), zero, result))]
