"""Finds and rewrites the rescaled sum of two rescaled codes; `pairs` contains the proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, i32
from xdsl.dialects.tosa import RoundingMode
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import to_numpy
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter
from relay.lowering.rescale.find import bounds
from relay.lowering.rescale.forms import SMALL, erase_scales, nearest_by_addition
from relay.lowering.rescale.pairs import PairForm, Rescale, Side, prove_pair
from relay.lowering.rescale.steps import LIMIT, SHIFTS
from relay.lowering.rescale.values import enumerate_codes, scalars

LARGEST = 2**16
"""The values of both operands of a sum must be smaller than this in magnitude; otherwise no form is tried."""


@dataclass(frozen=True)
class FoundSum:
    """A rescaled sum of two rescaled codes. `form`: the float arithmetic that is proved to compute it; `operands`: the
    two i32 values that this reads; `inner`: the rescales of the two codes."""

    form: PairForm
    operands: tuple[SSAValue, SSAValue]
    inner: tuple[ApplyScaleOp, ApplyScaleOp]


def find_sum(op: ApplyScaleOp, calls: CallGraph) -> FoundSum | None:
    """Return a proved form of `apply_scale(apply_scale(f(a)) +- apply_scale(g(b)))` of two codes a and b; None if there
    is none."""
    parts = parts_of(op, calls)
    if parts is None:
        return None
    outer, sides, inner = parts
    form = prove_pair(sides[0][1], sides[1][1], outer, *bounds(op.output))
    return None if form is None else FoundSum(form, (sides[0][0], sides[1][0]), inner)


def parts_of(
    op: ApplyScaleOp, calls: CallGraph
) -> tuple[Rescale, tuple[tuple[SSAValue, Side], tuple[SSAValue, Side]], tuple[ApplyScaleOp, ApplyScaleOp]] | None:
    """If `op` computes `rescale(rescale(a) + rescale(b))`, or the same with a difference, where a and b are codes,
    return the constants of the outer rescale, the two codes with their contributions to the sum, and the ops of the two
    inner rescales. Return None for any other op."""
    total = op.value.owner
    if not isinstance(total, arith.AddiOp | arith.SubiOp) or not op.value.has_one_use():
        return None
    left, right = total.lhs.owner, total.rhs.owner
    if not isinstance(left, ApplyScaleOp) or not isinstance(right, ApplyScaleOp) or left is right:
        return None
    if not left.output.has_one_use() or not right.output.has_one_use():
        return None
    outer = _rescale(op, calls)
    sides = _side(left, 1, calls), _side(right, -1 if isinstance(total, arith.SubiOp) else 1, calls)
    if outer is None or sides[0] is None or sides[1] is None:
        return None
    return outer, (sides[0], sides[1]), (left, right)


def _rescale(op: ApplyScaleOp, calls: CallGraph) -> Rescale | None:
    """Return the multiplier, shift and rounding of the op. None unless multiplier and shift are constants in the
    supported range, equal in every call of the function and in every channel."""
    numbers: list[int] = []
    for value in (op.multiplier, op.shift):
        found = scalars(value, calls)
        if found is None or any((array != found[0][0]).any() for array in found):
            return None
        numbers.append(int(found[0][0]))
    if not 0 < numbers[0] < LIMIT or numbers[1] not in SHIFTS:
        return None
    return Rescale(numbers[0], numbers[1], op.rounding_mode.data == RoundingMode.DOUBLE_ROUND)


def _side(op: ApplyScaleOp, sign: int, calls: CallGraph) -> tuple[SSAValue, Side] | None:
    """Return the code from which `op`, the rescale that computes one operand of a sum, computes its result, perhaps
    after a left shift, and a `Side`: the values of the code, and the term that each contributes to the sum. Terms are
    multiplied by `sign`: -1 for the operand that is subtracted, else 1. Return None if the rescale's input is not
    computed from one code, if its constants are not supported (see `_rescale`), or if a value of the code is too
    large."""
    rescale = _rescale(op, calls)
    shifted = enumerate_codes(op.value)
    if rescale is None or shifted is None:
        return None
    base, shift = op.value, 0
    owner = base.owner
    if isinstance(owner, arith.ShLIOp) and isinstance(owner.rhs.owner, arith.ConstantOp):
        base, shift = owner.lhs, int(to_numpy(owner.rhs.owner.value))
    values = shifted >> shift
    if not bool((np.abs(values) < LARGEST).all()):
        return None
    return base, Side(values.astype(np.float64), sign * rescale.of(shifted), sign * rescale.scale * 2.0**shift)


def rewrite_sum(op: ApplyScaleOp, found: FoundSum, constants: Emitter, by_addition: bool) -> None:
    """Replace the rescaled sum by fptosi(roundeven(fma(sitofp %a, first, fma(sitofp %b, second, offset)))), or, if
    halves must be rounded away from zero, by fptosi(t + copysign(offset, t)), t = fma(sitofp %a, first, sitofp %b *
    second), with the numbers of `found.form`. `by_addition`: the first form converts small floats to integers by adding
    a constant."""
    e = constants.in_front_of(op)
    type = Float32Type()
    operands = found.operands[::-1] if found.form.swapped else found.operands
    x, y = (e(arith.SIToFPOp(value, type)) for value in operands)
    first, second, offset = (
        e.constant(float(number), type) for number in (found.form.first, found.form.second, found.form.offset)
    )
    if found.form.away:
        total = e(math.FmaOp(x, first, e(arith.MulfOp(y, second))))
        total = e(arith.AddfOp(total, e(math.CopySignOp(offset, total))))
        result = e(arith.FPToSIOp(total, i32))
    else:
        total = e(math.FmaOp(x, first, e(math.FmaOp(y, second, offset))))
        small = by_addition and found.form.largest < SMALL
        result = nearest_by_addition(e, total) if small else e(arith.FPToSIOp(e(math.RoundEvenOp(total)), i32))
    op.output.replace_all_uses_with(result)
    sum = op.value.owner
    assert isinstance(sum, Operation)
    erase_scales(op, sum, *found.inner)
