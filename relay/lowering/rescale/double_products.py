"""Products in float64 that are rounded to an integer and clamped, as integer arithmetic, for targets without a float64
unit: there `round(f64(x) * s)` calls four library functions.

Both `round(f64(x) * s)`, halves away from zero, and `(x * M + 2^(n-1)) >> n`, with s close to M / 2^n, are monotone in
x. A level is a possible result. Both give the same integers if they reach each level at the same least x; results
beyond the clamp do not matter. The least x of each level between the clamp's bounds is computed for both: for the
product by trying the integers around level / s with float64 rounding, for the integer form by division of integers. If
no M of 31 bits that is tried is right at every level, and all scales are equal, magnitudes get a special form
(`Steps`); else the product is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.dialects.arith import FPToSIOp, SIToFPOp, TruncIOp
from relay.dialects.attributes import Array
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter, number
from relay.lowering.rescale.find import bounds
from relay.lowering.rescale.forms import constant_or_channels
from relay.lowering.rescale.quotients import LEVELS, followers
from relay.lowering.rescale.values import read_by
from relay.transforms.dead_ops import erase_dead

AROUND = 2
"""To find the least integer whose rounded product with the scale is at least a given integer `level`, this number of
integers is tried on each side of `(level - 1/2) / scale`. Few are enough: the relative error of float64 is 2^-52, and
the integers are below 2^31."""
UNITS = (0, 1, -1, 2, -2)
"""Units in the last place by which multipliers are varied."""
WORD, FRACTION = 32, 22
PARTS = arith.FPToSIOp | FPToSIOp | math.RoundOp | arith.MulfOp | arith.SIToFPOp | SIToFPOp
"""The classes of the ops in `fptosi(round(sitofp(x) * s))`: multiplication, rounding, and conversions of both xDSL and
relay, since modules parsed from text have relay's."""


@dataclass(frozen=True)
class Product:
    """`fptosi(round(sitofp(x) * s)) : i32`, and its replacement `(x * multiplier + 2^(shift - 1)) >> shift`.
    `multipliers`: for each call of the function, one multiplier, or one per channel. `steps`: another replacement (see
    `Steps`), which is used if no multiplier gives the right results."""

    op: arith.MulfOp
    end: Operation
    x: SSAValue
    multipliers: list[Array]
    shift: int
    steps: Steps | None = None


@dataclass(frozen=True)
class Steps:
    """`y = (u * multiplier + 2^(shift - 1)) >> shift` of the magnitude `u = min(|x|, top)`. `top`: the least integer
    with the largest result that the later clamp lets through; its product with the multiplier has at most 62 bits.

    If a scale is a decimal number such as 0.00015, whose float64 is slightly too small, an exact product may lie
    half-way between two integers while the product with the float64 lies just below. float64 then rounds that product
    up to the half only if the error is at most half a unit in the last place, that is, if the product's leading bits
    are at most `cut`: relative to the product, the unit shrinks as these bits grow. Above `cut`, `nudge` is therefore
    subtracted from the sum. As it is less than the multiplier, y stays monotone in u, so that y is right for every u if
    it is right at the least u for each result, and at the integer below.
    """

    multiplier: int
    shift: int
    top: int
    cut: int | None = None

    @property
    def nudge(self) -> int:
        return self.multiplier >> 3

    def leading(self, u: Array) -> Array:
        """Return 32 bits of the product of `u` and the multiplier, from its highest set bit downwards."""
        upper = (u * self.multiplier >> self.shift - FRACTION) | 1
        return upper << WORD - np.frexp(upper.astype(np.float64))[1]

    def __call__(self, u: Array) -> Array:
        total = u * self.multiplier + (1 << self.shift - 1)
        return total - (0 if self.cut is None else self.nudge * (self.leading(u) > self.cut)) >> self.shift


