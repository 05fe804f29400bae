"""Rescaling by AArch64's integer instructions, which compute gemmlowp's two steps lane by lane and need no proof:

    h = sqrdmulh(x, M) = (x * M + 2^30) >> 31        y = srshl(h + ((h & -n) >> 31), -n),  n = shift - 31

SQRDMULH is the first rounding of DOUBLE_ROUND: halves up. SRSHL by a negative number shifts right and rounds halves up,
so one is subtracted from a negative h first: `(h & -n) >> 31` is -1 if both are negative. If results below zero do not
matter, this is omitted: what is below zero stays so, or becomes zero.

SINGLE_ROUND rounds `x * M / 2^shift` once, halves up: SQDMULH truncates, and the truncated part is less than every half
if n > 0; for n = 0 it is SQRDMULH alone. This saves two float32 instructions per vector (conversions there and back),
and float64, which is half as wide, is never needed. Source: Arm Architecture Reference Manual, C7 (A64 SIMD).
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.dialects.tosa import RoundingMode

from relay.dialects.attributes import Array
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter
from relay.lowering.rescale.find import bounds
from relay.lowering.rescale.forms import erase_scales
from relay.lowering.rescale.values import exponent_of, scalars

ROUNDED, TRUNCATED, SHIFT = (f"llvm.aarch64.neon.{name}.i32" for name in ("sqrdmulh", "sqdmulh", "sqrshl"))
"""The intrinsics' names. There is no SRSHL of 32-bit scalars; SQRSHL saturates, which a shift to the right never
does."""


def find_halves(op: ApplyScaleOp, calls: CallGraph) -> Array | None:
    """Return the shifts of every channel and every call of the function, if AArch64's SQRDMULH or SQDMULH and SRSHL
    compute exactly the integers of `tosa.apply_scale` for them and the multipliers; else None."""
    multipliers, shifts = scalars(op.multiplier, calls), scalars(op.shift, calls)
    if multipliers is None or shifts is None or op.value.type != i32 or op.multiplier.type != i32:
        return None
    every = np.concatenate(shifts)
    if every.min() < 31 or every.max() > 62 or min(array.min() for array in multipliers) <= -(2**31):
        return None
    same = bool((every == 31).all() or (every > 31).all())
    known = bool((every == every[0]).all()) or exponent_of(op.shift) is not None
    return every if known and (same or op.rounding_mode.data == RoundingMode.DOUBLE_ROUND) else None


def rewrite_in_halves(op: ApplyScaleOp, every: Array, constants: Emitter) -> None:
    """%r = tosa.apply_scale %x, %m, %s  =>  srshl(%h + ((%h & 31 - %s) >> 31), 31 - %s), %h = sqrdmulh(%x, %m)

    `every`: the shifts of all channels (`find_halves`)."""
    e, double = constants.in_front_of(op), op.rounding_mode.data == RoundingMode.DOUBLE_ROUND
    product = ROUNDED if double or every[0] == 31 else TRUNCATED
    result = e(CallIntrinsicOp(product, [op.value, op.multiplier], [i32]))
    if bool((every > 31).any()):
        one = bool((every == every[0]).all())
        exponent = e.constant(31 - int(every[0]), i32) if one else exponent_of(op.shift)
        assert exponent is not None
        if double and bounds(op.output)[0] < 0:
            negative = result if one else e(arith.AndIOp(result, exponent))
            result = e(arith.AddiOp(result, e(arith.ShRSIOp(negative, e.constant(31, i32)))))
        result = e(CallIntrinsicOp(SHIFT, [result, exponent], [i32]))
    op.output.replace_all_uses_with(result)
    erase_scales(op)
