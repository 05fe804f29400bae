"""`expand-apply-scale`: expands rescaling to integer arithmetic, or to equal float arithmetic."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tosa import RoundingMode
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter, number
from relay.lowering.linalg.fixed_point import rounding_right_shift
from relay.lowering.rescale.device_sums import find_device_sum, rewrite_device_sum
from relay.lowering.rescale.double_products import round_products
from relay.lowering.rescale.find import find
from relay.lowering.rescale.forms import channel_operand, drop_unused, erase_scales, rewrite
from relay.lowering.rescale.high_halves import find_halves, rewrite_in_halves
from relay.lowering.rescale.products import fuse_products
from relay.lowering.rescale.quotients import (
    find_inverse,
    find_quotient,
    rewrite_inverse,
    rewrite_quotient,
    round_at_once,
)
from relay.lowering.rescale.sums import find_sum, rewrite_sum
from relay.lowering.rescale.values import exponent_of, scalars
from relay.lowering.rescale.wide_products import find_wide, rewrite_wide
from relay.lowering.walking import walked
from relay.passes.target_pass import TargetPass
from relay.target import ATTRIBUTE, Target
from relay.target.record import NVVM_TOWARD_ZERO

WORD = 32
FORMS = ("f32", "f32x2", "f64", "i32", "literal")


@dataclass(frozen=True)
class ExpandApplyScale(TargetPass):
    """Turn each `tosa.apply_scale` into `arith` and `math`, exactly. There are no branches, so that the code
    vectorizes.

    An op is computed in one of five forms; the module's attribute `relay.rescale` counts the channels of each form, and
    the same attribute of a function only that function's channels. If multiplier and shift are constants in every
    caller, it becomes multiply-adds in floating point that are proved, channel by channel, to give the same integers
    for every relevant value: one in float32 (`f32`), two (`f32x2`), or one in float64 (`f64`); see
    `relay.lowering.rescale.proof`. On AArch64 and NVIDIA's GPUs, it becomes instructions of 32-bit integers that need
    no proof (`i32`). Otherwise it becomes the formula of TOSA's specification in 64-bit integers (`literal`), with an
    i32 second rounding if the shift is at least 31. A shift `31 - e` is assumed to be at least 31: `relay-to-linalg`
    writes it for exponents e that are not positive.

    If the module's target has multiply-adds that round towards zero (AVX-512, NVIDIA's GPUs), nearly all rescales
    take a form in float32. On NVIDIA's GPUs, the instructions that convert the codes of a rescaled sum to floats, and
    the sum to a code, also clip. Only `literal` is used if the pass has the option `literal`, or if the module's target
    has no multiply-adds; for a module without a target, multiply-adds are assumed.

    Related arithmetic is replaced, too, where the results stay equal. A sum of two rescaled codes that is rescaled once
    more becomes two multiply-adds, tried on all pairs of codes. If a float is divided by a constant,
    rounded with halves away from zero, and clipped to integers, the division and the rounding become multiply-adds; if
    halves are rounded to even, only the division is replaced, by a product and a multiply-add. A product of a code and
    a scale in float64, added to a number and rounded to float32, becomes one float32 multiply-add if the float64 sum is
    exact. On x86, a clipped float that is rounded to even by adding a large number is rounded and
    converted by one instruction. On a target without a floating-point unit, a product in float64 that is rounded and
    clamped to codes becomes a product of integers.
    """

    name = "expand-apply-scale"
    establishes = ("expanded",)
    invalidates = ()
    why = "expands tosa.apply_scale into plain arithmetic"
    literal: bool = False

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(isinstance(inner, ApplyScaleOp) for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        calls = CallGraph(walked(op))
        target = self.target(op)
        literal = self.literal or (ATTRIBUTE in op.attributes and not target.fuses)
        total: Counter[str] = Counter()
        for function in [f for f in walked(op) if f.name == FuncOp.name and isinstance(f, FuncOp)]:
            if not literal and target.divides_by_products:
                multiply_by_inverses(function)
            if not literal and target.is_x86:
                round_at_once(function)
            if not literal:
                fuse_products(function)
            if not (target.fuses or target.has_vectors) and round_products(function, calls):
                drop_unused(function, calls.of(function))
            if any(inner.name == ApplyScaleOp.name for inner in walked(function)):
                counts = expand_function(function, calls, target, literal)
                function.attributes["relay.rescale"] = counted(counts)
                total += counts
                drop_unused(function, calls.of(function))
        if total:
            op.attributes["relay.rescale"] = counted(total)


def expand_function(function: FuncOp, calls: CallGraph, target: Target, literal: bool) -> Counter[str]:
    """Expand every `tosa.apply_scale` of the function to arithmetic; return, for each of `FORMS`, the number of
    channels that are computed in this form. With `literal`, only the form that follows TOSA's definition is used."""
    toward_zero, constants = target.toward_zero, Emitter.at_start(function)
    counts: Counter[str] = Counter()
    if not literal:
        for scale in [s for s in function.walk() if isinstance(s, ApplyScaleOp)]:
            if target.multiplies_wide and (on_device := find_device_sum(scale, calls)) is not None:
                counts["f32"] += 3
                counts["i32"] += rewrite_device_sum(scale, on_device, constants, calls)
            elif (sum := find_sum(scale, calls)) is not None:
                counts["f32"] += 1 + len(sum.inner)
                rewrite_sum(scale, sum, constants, toward_zero == NVVM_TOWARD_ZERO)
    for scale in [s for s in function.walk() if isinstance(s, ApplyScaleOp)]:
        if not literal and target.multiplies_high and (shifts := find_halves(scale, calls)) is not None:
            counts["i32"] += channels(scale, calls)
            rewrite_in_halves(scale, shifts, constants)
            continue
        if not literal and target.multiplies_wide and (wide := find_wide(scale, calls)) is not None:
            counts["i32"] += channels(scale, calls)
            rewrite_wide(scale, wide, constants, calls)
            continue
        found = None if literal else find(scale, calls, toward_zero is not None)
        if found is None:
            counts["literal"] += channels(scale, calls)
            # with registers of one number, a product of 64 bits is two of them
            shifts = None if target.has_vectors else scalars(scale.shift, calls)
            far = shifts is not None and all((each >= 33).all() for each in shifts)
            expand(scale, constants, upper_shift(scale, shifts, calls) if shifts is not None and far else None)
        else:
            counts[found.name] += found.channels
            rewrite(scale, found, constants, calls, toward_zero)
    return counts