def round_products(function: FuncOp, calls: CallGraph) -> bool:
    """Replace each rounded float64 product `round(f64(x) * s)` of the function by a multiplication and shift of
    integers that gives the same results, if one is found. Return whether any product was replaced."""
    ops = [op for op in function.walk() if isinstance(op, arith.MulfOp)]
    if found := [product for op in ops if (product := find_product(op, calls)) is not None]:
        constants = Emitter.at_start(function)
        for product in found:
            rewrite_product(product, constants, calls)
    return bool(found)


def find_product(op: arith.MulfOp, calls: CallGraph) -> Product | None:
    """Return the integer form of a product of an i32 and constants below one; None if the op is no such product, or no
    form is found."""
    converted, steps = op.lhs.owner, followers(op, ["math.round", "arith.fptosi"])
    if op.result.type != Float64Type() or steps is None or not isinstance(converted, arith.SIToFPOp | SIToFPOp):
        return None
    end, scales = steps[-1], scales_of(op.rhs, calls)
    if converted.input.type != i32 or end.results[0].type != i32 or not scales:
        return None
    low, high = bounds(end.results[0])
    every = np.concatenate(scales)
    if not (0 < high - low < LEVELS and 2.0**-30 <= every.min() and every.max() < 1):
        return None
    shift, levels = 31 - frexp(float(every.max()))[1], np.arange(low + 1, high + 1)
    multipliers = {scale: multiplier_of(scale, shift, levels) for scale in set(every.tolist())}
    if None in multipliers.values():
        steps = steps_of(every.tolist()[0], max(-low, high)) if len(multipliers) == 1 else None
        return None if steps is None else Product(op, end, converted.input, [], steps.shift, steps)
    found = [np.array([multipliers[scale] for scale in array.tolist()], np.int32) for array in scales]
    return Product(op, end, converted.input, found, shift)


def scales_of(value: SSAValue, calls: CallGraph) -> list[Array] | None:
    """Return the float64 values that a factor in the body of a `linalg.generic` takes: for an argument of the body, the
    elements of the constant tensor that it reads, an array for each call of the function; for a constant, a single
    array of one element. None if the values are not constants."""
    if isinstance(constant := number(value), float):
        return [np.array([constant])]
    return read_by(value, calls) if isinstance(value, BlockArgument) else None


def multiplier_of(scale: float, shift: int, levels: Array) -> int | None:
    """Return an integer m for which `(x * m + 2^(shift - 1)) >> shift` reaches each result in `levels` at the same
    least integer x as the rounded float64 product `x * scale`; None if no m that is tried does."""
    nearest, wanted = int(np.rint(scale * 2.0**shift)), least_of_product(levels, scale)
    tried = (nearest + unit for unit in UNITS if 0 < nearest + unit < 2**31)
    return next((each for each in tried if least_of_integers(levels, each, shift) == wanted), None)


def steps_of(scale: float, most: int) -> Steps | None:
    """Return the `Steps` that give the same integers as a rounded multiplication by the float64 `scale`, for all
    results from `-most` to `most`; None if none are found."""
    levels = np.arange(1, most + 1)
    least = np.array(least_of_product(levels, scale))
    top = int(least[-1])
    if top >= 2**31 - 1 or most >= 1 << WORD - 1 - FRACTION:
        return None
    shift = 2 * WORD - 2 - top.bit_length() - frexp(scale)[1]
    for unit in UNITS:
        steps = Steps(int(scale * 2.0**shift) + unit, shift, top)
        early = steps(least - 1) >= levels
        if early.any():
            steps = replace(steps, cut=int(steps.leading(least[early] - 1).min()) - 1)
        if (steps(least) >= levels).all() and (steps(least - 1) < levels).all():
            return steps
    return None


