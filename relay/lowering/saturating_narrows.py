"""Narrows vectors of 32-bit integers that are clamped to 8-bit codes, by AArch64's saturating narrowing instructions.

`trunci(min(max(x + zero, low), high))` is narrowed to 16 bits first, with saturation (SQXTN), then zero is added, with
saturation, and the sum is narrowed to 8 bits (SQXTN, SQXTUN): values that saturate on the way would be clamped anyway.
Bounds narrower than the codes' range are applied to bytes, 16 at once. Without this, LLVM clamps 4 numbers at once and
looks the bytes up (TBL), for which the vectors have to be in neighbouring registers, so that the surrounding loops move
all their register contents.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i8, i16, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.arith import FPToSIOp, TruncIOp
from relay.dialects.attributes import to_numpy
from relay.lowering.builder import Before, LoopBuilder
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.saturate import Clamp, clipped
from relay.lowering.shaped import is_vector, scalar_of, vector_of

LEAST, GREATEST = -(2**15), 2**15 - 1


def match_narrow(op: TruncIOp | arith.TruncIOp) -> Clamp | None:
    """Return the narrowing from 32 to 8 bits that clamps to codes; None for any other op."""
    value, low, high, zero = op.operands[0], -(2**31), 2**31 - 1, 0
    type = op.results[0].type
    if not is_vector(type) or type.get_shape()[0] % 8 or scalar_of(type) != i8 or scalar_of(value.type) != i32:
        return None
    while isinstance(owner := value.owner, arith.MaxSIOp | arith.MinSIOp) and (bound := splat(owner.rhs)) is not None:
        if isinstance(owner, arith.MaxSIOp):
            low = min(max(low, bound), high)
        else:
            high = max(min(high, bound), low)
        value = owner.lhs
    if isinstance(owner := value.owner, arith.AddiOp) and (number := splat(owner.rhs)) is not None:
        value, zero = owner.lhs, number
    codes = 0 <= low <= high <= 255 or -128 <= low <= high <= 127
    return Clamp(value, zero, low, high) if codes and abs(zero) <= GREATEST - 255 else None


def splat(value: SSAValue) -> int | None:
    """Return the number in all lanes of a constant; None if the value is no constant, or lanes differ."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    numbers = np.unique(to_numpy(value.owner.value))
    return int(numbers[0]) if numbers.size == 1 else None


def whole(b: LoopBuilder, value: SSAValue, lanes: int) -> SSAValue:
    """Return a vector of `lanes` i32. If it is converted from f64, the conversion to i64, truncated to i32, replaces
    it: LLVM would merge a conversion to i32 and its clamp to a saturating conversion, done lane by lane."""
    owner = value.owner
    if not isinstance(owner, FPToSIOp | arith.FPToSIOp) or scalar_of(owner.operands[0].type) != f64:
        return value
    return b.add(
        TruncIOp(b.add(FPToSIOp(owner.operands[0], vector_of(i64, lanes))).result, vector_of(i32, lanes))
    ).result


def clamped(
    b: LoopBuilder, value: SSAValue, low: int, high: int, lanes: int, wide: Attribute, type: Attribute
) -> SSAValue:
    """Emit trunci(min(max(value, low), high)), for which LLVM selects one instruction if the bounds are those of a
    type."""
    above = b.add(arith.MaxSIOp(value, vector_constant(b, low, wide, lanes))).result
    inside = b.add(arith.MinSIOp(above, vector_constant(b, high, wide, lanes))).result
    return b.add(TruncIOp(inside, vector_of(type, lanes))).result


def narrow(op: TruncIOp | arith.TruncIOp, found: Clamp) -> None:
    """Replace the op by two saturating narrowings."""
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