def multiply_by_inverses(function: FuncOp) -> None:
    """Replace divisions of floats by constants by multiplications, if the result becomes a clipped integer."""
    divisions = [op for op in function.walk() if isinstance(op, arith.DivfOp)]
    proved = [quotient for op in divisions if (quotient := find_quotient(op)) is not None]
    inverses = [(op, inverse) for op in divisions if (inverse := find_inverse(op)) is not None]
    if proved or inverses:
        constants = Emitter.at_start(function)
        for quotient in proved:
            rewrite_quotient(quotient, constants)
        for op, inverse in inverses:
            rewrite_inverse(op, inverse, constants)


def counted(counts: Counter[str]) -> DictionaryAttr:
    """Return, as a dictionary attribute, the number of channels whose rescaling takes each of `FORMS`."""
    return DictionaryAttr({form: IntegerAttr(counts[form], i64) for form in FORMS})


def channels(op: ApplyScaleOp, calls: CallGraph) -> int:
    """Return the number of constant multipliers of the op, added over all calls of its function; 1 if they are
    unknown."""
    return sum(array.size for array in scalars(op.multiplier, calls) or [np.ones(1)])


def upper_shift(op: ApplyScaleOp, shifts: list[Array], calls: CallGraph) -> SSAValue | int:
    """Return `shift - 33`, the amount by which the upper 32-bit word of the product is shifted right; the result then
    follows by rounding off one more bit. It is an int if it is equal for all channels. Otherwise it is an additional
    8-bit operand per channel, so that it is not computed from the shift for each element."""
    every = np.concatenate(shifts) - (WORD + 1)
    if (every == every[0]).all():
        return int(every[0])
    return channel_operand(op, [op.shift], [(each - (WORD + 1)).astype(np.int8) for each in shifts], calls)


