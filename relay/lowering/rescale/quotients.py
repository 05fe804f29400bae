"""Rewrites divisions of floats by a constant scale whose quotients are rounded to integers: two multiply-adds give the
same integers, and are faster.

`round(x / s)` rounds the quotient to float32, and then to an integer, halves away from zero. It is at least j for all x
from the first one with `float32(x / s) >= j - 1/2`. The form `trunc(fma(x, scale, fma(x, rest, copysign(offset, x))))`
replaces it if its result reaches every integer j at the same x. This is checked exactly for the floats next to each
such x, and scale, rest and offset are varied until it holds for all j. Floats further away need no check: their
sums differ from j by more than the rounding error of the inner sum, which is at most 2^-25. Negative x need none
either, because both forms are odd functions. The quotient was clipped after it was rounded; in this replacement x is
clipped before the multiply-adds, so that it is finite.

`roundeven(x / s)` is replaced by `roundeven(fma(x, scale, x * rest))`, with two numbers whose sum is nearly the inverse
of s. Before its last rounding the sum has a relative error of at most 2^-46, and from one float x to the next it grows
by a relative 2^-24. So it is monotone, like the quotient, and is checked on the floats next to each such x as well.
This replacement is clipped afterwards, as the quotient was: neither number is negative, so that infinite x stay
infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.attributes import Array
from relay.lowering.linalg.emitter import OGT, Emitter, clip_of, number
from relay.lowering.rescale.forms import MIDDLE, SMALL, line
from relay.lowering.rescale.proof import Form

LEVELS = 1 << 16
"""A division is replaced by multiply-adds only if its quotient is clipped to a range of at most this many integers,
because each of them is checked."""
SCALES = (2.0**-80, 2.0**80)
"""The least and the largest scale for which divisions are rewritten: within this range no intermediate result of the
multiply-adds overflows, or loses digits because it is denormal."""
FAR = 4
"""For each integer, the number of floats x that are tried on each side of the least x whose quotient is rounded to
it."""
FIRST = 16
"""The number of integers for which multiply-adds are checked first, and for all others only if they are right for
these, because few wrong multiply-adds are."""
UNITS = (0, *(sign * units for units in range(1, 9) for sign in (1, -1)))
"""By how many units in the last place the float factor that replaces a division by a scale differs from the nearest
float of the inverse scale, in the order in which they are tried. The second factor, `rest`, is the remainder of the
inverse."""
NUDGES = tuple(count * 2.0**-29 for count in (0, 1, -1, 2, -2))
OFFSETS = tuple(0.5 - count * 2.0**-25 for count in range(4))


@dataclass(frozen=True)
class Quotient:
    """`fptosi(min(r > low ? r : low, high)) : i32` with `r = round(x / scale)`, and its replacement. `least` and
    `most`: the largest x for which the result is `low`, and the smallest one for which it is `high`; x is clipped to
    them. `form`: the multiply-adds that replace the division."""

    x: SSAValue
    ops: list[Operation]
    low: int
    high: int
    least: float
    most: float
    form: Form


def find_quotient(op: arith.DivfOp) -> Quotient | None:
    """If the quotient of a division by a constant is rounded and clipped to integers, return it with the multiply-adds
    that compute the same integers. Return None if the op is no such division, or none are found."""
    scale, ops = number(op.rhs), steps(op)
    if op.result.type != Float32Type() or scale is None or not SCALES[0] <= scale <= SCALES[1]:
        return None
    if ops is None or ops[-1].results[0].type != i32:
        return None
    low, high = (number(clip.operands[1]) for clip in (ops[1], ops[3]))
    if low is None or high is None or low % 1 or high % 1 or not (low <= 0 <= high and 0 < high - low < LEVELS):
        return None
    low, high = int(low), int(high)
    around, reached = levels_of(float(np.float32(scale)), max(-low, high))
    form = find_form(float(np.float32(scale)), around, reached, signed=low < 0)
    if form is None:
        return None
    floats = [0.0, *around[np.arange(len(around)), reached.argmax(axis=1)].tolist()]
    return Quotient(op.lhs, [op, *ops], low, high, -floats[-low] if low else 0.0, floats[high], form)


def steps(op: arith.DivfOp) -> list[Operation] | None:
    """Return the ops that follow the division: round, comparison with the lower bound, select, minimum, conversion;
    else None."""
    rounded = followers(op, ["math.round"])
    clip = None if rounded is None else clipped(rounded[0])
    if rounded is None or clip is None or (end := followers(clip[-1], ["arith.fptosi"])) is None:
        return None
    return [*rounded, *clip, *end]


def clipped(op: Operation) -> list[Operation] | None:
    """Return the ops that clip a float, if nothing else uses it: comparison with the lower bound, select, minimum; else
    None."""
    uses = [use.operation for use in op.results[0].uses]
    compared = next((use for use in uses if use.name == "arith.cmpf"), None)
    chosen = next((use for use in uses if use.name == "arith.select"), None)
    if len(uses) != 2 or compared is None or chosen is None or not compared.results[0].has_one_use():
        return None
    ordered = compared.properties["predicate"] == OGT and compared.operands[0] == op.results[0]
    if not ordered or tuple(chosen.operands) != (compared.results[0], *compared.operands):
        return None
    minimum = followers(chosen, ["arith.minimumf"])
    return None if minimum is None else [compared, chosen, *minimum]


def find_inverse(op: arith.DivfOp) -> tuple[float, float] | None:
    """Return two numbers, `scale` and `rest`, for which `fma(x, scale, x * rest)` can replace the quotient of a
    division that is clipped and then rounded to integers, halves to even. Return None if the op is no such division,
    or some integer would differ."""
    divisor, clip = number(op.rhs), clipped(op)
    if op.result.type != Float32Type() or divisor is None or not SCALES[0] <= divisor <= SCALES[1] or clip is None:
        return None
    end = followers(clip[-1], ["arith.addf", "arith.subf", "arith.fptosi"])
    if end is None or any(number(each.operands[1]) != MIDDLE for each in end[:2]):
        return None
    low, high = (number(each.operands[1]) for each in (clip[0], clip[-1]))
    if low is None or high is None or not (low <= 0 <= high and high - low < LEVELS):
        return None
    return inverse_of(float(np.float32(divisor)), int(max(-low, high)))


def round_at_once(function: FuncOp) -> None:
    """fptosi (x + m - m)  =>  fptosi (roundeven x), with m = 1.5 2^23, if x is clipped to magnitudes of at most 2^22:
    x86 rounds to even and converts in one instruction."""
    for op in [op for op in function.walk() if isinstance(op, arith.MinimumfOp)]:
        end, clip = followers(op, ["arith.addf", "arith.subf", "arith.fptosi"]), clip_of(op)
        if end is None or clip is None or any(number(each.operands[1]) != MIDDLE for each in end[:2]):
            continue
        if op.result.type != Float32Type() or clip.low < -SMALL or clip.high > SMALL:
            continue
        there, back, _ = end
        rounded = math.RoundEvenOp(op.result)
        rewriter = Rewriter()
        rewriter.replace_op(back, rounded)
        rewriter.erase_op(there)


def inverse_of(divisor: float, levels: int) -> tuple[float, float] | None:
    """Return two float32 numbers, `scale` and `rest`, whose sum is nearly the inverse of the divisor; None if
    `roundeven(fma(x, scale, x * rest))` differs from `roundeven(x / divisor)` for some quotient of magnitude up to
    `levels`."""
    inverse = 1 / divisor
    scale = np.float32(inverse)
    scale = np.nextafter(scale, np.float32(0)) if float(scale) > inverse else scale
    rest = np.float32(inverse - float(scale))
    around, _ = levels_of(divisor, levels)
    wanted, bounds = np.rint(around / np.float32(divisor)), quotients(around, float(scale), float(rest))
    return (float(scale), float(rest)) if all(np.array_equal(np.rint(each), wanted) for each in bounds) else None


def quotients(x: Array, scale: float, rest: float) -> tuple[Array, Array]:
    """Return, for each x, a lower and an upper bound of the float32 result of `fma(x, scale, x * rest)`, where the
    float32 numbers `scale` and `rest` add up to nearly the inverse of a divisor. Both bounds are equal unless the
    float64 sum from which they are rounded is too inaccurate to tell the result."""
    x = x.astype(np.float64)
    total = x * scale + (x * rest).astype(np.float32).astype(np.float64)
    below, above = (np.nextafter(total, end).astype(np.float32) for end in (-np.inf, np.inf))
    return below, above


def rewrite_inverse(op: arith.DivfOp, found: tuple[float, float], constants: Emitter) -> None:
    """%x / s  =>  fma(%x, scale, %x * rest), where `found` is (scale, rest), two floats whose sum is nearly 1 / s; if
    rest is 0, as for powers of two, %x * scale."""
    e, (scale, rest) = constants.in_front_of(op), (constants.constant(n, Float32Type()) for n in found)
    product = (
        e(math.FmaOp(op.lhs, scale, e(arith.MulfOp(op.lhs, rest)))) if found[1] else e(arith.MulfOp(op.lhs, scale))
    )
    Rewriter.replace_op(op, [], [product])


def followers(op: Operation, names: Sequence[str]) -> list[Operation] | None:
    """Return operations with these names, each of which is the only user of the previous one's result, as its first
    operand; else None."""
    found: list[Operation] = []
    for name in names:
        result = op.results[0]
        if not result.has_one_use():
            return None
        use = next(iter(result.uses))
        op = use.operation
        if op.name != name or use.index != 0:
            return None
        found.append(op)
    return found


def levels_of(scale: float, count: int) -> tuple[Array, Array]:
    """Return two arrays [level, float], with a row for each level from 1 to `count`. The first has the 2 `FAR` + 1
    floats around the least x whose quotient x / scale is at least the level minus 1/2; the second says for each of
    these floats whether its quotient is."""
    half = np.arange(1, count + 1)[:, None] - 0.5
    near = (half * scale).astype(np.float32).view(np.int32)
    around = (near + np.arange(-FAR, FAR + 1, dtype=np.int32)).view(np.float32)
    return around, around / np.float32(scale) >= half


def find_form(scale: float, around: Array, reached: Array, *, signed: bool) -> Form | None:
    """Search multiply-adds that replace the rounded quotient `round(x / scale)`. Return the first ones whose result
    steps up to each integer at the same float x as the quotient, or None. The steps are compared at the floats `around`
    each of them, for which `reached` says whether the quotient has stepped up (both as returned by `levels_of`)."""
    if reached[:, :2].any() or not reached[:, -2:].all():
        return None
    for large, rest, offset in tried(1 / scale):
        if all(
            np.array_equal(reaches(around[:some], large, rest, offset), reached[:some]) for some in (FIRST, len(around))
        ):
            columns = (np.array([value], np.float32) for value in (large, offset, rest))
            return Form(*columns, signed=signed)
    return None


def tried(inverse: float) -> Iterator[tuple[float, float, float]]:
    """Yield triples (scale, rest, offset) of float32 numbers to try in `trunc(fma(x, scale, fma(x, rest, offset)))`:
    scale and rest add up nearly to `inverse`, and the offset is nearly 1/2."""
    nearest = np.array(inverse, np.float32).view(np.int32)
    for units, nudge, offset in product(UNITS, NUDGES, OFFSETS):
        large = float((nearest + np.int32(units)).view(np.float32))
        yield large, float(np.float32(inverse * (1 + nudge) - large)), offset


def reaches(x: Array, large: float, rest: float, offset: float) -> Array:
    """Return, for each float in row j of `x` (counted from 1), whether `trunc(fma(x, large, fma(x, rest, offset)))` is
    at least j; all False if float64 cannot decide it. Products of floats are exact in float64, and so is a sum together
    with its rounding error."""
    level = np.arange(1, len(x) + 1)[:, None]
    below = (level + np.nextafter(level.astype(np.float32), np.float32(0)).astype(np.float64)) / 2
    x = x.astype(np.float64)
    first = x * rest + offset
    rounded, other = (np.nextafter(first, end).astype(np.float32) for end in (-np.inf, np.inf))
    if (rounded != other).any():
        return np.zeros(x.shape, np.bool_)
    a, b = x * large, rounded.astype(np.float64)
    total = a + b
    part = total - a
    left = (a - (total - part)) + (b - part)
    return (total - below) + left >= 0


def rewrite_quotient(found: Quotient, constants: Emitter) -> None:
    """fptosi(min(r > low ? r : low, high)), r = round(%x / s) => fptosi(fma(f, scale, fma(f, rest, copysign(offset,
    f)))), f = min(%x > least ? %x : least, most)

    `scale`, `rest` and `offset` are those of `found.form`, which replace the division by the constant `s`; the bounds
    are those of `Quotient`. If a zero point is added to the integer, the sum is clamped once more, although it is in
    range already: later passes derive the range of codes from the clamp.
    """
    end, f32 = found.ops[-1], Float32Type()
    e = constants.in_front_of(end)
    least = constants.constant(found.least, f32)
    raised = e(arith.SelectOp(e(arith.CmpfOp(found.x, least, "ogt")), found.x, least))
    value = e(arith.MinimumfOp(raised, constants.constant(found.most, f32)))
    numbers = [constants.constant(float(column[0]), f32) for column in found.form.columns]
    result = e(arith.FPToSIOp(line(e, value, numbers, found.form, None), i32))
    added = followers(end, ["arith.addi"])
    end.results[0].replace_all_uses_with(result)
    for op in reversed(found.ops):
        Rewriter.erase_op(op)
    if added is not None and (zero := number(added[0].operands[1])) is not None:
        clamp(added[0], found.low + int(zero), found.high + int(zero), constants)


def clamp(op: Operation, low: int, high: int, constants: Emitter) -> None:
    """Clamp the result of an op to `low` to `high`, and make all its users read the clamped integer."""
    block, result = op.parent_block(), op.results[0]
    assert block is not None
    e, uses = Emitter(block, op.location, constants, op.next_op), list(result.uses)
    raised = e(arith.MaxSIOp(result, constants.constant(low, i32)))
    clamped = e(arith.MinSIOp(raised, constants.constant(high, i32)))
    for use in uses:
        use.operation.operands[use.index] = clamped
