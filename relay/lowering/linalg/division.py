"""Scalar code of quotients, remainders and powers, with the guards that they need."""

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
    """Integers of 8 and 16 bits compute in 32: their quotients are those of floats, which are exact then and have
    vectors. (LLVM 22.1 also writes wrong AVX-512 code for signs of vectors of 2 bytes.)"""

    def __init__(self, e: Emitter, op: relay.BinaryOp, xs: Sequence[SSAValue]):
        self.e, self.of = e, kind_of(op)
        self.width = width_of(xs[0].type)
        self.short = 0 < self.width <= 16
        self.a, self.b = (self.widened(x) for x in xs) if self.short else xs

    def widened(self, x: SSAValue) -> SSAValue:
        """The number in 32 bits."""
        if (known := number(x)) is not None:
            mask = (1 << self.width) - 1
            return self.e.constant(known if self.of == "signed" else int(known) & mask, i32)
        return self.e((arith.ExtSIOp if self.of == "signed" else arith.ExtUIOp)(x, i32))

    def narrowed(self, x: SSAValue) -> Sequence[SSAValue]:
        """A result in the type of the operands."""
        return [self.e(arith.TruncIOp(x, IntegerType(self.width))) if self.short else x]

    def quotient(self) -> SSAValue:
        """The truncated quotient; 0 for b = 0."""
        e, a, b = self.e, self.a, self.b
        if not self.short:
            return integer_divide(e, a, b, self.of == "signed")
        zero, one = e.constant(0, i32), e.constant(1, i32)
        by_zero = e(arith.CmpiOp(b, zero, "eq"))
        divisor = e(arith.SelectOp(by_zero, one, b))
        above, below = (e(arith.SIToFPOp(x, f32)) for x in (a, divisor))
        return e(arith.SelectOp(by_zero, zero, e(arith.FPToSIOp(e(arith.DivfOp(above, below)), i32))))

    def remainder(self) -> SSAValue:
        """`a - b * trunc(a / b)`; of integers 0 where b is."""
        return (
            self.e(RemFOp(self.a, self.b)) if self.of == "float" else rest_of(self.e, self.a, self.b, self.quotient())
        )


def rest_of(e: Emitter, a: SSAValue, b: SSAValue, quotient: SSAValue) -> SSAValue:
    """`a - b * quotient` of integers; 0 where b is."""
    left = e(arith.SubiOp(a, e(arith.MuliOp(quotient, b))))
    zero = e.constant(0, a.type)
    return e(arith.SelectOp(e(arith.CmpiOp(b, zero, "eq")), zero, left))


def width_of(type: Attribute) -> int:
    """The bits of an integer; 0 for a float."""
    return type.width.data if isa(type, IntegerType) else 0


def divide(e: Emitter, op: relay.DivideOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Floats divide; integers truncate, by zero gives 0."""
    words = Words(e, op, xs)
    return [e(arith.DivfOp(xs[0], xs[1]))] if words.of == "float" else words.narrowed(words.quotient())


def integer_divide(e: Emitter, a: SSAValue, b: SSAValue, signed: bool) -> SSAValue:
    """Truncating division; guards what the hardware traps on (0, and -1 for the lowest number) unless b is known."""
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
    """Floats: floor of the quotient. Signed: one less than the truncated one if inexact and signs differ."""
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
    """The remainder, plus b where it is not 0 and has not b's sign."""
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
    """Integers by squaring: a step per bit of the exponent."""
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