def least_of_product(levels: Array, scale: float) -> list[int]:
    """Return, for each level, the least integer whose product with the scale is rounded to that level or more."""
    half = levels - 0.5
    tried = np.floor(half / scale)[:, None] + np.arange(-AROUND, AROUND + 1)
    products = tried * np.float64(scale)
    reached = np.where(levels[:, None] > 0, products >= half[:, None], products > half[:, None])
    assert not reached[:, 0].any() and reached[:, -1].all()
    return tried[np.arange(len(levels)), reached.argmax(axis=1)].astype(np.int64).tolist()


def least_of_integers(levels: Array, multiplier: int, shift: int) -> list[int]:
    """Return, for each level, the least integer x for which `(x * multiplier + 2^(shift - 1)) >> shift` reaches it."""
    return [-((-(level << shift) + (1 << shift - 1)) // multiplier) for level in levels.tolist()]


def rewrite_product(found: Product, constants: Emitter, calls: CallGraph) -> None:
    """fptosi(round(sitofp %x * s))  =>  (%x * M + 2^(n-1)) >> n, where `M` is `found.multipliers` and `n` is
    `found.shift`: in i64 if n <= 32, else as `(trunci((%x * M) >> 32) + 2^(n-33)) >> (n - 32)` with i32 after the
    truncation. If `found.steps` is set, its formula is used instead."""
    e, shift = constants.in_front_of(found.end), found.shift
    if (steps := found.steps) is not None:
        result = write_steps(steps, found.x, e)
        found.end.results[0].replace_all_uses_with(result)
        erase_dead([found.end], PARTS)
        return
    multiplier = constant_or_channels(found.op, found.multipliers, i32, constants, calls)
    product = e(arith.MuliOp(e(arith.ExtSIOp(found.x, i64)), e(arith.ExtSIOp(multiplier, i64))))
    if shift > WORD:
        upper = e(TruncIOp(e(arith.ShRSIOp(product, e.constant(WORD, i64))), i32))
        half = e.constant(1 << shift - WORD - 1, i32)
        result = e(arith.ShRSIOp(e(arith.AddiOp(upper, half)), e.constant(shift - WORD, i32)))
    else:
        half = e.constant(1 << shift - 1, i64)
        result = e(TruncIOp(e(arith.ShRSIOp(e(arith.AddiOp(product, half)), e.constant(shift, i64))), i32))
    found.end.results[0].replace_all_uses_with(result)
    erase_dead([found.end], PARTS)


def write_steps(steps: Steps, x: SSAValue, e: Emitter) -> SSAValue:
    """Emit `(u * multiplier + half - (leading(u) > cut ? nudge : 0)) >> shift` with the sign of x, for `u = min(|x|,
    top)` and `half = 2^(shift - 1)`, and return it; the other names are those of `Steps`."""
    u = e(arith.MinUIOp(e(math.AbsIOp(x)), e.constant(steps.top, i32)))
    product = e(arith.MuliOp(e(arith.ExtUIOp(u, i64)), e.constant(steps.multiplier, i64)))
    half: SSAValue = e.constant(1 << steps.shift - 1, i64)
    if steps.cut is not None:
        upper = e(TruncIOp(e(arith.ShRSIOp(product, e.constant(steps.shift - FRACTION, i64))), i32))
        upper = e(arith.OrIOp(upper, e.constant(1, i32)))
        leading = e(arith.ShLIOp(upper, e(math.CountLeadingZerosOp(upper))))
        short = e(arith.CmpiOp(leading, e.constant(steps.cut - (1 << WORD) * (steps.cut >> WORD - 1), i32), "ugt"))
        half = e(arith.SelectOp(short, e.constant((1 << steps.shift - 1) - steps.nudge, i64), half))
    y = e(TruncIOp(e(arith.ShRSIOp(e(arith.AddiOp(product, half)), e.constant(steps.shift, i64))), i32))
    sign = e(arith.ShRSIOp(x, e.constant(WORD - 1, i32)))
    return e(arith.SubiOp(e(arith.XOrIOp(y, sign)), sign))
