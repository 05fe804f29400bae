"""`select-target-ops`: replaces dot products and other ops by the target's instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import ModuleOp, bf16, f64, i8, i16, i32, i64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.arith import ExtUIOp, FPToSIOp, TruncIOp
from relay.dialects.attributes import to_numpy
from relay.lowering.builder import Before, LoopBuilder
from relay.lowering.dot_products import DotProduct, MatrixProduct, NibbleProduct, computed_by
from relay.lowering.linalg.softmax import EITHER
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.saturate import Clamp, clipped, constant_of
from relay.lowering.shaped import is_vector, scalar_of, vector_of
from relay.lowering.walking import walked
from relay.passes.target_pass import TargetPass
from relay.target import Target
from relay.target.dots import Dot

SELECTED = frozenset(
    op.name for op in (CallOp, TruncIOp, arith.TruncIOp, arith.MaximumfOp, arith.MinimumfOp, arith.MuliOp, vector.FMAOp)
)
"""The names of the ops that the pass examines; comparing names is ten times as fast as `isinstance`."""
CLIPS = arith.MaxSIOp | arith.MinSIOp
LEAST, GREATEST = -(2**15), 2**15 - 1


@dataclass(frozen=True)
class SelectTargetOps(TargetPass):
    """Select the target's instruction for each dot product.

    A call of a function that computes a dot product becomes calls of the LLVM intrinsic, each on as many lanes as the
    intrinsic takes, or, if the target has none, products in `arith` and `vector`; the functions are removed. On x86,
    `arith.maximumf` and `arith.minimumf` of vectors become comparisons and selects, because x86's instruction returns
    its second operand if one is NaN; the maximum of a softmax, which may ignore NaN, becomes one comparison and one
    select. On all targets without f16 arithmetic, maxima and minima of vectors that are extended from f16 to f32 become
    comparisons and selects, too: LLVM would compute them in f16, on AArch64 lane by lane. On microcontrollers, all
    maxima and minima become comparisons and selects: LLVM would call `fmaximumf`, which their C libraries lack. Without
    fused multiply-adds, `vector.fma` becomes a product and a sum: LLVM would call `fmaf` for each lane. On AArch64,
    vectors that are clamped to 8-bit codes are narrowed twice, with saturation. If no instruction computes 64 bits of a
    product (Cortex-M0), `arith.muli` of i64 becomes products of 32 bits: LLVM would call `__muldi3`.
    """

    name: ClassVar[str] = "select-target-ops"
    requires = ("loops",)
    establishes = ("target-ops",)
    invalidates = ()
    why = "selects the target's instruction for each dot product"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not dot_products(op)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = self.target(op)
        x86, narrows, dots = target.is_x86, target.narrows_saturating, dot_products(op)
        scalar, fuses, half_floats = not target.has_vectors, target.fuses, target.half_floats
        names = {name: dot for name, (_, dot) in dots.items()}
        for inner in walked(op):
            if inner.name not in SELECTED:
                continue
            if isinstance(inner, CallOp) and (dot := names.get(inner.callee.root_reference.data)) is not None:
                select(inner, dot, target)
            elif isinstance(inner, vector.FMAOp):
                if not fuses:
                    multiply_and_add(inner)
            elif isinstance(inner, arith.MuliOp):
                if inner.result.type == i64 and not target.multiplies_to_64_bits:
                    multiply_by_halves(inner)
            elif isinstance(inner, arith.MaximumfOp | arith.MinimumfOp):
                if scalar or (is_vector(inner.result.type) and (x86 or not half_floats and were_halves(inner))):
                    choose(inner)
            elif (
                narrows and isinstance(inner, TruncIOp | arith.TruncIOp) and (found := match_narrow(inner)) is not None
            ):
                narrow(inner, found)
        for function, _ in dots.values():
            Rewriter.erase_op(function)


def dot_products(module: ModuleOp) -> dict[str, tuple[FuncOp, DotProduct]]:
    """Return the module's own functions that compute a dot product, by name."""
    private = [each for each in module.ops if isinstance(each, FuncOp) and each.sym_visibility is not None]
    found = ((function, computed_by(function)) for function in private)
    return {function.sym_name.data: (function, dot) for function, dot in found if dot is not None}


def select(op: CallOp, product: DotProduct, target: Target) -> None:
    """Select the instructions for one dot product."""
    matrix, b = isinstance(product, MatrixProduct), Before(op)
    if isinstance(product, NibbleProduct):
        fitting = [] if target.nibble_dot is None else [target.nibble_dot]
    else:
        fitting = target.dots_of(product.group, product.element, product.unsigned)
    dot = next((d for d in fitting if d.matrix == matrix and product.lanes % d.lanes == 0), None)
    for number, made in enumerate(product.taken(*op.arguments[1:]), 1):
        for each in made:
            op.operands[number] = b.add(each).results[0]
    result = spelled_out(b, op, product) if dot is None else spelled(b, op, product, dot)
    Rewriter.replace_op(op, [], [result])


