"""Scalar code of quotients, remainders and powers: what is guarded, and what takes several steps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.arith import RemFOp
from relay.dialects.op import tensor
from relay.lowering.linalg.emitter import Emitter, Kind, kind, number


def kind_of(op: relay.BinaryOp) -> Kind:
    return kind(tensor(op.lhs).element_type)


def divide(e: Emitter, op: relay.DivideOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Floats divide; integers truncate, by zero gives 0."""
    of = kind_of(op)
    return [e(arith.DivfOp(xs[0], xs[1])) if of == "float" else integer_divide(e, xs[0], xs[1], of == "signed")]


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
    a, b = xs
    of = kind_of(op)
    if of == "float":
        return [e(math.FloorOp(e(arith.DivfOp(a, b))))]
    quotient = integer_divide(e, a, b, of == "signed")
    if of == "unsigned":
        return [quotient]
    zero = e.constant(0, a.type)
    rest = e(arith.SubiOp(a, e(arith.MuliOp(quotient, b))))
    inexact = e(arith.CmpiOp(rest, zero, "ne"))
    opposite = e(arith.CmpiOp(e(arith.XOrIOp(a, b)), zero, "slt"))
    less = e(arith.SubiOp(quotient, e.constant(1, a.type)))
    lower = e(arith.SelectOp(e(arith.AndIOp(inexact, opposite)), less, quotient))
    divisible = e(arith.CmpiOp(b, zero, "ne"))
    return [e(arith.SelectOp(divisible, lower, zero))]


def remainder(e: Emitter, a: SSAValue, b: SSAValue, of: Kind) -> SSAValue:
    """`a - b * trunc(a / b)`; of integers 0 where b is."""
    if of == "float":
        return e(RemFOp(a, b))
    rest = e(arith.SubiOp(a, e(arith.MuliOp(integer_divide(e, a, b, of == "signed"), b))))
    zero = e.constant(0, a.type)
    return e(arith.SelectOp(e(arith.CmpiOp(b, zero, "eq")), zero, rest))


def mod(e: Emitter, op: relay.ModOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [remainder(e, xs[0], xs[1], kind_of(op))]


def floor_mod(e: Emitter, op: relay.FloorModOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The remainder, plus b where it is not 0 and has not b's sign."""
    a, b = xs
    of = kind_of(op)
    rest = remainder(e, a, b, of)
    if of == "unsigned":
        return [rest]
    zero = e.constant(0, a.type)
    if of == "float":
        below = [e(arith.CmpfOp(x, zero, "olt")) for x in (rest, b)]
        inexact, higher = e(arith.CmpfOp(rest, zero, "une")), e(arith.AddfOp(rest, b))
    else:
        below = [e(arith.CmpiOp(x, zero, "slt")) for x in (rest, b)]
        inexact, higher = e(arith.CmpiOp(rest, zero, "ne")), e(arith.AddiOp(rest, b))
    wrong = e(arith.AndIOp(inexact, e(arith.XOrIOp(below[0], below[1]))))
    return [e(arith.SelectOp(wrong, higher, rest))]


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
