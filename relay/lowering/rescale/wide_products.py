"""Rescales integers (`tosa.apply_scale`) by a GPU's multiply-add of 32 x 32 + 64 bits, whose upper half is the result,
with no proof and no floats.

M is the multiplier and S the shift of the op; n is 2^30 for DOUBLE_ROUND, 0 for SINGLE_ROUND. This form is correct for
SINGLE_ROUND, and for DOUBLE_ROUND if x is not negative, or if results below zero do not matter:

    y = (x * M + C) >> 32 >> (S - 32)        C = 2^(S-1) + n

DOUBLE_ROUND subtracts n instead of adding it if x is negative. With twice the multiplier, these two cases differ by
2^32, which is one unit of the upper half: it is added there, as the sign bit of u. Both factors are unsigned, so u = x
+ 2^31 replaces x, where the 2^31 can be part of the initial sums:

    y = ((u * 2 M + C) >> 32) + (u >> 31) >> (S - 31)        C = 2^32 (2^(S-32) - M - 1) + 2^31

since x * 2 M + 2^S +- 2^31 = u * 2 M - 2^32 M + 2^S + 2^31 - (x < 0) 2^32. A zero point added to y is part of C.

NVIDIA's IMAD.HI is the product and the sum; LEA.HI shifts and adds. Float forms need conversions, of which a processor
executes 16 in a clock cycle, and proofs. Source: the specification of `tosa.apply_scale`, as in `steps`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.dialects.tosa import RoundingMode
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.arith import TruncIOp
from relay.dialects.attributes import Array
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter, number
from relay.lowering.rescale.find import bounds, numbers_of, ranges, rows_of
from relay.lowering.rescale.forms import channel_operand, constant_or_channels, erase_scales
from relay.lowering.rescale.values import scalars

LOWEST = -(2**31)


@dataclass(frozen=True)
class Wide:
    """The constants with which a rescale is computed as `upper half of (x * factor + constant) >> shift`, in 64 bits.

    Each list has one array for each call of the kernel, with one element per channel. `signed`: both x and the result
    can be negative, so that `u = x + 2^31` replaces x. `added`: the zero point that the constants contain.
    """

    factors: list[Array]
    constants: list[Array]
    shifts: list[Array]
    signed: bool
    added: int


def find_wide(op: ApplyScaleOp, calls: CallGraph) -> Wide | None:
    """Return the factors, constants and shifts for the channels of the op; None if multipliers are not constants, or
    32-bit words could overflow."""
    known = numbers_of(op, calls)
    if known is None or op.value.type != i32:
        return None
    multiplier, shift, sizes = known
    if multiplier.min() < 0 or multiplier.max() >= 2**31 or shift.min() < 32 or shift.max() > 62:
        return None
    double = op.rounding_mode.data == RoundingMode.DOUBLE_ROUND
    lowest, highest = ranges(op, calls, sizes)
    signed = double and bounds(op.output)[0] < 0 and bool((lowest < 0).any())
    zero_point, down = added(op), shift - (31 if signed else 32)
    largest = np.maximum(np.abs(lowest), np.abs(highest)).astype(np.float64)
    upper = np.ldexp(largest * multiplier, -31 if signed else -32) + (np.abs(zero_point) + 1) * 2.0**down + 2
    if bool((upper >= 2.0**31).any()):
        return None
    constant = (zero_point << down) + (np.int64(1) << (shift - 32) if signed else 0)
    constant = ((constant - multiplier - 1) << 32) + 2**31 if signed else constant << 32
    if not signed:
        constant += (np.int64(1) << (shift - 1)) + (2**30 if double else 0)
    factor = (2 * multiplier if signed else multiplier).astype(np.uint32).view(np.int32)
    factors, constants, shifts = (
        [column[rows] for rows in rows_of(sizes)]
        for column in (factor, constant.astype(np.int64), down.astype(np.int32))
    )
    return Wide(factors, constants, shifts, signed, zero_point)


def added(op: ApplyScaleOp) -> int:
    """Return the constant that is added to the result of the op, if the addition is the only use of the result; else
    0."""
    if op.output.has_one_use():
        user = next(iter(op.output.uses)).operation
        if isinstance(user, arith.AddiOp):
            return int(number(user.rhs if user.lhs is op.output else user.lhs) or 0)
    return 0


def rewrite_wide(op: ApplyScaleOp, found: Wide, constants: Emitter, calls: CallGraph, base: int = 0) -> None:
    """tosa.apply_scale %x, %m, %s  =>  trunci(%x * %factor + %constant >> 32) >> %shift

    If `found.signed`, u = x + 2^31 replaces x, and u >> 31 is added before the shift by %shift. If `base` is not 0, it
    is added to the result: one multiply-add then replaces the shift, `(... * 2^(32 - shift) + base * 2^32) >> 32`,
    where `...` is the number that would be shifted."""
    e = constants.in_front_of(op)
    shifts = [np.int32(1) << (32 - array) for array in found.shifts] if base else found.shifts
    factor, constant, shift = (
        constant_or_channels(op, column, type, constants, calls)
        for column, type in ((found.factors, i32), (found.constants, i64), (shifts, i32))
    )
    value = unsigned(op, e, calls) if found.signed else op.value
    upper = upper_word(e, value, factor, constant, arith.ExtUIOp if found.signed else arith.ExtSIOp)
    if found.signed:
        upper = e(arith.AddiOp(upper, e(arith.ShRUIOp(value, e.constant(31, i32)))))
    result = (
        upper_word(e, upper, shift, e.constant(base << 32, i64), arith.ExtSIOp)
        if base
        else e(arith.ShRSIOp(upper, shift))
    )
    if found.added:
        user = next(iter(op.output.uses)).operation
        Rewriter.replace_op(user, [], [result])
    else:
        op.output.replace_all_uses_with(result)
    erase_scales(op)


def upper_word(
    e: Emitter, x: SSAValue, y: SSAValue, addend: SSAValue, widened: type[arith.ExtUIOp | arith.ExtSIOp]
) -> SSAValue:
    """Return the upper 32 bits of the 64-bit sum `x * y + addend`; `widened`: the op that extends x and y."""
    total = e(arith.AddiOp(e(arith.MuliOp(e(widened(x, i64)), e(widened(y, i64)))), addend))
    return e(TruncIOp.create(operands=[e(arith.ShRUIOp(total, e.constant(32, i64)))], result_types=[i32]))


def unsigned(op: ApplyScaleOp, e: Emitter, calls: CallGraph) -> SSAValue:
    """Return %x + 2^31. If %x is the sum of a number and a per-channel constant, the constant is changed instead."""
    total = op.value.owner
    if isinstance(total, arith.AddiOp) and op.value.has_one_use():
        for value, bias in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
            generic = op.parent_op()
            if isinstance(bias, BlockArgument) and isinstance(generic, GenericOp) and bias.owner is op.parent:
                if (numbers := scalars(bias, calls)) is not None:
                    moved = [(array ^ LOWEST).astype(np.int32) for array in numbers]
                    result = e(arith.AddiOp(value, channel_operand(op, [bias], moved, calls)))
                    op.operands[0] = result
                    Rewriter.erase_op(total)
                    return result
    return e(arith.AddiOp(op.value, e.constant(LOWEST, i32)))