def multiply_and_add(op: vector.FMAOp) -> None:
    """vector.fma %a, %b, %c  =>  arith.addf (arith.mulf %a, %b), %c"""
    b = Before(op)
    product = b.add(arith.MulfOp(op.lhs, op.rhs)).result
    Rewriter.replace_op(op, [], [b.add(arith.AddfOp(product, op.acc)).result])


def multiply_by_halves(op: arith.MuliOp) -> None:
    """arith.muli %a, %b : i64  =>  with words aH aL and bH bL, signed halves x1 y1 and unsigned ones x0 y0 of aL and
    bL, all in i32 (of unsigned halves alone, LLVM would make one product of 64 bits again):

        t = x1 * y0 + (x0 * y0 >> 16)        u = x0 * y1 + (t & 0xFFFF)        lower = aL * bL
        upper = x1 * y1 + (t >> 16) + (u >> 16) + (aH + (aL < 0)) * bL + aL * (bH + (bL < 0))

    `t` and `u` do not overflow: 2^15 * (2^16 - 1) + 2^16 - 1 is less than 2^31."""
    b = Before(op)

    def of(kind: type[arith.SignlessIntegerBinaryOperation], x: SSAValue, y: SSAValue) -> SSAValue:
        return b.add(kind(x, y)).result

    half, mask, last = b.constant(16, i32), b.constant(0xFFFF, i32), b.constant(31, i32)

    def words(value: SSAValue) -> tuple[SSAValue, SSAValue]:
        upper, lower = (
            b.add(TruncIOp(v, i32)).results[0] for v in (of(arith.ShRUIOp, value, b.constant(32, i64)), value)
        )
        return of(arith.SubiOp, upper, of(arith.ShRSIOp, lower, last)), lower

    (a_upper, a), (c_upper, c) = words(op.lhs), words(op.rhs)
    (x1, x0), (y1, y0) = ((of(arith.ShRSIOp, word, half), of(arith.AndIOp, word, mask)) for word in (a, c))
    t = of(arith.AddiOp, of(arith.MuliOp, x1, y0), of(arith.ShRUIOp, of(arith.MuliOp, x0, y0), half))
    u = of(arith.AddiOp, of(arith.MuliOp, x0, y1), of(arith.AndIOp, t, mask))
    upper = of(arith.MuliOp, x1, y1)
    carried = [of(arith.ShRSIOp, t, half), of(arith.ShRSIOp, u, half)]
    for part in (*carried, of(arith.MuliOp, a_upper, c), of(arith.MuliOp, a, c_upper)):
        upper = of(arith.AddiOp, upper, part)
    lower = b.add(ExtUIOp(of(arith.MuliOp, a, c), i64)).results[0]
    shifted = b.add(arith.ShLIOp(b.add(ExtUIOp(upper, i64)).results[0], b.constant(32, i64))).result
    Rewriter.replace_op(op, [], [b.add(arith.OrIOp(shifted, lower)).result])


def were_halves(op: arith.MaximumfOp | arith.MinimumfOp) -> bool:
    """Whether both operands are extensions of narrower floats."""
    return all(isinstance(value.owner, arith.ExtFOp) for value in (op.lhs, op.rhs))


def choose(op: arith.MaximumfOp | arith.MinimumfOp) -> None:
    """maximumf %a, %b  =>  select (%b is a number), (select %b > %a, %b, %a), %b: two selects, one of which does not
    depend on %a, which is usually the accumulator. If either operand may be returned for a NaN, or %b is a constant,
    only `select %b > %a` is emitted."""
    b, old, new = Before(op), op.lhs, op.rhs
    better = b.compare(new, "ogt" if isinstance(op, arith.MaximumfOp) else "olt", old)
    best = b.select(better, new, old)
    constant = new.owner
    number = isinstance(constant, arith.ConstantOp) and not np.isnan(to_numpy(constant.value)).any()
    if number or EITHER in op.attributes:
        Rewriter.replace_op(op, [], [best])
        return
    Rewriter.replace_op(op, [], [b.select(b.compare(new, "ord", new), best, new)])


