"""The rescaled sum of two rescaled codes on NVIDIA GPUs: codes are converted to floats by the instructions that clip or
extract them, and the sum is rounded, clipped and packed by one instruction.

    y = rint(fma(u, first, fma(v, second, offset)))        zero point of y in the offset

u and v are floats that represent the codes. If the kernel has just clipped a number x to a code of low..high, the code
is represented by `saturate(fma(x, 1 / (high - low), ...))`, 0 for low and 1 for high. If x is the upper word of a
64-bit product that a second multiplication has shifted right, and nothing else uses x, the second multiplication also
adds the bits of the float 2^23, minus low: its result is already a float, without a conversion. An x that exceeds the
23 fraction bits of a float yields the bits of a float on the same side of low and high, which saturates correctly. A
code from memory is placed in the fraction bits of a float from 256 to 512 by a shift and an addition (the instruction
IDP.2A does both). The factors are found by trying candidates on the pairs of codes whose sums are closest to half-way
between two results; those that pass are proved on all pairs, in the exact arithmetic of the instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import TruncIOp
from relay.dialects.attributes import Array
from relay.dialects.tosa import ApplyScaleOp
from relay.interpreters.arithmetic import fused_multiply_add
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter, number
from relay.lowering.rescale.find import bounds
from relay.lowering.rescale.forms import erase_scales
from relay.lowering.rescale.pairs import NEAREST, TRIED, Rescale, Side
from relay.lowering.rescale.sums import parts_of
from relay.lowering.rescale.wide_products import added, find_wide, rewrite_wide
from relay.target.record import NVVM_SATURATE, NVVM_TO_NEAREST
from relay.transforms.dead_ops import erase_dead

PLACE = 15
"""The number of bits by which a code is shifted left to add it to `BASE` in the bits of a float32: floats from 256 to
512 have 15 bits after the binary point."""
BASE = 256.0
FLOAT_PLACES = 23
FLOAT_BITS = int(np.float32(1 << FLOAT_PLACES).view(np.int32))
"""The bits of the smallest float whose unit in the last place is 1."""
CLIPS = arith.MaxSIOp | arith.MinSIOp
NARROWED = arith.SubiOp | arith.ExtSIOp | arith.ExtUIOp | arith.TruncIOp | TruncIOp | CLIPS
"""Ops that clip numbers to codes, and convert codes back to integers."""


@dataclass(frozen=True)
class Code:
    """A code as an operand of a sum that is computed in floats: value v, the code minus its zero point, is represented
    by a float close to `(v - start) / steps`. `values`: the possible values; `floats`: the float of each.

    For a code from memory, `clip` is None. For one that the kernel has just clipped, `clip` is the innermost clip. The
    integer before that clip becomes a float: by a conversion if `base` is 0, else by adding `base`, so that the sum's
    bits are those of a float. A saturating multiply-add of this float with `scale` and `offset` yields the float of the
    code.
    """

    floats: Array
    values: Array
    steps: float
    start: float
    clip: arith.MaxSIOp | arith.MinSIOp | None
    scale: np.float32
    offset: np.float32
    base: int = 0


@dataclass(frozen=True)
class DeviceSum:
    """A rescaled sum of two rescaled codes as `rint(fma(u, first, fma(v, second, offset)))`, where u and v are the
    floats that represent the codes. `codes`: both codes; `operands`: the sum's operands that are computed from them;
    `numbers`: first, second, offset; `zero_point`: the zero point of the result, which the offset contains."""

    codes: tuple[Code, Code]
    operands: tuple[SSAValue, SSAValue]
    numbers: Array
    zero_point: int


def find_device_sum(op: ApplyScaleOp, calls: CallGraph) -> DeviceSum | None:
    """Return a proved form of `apply_scale(apply_scale(f(a)) +- apply_scale(g(b)))`, or None if no form is found. a and
    b are two codes; f(a) and g(b) are the integers, computed from the codes, that the inner rescales take."""
    parts = parts_of(op, calls)
    if parts is None:
        return None
    outer, sides, _ = parts
    first, second = (code_of(value, side, calls) for value, side in sides)
    if first is None or second is None:
        return None
    if first[0].clip is None:  # the outer multiply-add takes the code that is available last
        first, second, sides = second, first, sides[::-1]
    zero_point, codes = added(op), (first[0], second[0])
    numbers = prove(codes, (first[1], second[1]), outer, bounds(op.output), zero_point)
    return None if numbers is None else DeviceSum(codes, (sides[0][0], sides[1][0]), numbers, zero_point)


def code_of(value: SSAValue, side: Side, calls: CallGraph) -> tuple[Code, Side] | None:
    """Return a float form of the 8-bit code from which `value`, an operand of a sum, is computed, and a copy of `side`
    (the operand's description) that has only the codes that are possible after clipping. Return None if the operand is
    not computed from a code, or no float form is found."""
    owner = value.owner
    if isinstance(owner, arith.SubiOp) and number(owner.rhs) is not None:
        owner = owner.lhs.owner
    if not isinstance(owner, arith.ExtSIOp | arith.ExtUIOp) or owner.input.type != IntegerType(8):
        return None
    unsigned = isinstance(owner, arith.ExtUIOp)
    every = np.arange(256, dtype=np.uint8).view(np.uint8 if unsigned else np.int8).astype(np.float64)
    zero_point = float(every[0] - side.values[0])
    if not isinstance(owner.input.owner, Operation):
        floats = BASE + every + (0 if unsigned else 128)
        start = -BASE - (0 if unsigned else 128) - zero_point
        return Code(floats, side.values, 1.0, start, None, np.float32(0), np.float32(0)), side
    clip, low, high = clipped(owner.input.owner)
    if clip is None or not every.min() <= low < high <= every.max():
        return None
    known = (every >= low) & (every <= high)
    base = FLOAT_BITS - int(low) if is_shifted_by_product(value, clip, calls) else 0
    start = np.float32(1 << FLOAT_PLACES) - low if base else 0.0
    for up, down in product(range(5), range(-4, 5)):
        scale = np.float32(1 / (high - low))
        scale = (scale.view(np.int32) + np.int32(up)).view(np.float32)
        offset = np.float32(-(start + low) * float(scale))
        offset = (offset.view(np.int32) + np.int32(down)).view(np.float32) if offset else offset
        floats = fused_multiply_add(start + every[known], np.asarray(scale), np.asarray(offset))
        if floats[every[known] == low][0] <= 0 and floats[every[known] == high][0] >= 1:
            part = Side(side.values[known], side.added[known], side.factor)
            floats = np.clip(floats.astype(np.float64), 0, 1)
            return Code(floats, part.values, high - low, low - zero_point, clip, scale, offset, base), part
    return None


def is_shifted_by_product(value: SSAValue, clip: arith.MaxSIOp | arith.MinSIOp, calls: CallGraph) -> bool:
    """Whether a multiplication can replace the final right shift of the rescale whose result `clip` clips. The rescale
    must be one that can become a wide product (`find_wide`), with a shift by 2 to 31 bits, and nothing but `value` may
    be computed from its result."""
    scale = rescale_before(clip.lhs)
    if scale is None or not all(each.has_one_use() for each in (scale.output, clip.lhs)):
        return False
    while value is not clip.lhs:
        owner = value.owner
        if not value.has_one_use() or not isinstance(owner, NARROWED):
            return False
        value = owner.operands[0]
    wide = find_wide(scale, calls)
    return wide is not None and all(bool(((shift >= 2) & (shift < 32)).all()) for shift in wide.shifts)


def clipped(op: Operation) -> tuple[arith.MaxSIOp | arith.MinSIOp | None, float, float]:
    """Return the innermost clip of a number that is clipped and then narrowed, and the bounds of all its clips; None
    and the bounds of i32 if it is not clipped."""
    low, high, found = -(2.0**31), 2.0**31, None
    value = op.operands[0] if op.name == "arith.trunci" else None
    while value is not None and isinstance(owner := value.owner, CLIPS) and (bound := number(owner.rhs)) is not None:
        low, high = (max(low, bound), high) if isinstance(owner, arith.MaxSIOp) else (low, min(high, bound))
        found, value = owner, owner.lhs
    return found, low, high


def prove(
    codes: tuple[Code, Code], sides: tuple[Side, Side], outer: Rescale, limits: tuple[int, int], zero_point: int
) -> Array | None:
    """Return float32 numbers (first, second, offset) for which `rint(fma(u, first, fma(v, second, offset))) -
    zero_point`, clipped to `limits`, equals the rescaled sum for every pair of codes, where u and v are the floats that
    represent the codes. Return None if no such numbers are found."""
    sums = sides[0].added[:, None] + sides[1].added[None, :]
    if bool((np.abs(sums) >= 2**31).any()):
        return None
    want = np.clip(outer.of(sums), *limits)
    factors = [side.factor * outer.scale for side in sides]
    real = codes[0].values[:, None] * factors[0] + codes[1].values[None, :] * factors[1]
    hard = np.argpartition(-np.abs(real - np.rint(real)), min(NEAREST, real.size - 1), axis=None)[:NEAREST]
    rows, columns = np.unravel_index(hard, real.shape)
    u, v = codes[0].floats[:, None], codes[1].floats[None, :]
    for numbers in candidates(codes, factors, zero_point):
        if np.array_equal(evaluate(u[rows, 0], v[0, columns], numbers, limits, zero_point), want[rows, columns]):
            if np.array_equal(evaluate(u, v, numbers, limits, zero_point), want):
                return numbers
    return None


def candidates(codes: tuple[Code, Code], factors: list[float], zero_point: int) -> Iterator[Array]:
    """Yield triples (first, second, offset) of float32 numbers to try in `rint(fma(u, first, fma(v, second, offset)))`,
    where u and v are the floats of the codes. `first` and `second` differ by a few units in the last place from the
    exact factors of u and v, and `offset` from the constant term of the sum with the tried factors."""
    near = [np.float32(factor * code.steps) for factor, code in zip(factors, codes, strict=True)]
    for units in TRIED:
        first, second = (
            (each.view(np.int32) + np.int32(unit)).view(np.float32) for each, unit in zip(near, units[:2], strict=True)
        )
        starts = zip((first, second), codes, strict=True)
        offset = np.float32(zero_point + sum(float(each) / code.steps * code.start for each, code in starts))
        yield np.array([first, second, offset + np.spacing(offset) * np.float32(units[2])], np.float32)


def evaluate(u: Array, v: Array, numbers: Array, limits: tuple[int, int], zero_point: int) -> Array:
    """Return `clip(rint(fma(u, first, fma(v, second, offset))) - zero_point, *limits)`, where `numbers` are first,
    second and offset, and `u` and `v` are floats that represent codes."""
    total = fused_multiply_add(u, numbers[0], fused_multiply_add(v, numbers[1], numbers[2]))
    return np.clip(np.rint(total) - zero_point, *limits)


def rewrite_device_sum(op: ApplyScaleOp, found: DeviceSum, constants: Emitter, calls: CallGraph) -> int:
    """Replace the rescaled sum of two codes by `f2i.rn(fma(u, first, fma(v, second, offset)))`, where u and v are
    floats that represent the codes, and the other numbers are `found.numbers`. Rescales that produce the codes are
    rewritten first, because the clips that bound their results are still present then. Returns the total number of
    channels of these rescales."""
    count = 0
    for code in found.codes:
        if code.clip is not None and (scale := rescale_before(code.clip.lhs)) is not None:
            if (wide := find_wide(scale, calls)) is not None:
                count += sum(array.size for array in wide.factors)
                rewrite_wide(scale, wide, constants, calls, code.base)
    e = constants.in_front_of(op)
    u, v = (as_float(e, code, value) for code, value in zip(found.codes, found.operands, strict=True))
    first, second, offset = (e.constant(float(each), f32) for each in found.numbers)
    total = e(math.FmaOp(u, first, e(math.FmaOp(v, second, offset))))
    result = e(CallIntrinsicOp(NVVM_TO_NEAREST, [total], [i32]))
    both, user = op.value.owner, next(iter(op.output.uses)).operation
    assert isinstance(both, Operation)
    (user.results[0] if found.zero_point else op.output).replace_all_uses_with(result)
    inner = [value.owner for value in both.operands if isinstance(value.owner, Operation)]
    erase_scales(*([user] if found.zero_point else []), op, both, *inner)
    erase_dead([value.owner for value in found.operands if isinstance(value.owner, Operation)], NARROWED)
    return count


def rescale_before(value: SSAValue) -> ApplyScaleOp | None:
    """Return the rescale that computes a number, to which a zero point may have been added; else None."""
    if isinstance(value.owner, arith.AddiOp) and number(value.owner.rhs) is not None:
        value = value.owner.lhs
    return value.owner if isinstance(value.owner, ApplyScaleOp) else None


def as_float(e: Emitter, code: Code, value: SSAValue) -> SSAValue:
    """Return the float32 that represents a code (`Code.floats`). A code that was just clipped becomes `saturate(fma(x,
    scale, offset))`, where x is the number before the clip; a code from memory becomes the float 256 + code if it is
    unsigned, 384 + code if it is signed, by an addition to the float's bits."""
    if code.clip is not None:
        x = e((arith.BitcastOp if code.base else arith.SIToFPOp)(code.clip.lhs, f32))
        scale, offset = (e.constant(float(each), f32) for each in (code.scale, code.offset))
        return e(CallIntrinsicOp(NVVM_SATURATE, [e(math.FmaOp(x, scale, offset))], [f32]))
    owner = value.owner
    wide = owner.lhs if isinstance(owner, arith.SubiOp) else value
    middle = BASE + (0 if isinstance(wide.owner, arith.ExtUIOp) else 128)
    base = e.constant(int(np.float32(middle).view(np.int32)), i32)
    return e(arith.BitcastOp(e(arith.AddiOp(e(arith.ShLIOp(wide, e.constant(PLACE, i32))), base)), f32))
