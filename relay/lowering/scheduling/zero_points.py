"""Sums and products with zero points, in 32 bits: Python integers if the zero points are constants, SSA values if each
call passes them."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.lowering.builder import LoopBuilder
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import Operand

Number = int | SSAValue


def plus(b: LoopBuilder, side: Operand, more: int) -> Number:
    """Return the zero point of an operand plus `more`."""
    if side.given is None:
        return side.zero_point + more
    return b.add(arith.AddiOp(side.given, b.constant(more, i32))).result if more else side.given


def times(b: LoopBuilder, x: Number, y: Number) -> Number:
    """Return the product of two numbers: a Python integer if both are, else an SSA value."""
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    return b.add(arith.MuliOp(scalar(b, x), scalar(b, y))).result


def spread(b: LoopBuilder, number: Number, lanes: int) -> SSAValue:
    """Return a vector of `lanes` lanes, each of which is the number, wrapped to 32 bits."""
    if isinstance(number, int):
        return vector_constant(b, wrapped(number), i32, lanes)
    return b.broadcast(number, lanes)


def scalar(b: LoopBuilder, number: Number) -> SSAValue:
    """Return the number as an SSA value."""
    return b.constant(wrapped(number), i32) if isinstance(number, int) else number


def wrapped(number: int) -> int:
    """Return the number wrapped to signed 32 bits."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)