def spelled(b: LoopBuilder, op: CallOp, product: DotProduct, dot: Dot) -> SSAValue:
    """Return the dot product as intrinsics, each on a part of the lanes."""
    accumulator, data, weights = op.arguments
    lanes, sum = product.lanes, product.sums.element_type
    operands = [(data, 0 if dot.matrix else dot.group), (weights, dot.group // dot.rows)]
    if dot.by_lane and not dot.unsigned:
        operands.reverse()  # both are signed; the instruction takes one lane of its second operand
    if dot.adds:
        operands.insert(0, (accumulator, 1))
    parts: list[SSAValue] = []
    for start in range(0, lanes, dot.lanes):
        pieces = [
            b.shuffle(value, value, range(start * size, (start + dot.lanes) * size))
            if size and lanes != dot.lanes
            else value
            for value, size in operands
        ]
        parts.append(b.intrinsic(dot.intrinsic, pieces, vector_of(sum, dot.lanes)))
    whole = b.joined(parts)
    return whole if dot.adds else b.add(arith.AddiOp(accumulator, whole)).result


def spelled_out(b: LoopBuilder, op: CallOp, dot: DotProduct) -> SSAValue:
    """Return the dot product computed without a special instruction: for each k, the k-th factors of all sums are
    picked by a shuffle, extended, multiplied, and added to the sums."""
    total, data, weights = op.arguments
    for k in range(dot.group):
        picked = [b.shuffle(value, value, lanes) for value, lanes in zip((data, weights), dot.factors(k), strict=True)]
        wide = [b.add(kind(value, dot.sums)).result for kind, value in zip(dot.extensions, picked, strict=True)]
        multiply, add = (arith.MulfOp, arith.AddfOp) if dot.element == bf16 else (arith.MuliOp, arith.AddiOp)
        total = b.add(add(total, b.add(multiply(wide[0], wide[1])).result)).result
    return total


def match_narrow(op: TruncIOp | arith.TruncIOp) -> Clamp | None:
    """Return the narrowing from 32 to 8 bits that clamps to codes; None for any other op."""
    value, low, high, zero = op.operands[0], -(2**31), 2**31 - 1, 0
    type = op.results[0].type
    if not is_vector(type) or type.get_shape()[0] % 8 or scalar_of(type) != i8 or scalar_of(value.type) != i32:
        return None
    while isinstance(owner := value.owner, CLIPS) and (bound := constant_of(owner.rhs)) is not None:
        if isinstance(owner, arith.MaxSIOp):
            low = min(max(low, bound), high)
        else:
            high = max(min(high, bound), low)
        value = owner.lhs
    if isinstance(owner := value.owner, arith.AddiOp) and (number := constant_of(owner.rhs)) is not None:
        value, zero = owner.lhs, number
    codes = 0 <= low <= high <= 255 or -128 <= low <= high <= 127
    return Clamp(value, zero, low, high) if codes and abs(zero) <= GREATEST - 255 else None


def whole(b: LoopBuilder, value: SSAValue, lanes: int) -> SSAValue:
    """Return the vector `value` of `lanes` i32, in a form that LLVM does not merge with the clamp after it. If it is
    converted from f64 to i32, return a conversion to i64 that is truncated to i32 instead: LLVM would merge the direct
    conversion and the clamp to a saturating conversion, which is done lane by lane."""
    owner = value.owner
    if not isinstance(owner, FPToSIOp | arith.FPToSIOp) or scalar_of(owner.operands[0].type) != f64:
        return value
    wide = b.add(FPToSIOp(owner.operands[0], vector_of(i64, lanes))).result
    return b.add(TruncIOp(wide, vector_of(i32, lanes))).result


def clamped(
    b: LoopBuilder, value: SSAValue, low: int, high: int, lanes: int, wide: Attribute, type: Attribute
) -> SSAValue:
    """Emit trunci(min(max(value, low), high)), for which LLVM selects one instruction if the bounds are those of a
    type."""
    above = b.add(arith.MaxSIOp(value, vector_constant(b, low, wide, lanes))).result
    inside = b.add(arith.MinSIOp(above, vector_constant(b, high, wide, lanes))).result
    return b.add(TruncIOp(inside, vector_of(type, lanes))).result


def narrow(op: TruncIOp | arith.TruncIOp, found: Clamp) -> None:
    """Replace the op by AArch64's saturating narrowing instructions: first to 16 bits (SQXTN), then the zero point is
    added, with saturation, and the sum is narrowed to 8 bits (SQXTN, SQXTUN). Values that saturate on the way would be
    clamped anyway; bounds narrower than the codes' range are applied to bytes, 16 at once. Without this, LLVM clamps 4
    numbers at once and looks the bytes up (TBL), for which the vectors have to be in neighbouring registers, so that
    the surrounding loops move all their register contents."""
    b = Before(op)
    type = op.results[0].type
    assert is_vector(type)
    lanes = type.get_shape()[0]
    words = clamped(b, whole(b, found.value, lanes), LEAST, GREATEST, lanes, i32, i16)
    if found.zero:
        assert isinstance(found.zero, int)
        number = vector_constant(b, found.zero, i16, lanes)
        words = b.intrinsic(f"llvm.sadd.sat.v{lanes}i16", [words, number], words.type)
    least, greatest = (0, 255) if found.low >= 0 else (-128, 127)
    codes = clamped(b, words, least, greatest, lanes, i16, i8)
    Rewriter.replace_op(op, [], [clipped(b, codes, found.low, found.high, lanes)])