def expand(op: ApplyScaleOp, constants: Emitter, upper: SSAValue | int | None = None) -> None:
    """%r = tosa.apply_scale %x, %m, %s => %r = (%x * %m + rounding) >> %s

    `upper`: if given, the product's upper 32-bit word alone is shifted right by this amount, and then once more by one
    bit with rounding, which has the same result for shifts of 33 bits or more; `upper` is the shift minus 33.
    """
    e = constants.in_front_of(op)
    twice = op.rounding_mode.data == RoundingMode.DOUBLE_ROUND
    shift = number(op.shift)
    product = e(arith.MuliOp(e(arith.ExtSIOp(op.value, i64)), e(arith.ExtSIOp(op.multiplier, i64))))
    if upper is not None:
        result = of_upper_word(e, op, product, upper, twice)
    elif shift is not None:
        result = by_constant(e, product, int(shift), twice)
    elif twice and (exponent := exponent_of(op.shift)) is not None:
        result = rounding_right_shift(e, high_half(e, product), e(arith.SubiOp(e.constant(0, i32), exponent)))
    else:
        result = by_any(e, op, product, twice)
    op.output.replace_all_uses_with(result)
    erase_scales(op)


def by_constant(e: Emitter, product: SSAValue, shift: int, twice: bool) -> SSAValue:
    """Emit the product shifted right by a constant, and rounded; `twice`: with gemmlowp's second rounding, if the shift
    exceeds 31."""
    if twice and shift > 31:
        return rounding_right_shift(e, high_half(e, product), e.constant(shift - 31, i32))
    rounded = e(arith.AddiOp(product, e.constant(1 << (shift - 1), i64)))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, e.constant(shift, i64))), i32))


def high_half(e: Emitter, product: SSAValue) -> SSAValue:
    """Emit `(product + 2^30) >> 31` of an i64 product and return it as i32, which keeps all relevant bits."""
    rounded = e(arith.AddiOp(product, e.constant(1 << 30, i64)))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, e.constant(31, i64))), i32))


def of_upper_word(e: Emitter, op: ApplyScaleOp, product: SSAValue, shift: SSAValue | int, twice: bool) -> SSAValue:
    """Emit the rounding right shift of the i64 `product` by `shift + 33` bits (33 to 62), computed on the product's
    upper 32-bit word; return the result as i32. The half that is added for rounding is at least 2^32, so the lower word
    has no influence on the result, except by a carry if `twice` first adds 2^30 or -2^30, as DOUBLE_ROUND does."""
    if twice:
        sign = e(arith.AndIOp(op.value, e.constant(-(1 << 31), i32)))
        product = e(arith.AddiOp(product, e(arith.ExtSIOp(e(arith.XOrIOp(sign, e.constant(1 << 30, i32))), i64))))
    upper = e(arith.TruncIOp(e(arith.ShRSIOp(product, e.constant(32, i64))), i32))
    before = e.constant(shift, i32) if isinstance(shift, int) else e(arith.ExtUIOp(shift, i32))
    doubled = e(arith.ShRSIOp(upper, before))
    return e(arith.ShRSIOp(e(arith.AddiOp(doubled, e.constant(1, i32))), e.constant(1, i32)))


def by_any(e: Emitter, op: ApplyScaleOp, product: SSAValue, twice: bool) -> SSAValue:
    """Emit the rounding right shift of the i64 `product` by the run-time value `op.shift`, 2 to 62, by the formula of
    TOSA's specification, and return the result as i32; `twice` selects DOUBLE_ROUND."""
    shift = e(arith.ExtUIOp(op.shift, i64))
    half = e(arith.ShRUIOp(e(arith.ShLIOp(e.constant(1, i64), shift)), e.constant(1, i64)))
    rounded = e(arith.AddiOp(product, half))
    if twice:
        positive = e(arith.CmpiOp(op.value, e.constant(0, i32), "sge"))
        nudge = e(arith.SelectOp(positive, e.constant(1 << 30, i64), e.constant(-(1 << 30), i64)))
        long = e(arith.CmpiOp(shift, e.constant(31, i64), "sgt"))
        rounded = e(arith.AddiOp(rounded, e(arith.SelectOp(long, nudge, e.constant(0, i64)))))
    return e(arith.TruncIOp(e(arith.ShRSIOp(rounded, shift)), i32))
