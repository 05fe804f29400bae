"""Products in float64 that are added to a float and rounded to float32, as one multiply-add in float32 with equal
results.

`f32(f64(x) * s + f64(y))` rounds twice, `fma(x, s, y)` once. They agree if the sum in float64 is exact, which follows
from the numbers' grids: x is an integer code, s and y are floats, so that the product and y are multiples of the lowest
bits of s and y; a sum below 2^53 units of the finer grid is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FixedBitwidthType, Float32Type, Float64Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.arith import SIToFPOp, UIToFPOp
from relay.lowering.linalg.emitter import Emitter, number
from relay.transforms.dead_ops import erase_dead

CONVERSIONS = {"arith.sitofp": arith.SIToFPOp, "arith.uitofp": arith.UIToFPOp}
PARTS = arith.AddfOp | arith.MulfOp | arith.ExtFOp | arith.SIToFPOp | arith.UIToFPOp | SIToFPOp | UIToFPOp
DIGITS = 53
"""The number of significant bits of a float64."""
LEAST = -140
"""The least exponent of the power of two that both terms of a sum must be multiples of. A sum that is a multiple of
2^-140 is rounded to a normal float32, or is exactly a subnormal one, so that no bits are lost to a subnormal result."""


@dataclass(frozen=True)
class Extent:
    """A float is a multiple of `2^grid`, and its magnitude is smaller than `bound`."""

    grid: int
    bound: float


def fuse_products(function: FuncOp) -> None:
    """Replace `f32(f64(x) * s + f64(y))` by one float32 multiply-add, `fma(x, s, y)`, wherever in the function both are
    proved to be equal."""
    known = dict[SSAValue, Extent]()
    if found := [op for op in function.walk() if isinstance(op, arith.TruncFOp)]:
        constants = Emitter.at_start(function)
        for op in found:
            fuse(op, known, constants)


def fuse(op: arith.TruncFOp, known: dict[SSAValue, Extent], constants: Emitter) -> None:
    """truncf(addf(mulf(sitofp %x, s), extf %y)) : f32  =>  fma(sitofp %x, s, %y); uitofp as well, and constants as y"""
    total, f32 = op.input.owner, Float32Type()
    if not isinstance(total, arith.AddfOp) or op.result.type != f32 or op.input.type != Float64Type():
        return
    for product, other in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        if not isinstance(times := product.owner, arith.MulfOp) or (scale := number(times.rhs)) is None:
            continue
        converted, added = times.lhs.owner, extent_of_addend(other, known)
        if not isinstance(converted, Operation) or converted.name not in CONVERSIONS:
            continue
        x = converted.operands[0]
        if not isinstance(code := x.type, FixedBitwidthType):
            continue
        if (extent := extent_of_sum(code.bitwidth, scale, added)) is None:
            continue
        e = constants.in_front_of(op)
        y = other.owner.input if isinstance(other.owner, arith.ExtFOp) else e.constant(number(other) or 0.0, f32)
        result = e(math.FmaOp(e(CONVERSIONS[converted.name](x, f32)), e.constant(scale, f32), y))
        known[result] = extent
        Rewriter.replace_op(op, [], [result])
        erase_dead([total], PARTS)
        return


def extent_of_sum(bits: int, scale: float, added: Extent | None) -> Extent | None:
    """Return the `Extent` (a power of two of which it is a multiple, and a bound of its magnitude) of the sum of a code
    of `bits` bits times a scale and a float with the extent `added`. None if float64 might round the sum, or if the
    extent of a term is unknown."""
    factor = extent_of_number(scale)
    if factor is None or added is None or bits > 16:
        return None
    grid, bound = min(factor.grid, added.grid), factor.bound * 2**bits + added.bound
    return Extent(grid, 2 * bound) if grid >= LEAST and bound < min(2.0 ** (grid + DIGITS), 2.0**126) else None


def extent_of_addend(value: SSAValue, known: dict[SSAValue, Extent]) -> Extent | None:
    """Return the `Extent` (a power of two of which it is a multiple, and a bound of its magnitude) of a constant, or of
    a float in `known`; None for any other float."""
    if (given := number(value)) is not None:
        return extent_of_number(given)
    return known.get(value.owner.input) if isinstance(value.owner, arith.ExtFOp) else None


def extent_of_number(value: float) -> Extent | None:
    """Return the extent of a number: the largest power of two `2^grid` of which it is a multiple, and the power of two
    above its magnitude. None if float32 cannot represent the number exactly."""
    if not np.isfinite(value) or float(np.float32(value)) != value:
        return None
    mantissa, exponent = frexp(abs(value))
    digits = int(mantissa * 2**24)
    trailing = (digits & -digits).bit_length() - 1 if digits else 24
    return Extent(exponent - 24 + trailing, 2.0**exponent)
