"""Narrows four vectors of i32 to 8-bit codes at once: AVX-512's packs narrow and saturate in one instruction.

A body that ends in `trunci(min(max(value + zero, low), high))`, or in a float that is clamped before it is rounded and
converted, is emitted up to `value`; two packs of pairs and one of the results then replace four additions, eight
comparisons and four conversions. The additions are saturating, of i16: values that saturate there would be clamped to 8
bits anyway. Each pack works inside of 128-bit parts, so four vectors s of 16 lanes become 64 codes with part p of
vector s at 16 * p + 4 * s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.arith import IntegerOverflowAttr, IntegerOverflowFlag
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.attributes import to_numpy
from relay.lowering.builder import LoopBuilder
from relay.lowering.linalg.emitter import clip_of, number
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.shaped import vector_of

PACK_WORDS = "llvm.x86.avx512.packssdw.512"
PACK_SIGNED = "llvm.x86.avx512.packsswb.512"
PACK_UNSIGNED = "llvm.x86.avx512.packuswb.512"
ADD_SATURATING = "llvm.sadd.sat.v32i16"
CONVERSIONS = ("arith.sitofp", "arith.uitofp")
SUMS = ("arith.addf", "arith.subf", "math.fma")
EXTENDS: dict[str, type[ExtSIOp | ExtUIOp]] = {"arith.extsi": ExtSIOp, "arith.extui": ExtUIOp}
"""The ops that extend integers, which also take vectors, by name."""
RANGES: dict[Attribute | None, tuple[int, int]] = {
    IntegerOverflowAttr([IntegerOverflowFlag.NUW]): (0, 255),
    IntegerOverflowAttr([IntegerOverflowFlag.NSW]): (-128, 127),
}
"""The range of an `arith.trunci` to 8 bits, by its overflow flags."""
WIDTH = 64
"""The number of codes that are narrowed at once."""
WORDS = PARTS = 4
"""The number of 32-bit words of four codes in a 128-bit part of a register, and of parts in an AVX-512 register. Each
word of a part comes from another one of the four vectors that are narrowed."""


@dataclass(frozen=True)
class Clamp:
    """The end of a body that yields `min(max(value + zero, low), high)`, narrowed to 8 bits. `zero`: a constant, or the
    op that extends the 8-bit code that each call of the kernel passes as an argument."""

    value: SSAValue
    zero: int | Operation
    low: int
    high: int


def match_clamp(block: Block) -> Clamp | None:
    """Return the clamp to 8-bit codes at the end of a body with one result, else None."""
    end = block.last_op
    if not isinstance(end, linalg.YieldOp) or len(end.operands) != 1:
        return None
    narrow = end.operands[0].owner
    if not isinstance(narrow, Operation) or narrow.name != "arith.trunci" or end.operands[0].type != i8:
        return None
    least, most = RANGES.get(narrow.properties.get("overflowFlags"), (-(2**31), 2**31 - 1))
    value, bounds = narrow.operands[0], {"arith.maxsi": least, "arith.minsi": most}
    zero: int | Operation = 0
    while isinstance(owner := value.owner, Operation) and owner.name in bounds and value.type == i32:
        number = constant_of(owner.operands[1])
        if number is None:
            return None
        outer = bounds[owner.name]
        bounds[owner.name] = max(number, outer) if owner.name == "arith.maxsi" else min(number, outer)
        value = owner.operands[0]
    low, high = bounds["arith.maxsi"], bounds["arith.minsi"]
    if isinstance(owner := value.owner, arith.AddiOp) and (added := constant_or_code(owner.rhs, block)) is not None:
        value, zero = owner.lhs, added
    if isinstance(zero, int) and (clamped := bounds_of_float(value)) is not None:
        low, high = max(low, clamped[0] + zero), min(high, clamped[1] + zero)
    codes = 0 <= low <= high <= 255 or -128 <= low <= high <= 127
    words = not isinstance(zero, int) or abs(zero) < 2**15
    return Clamp(value, zero, low, high) if codes and words and value.owner is not block else None


def bounds_of_float(value: SSAValue) -> tuple[int, int] | None:
    """Return the bounds of `fptosi(round(min(max(x, low), high)))`, or of the same with `x > low ? x : low` instead of
    the maximum, if they are integers of i16; else None. The form with a maximum is accepted only if x cannot be NaN:
    packs would narrow the integer that a NaN becomes to another code than `trunci` does."""
    rounded = made_by(value, "arith.fptosi")
    if rounded is None:
        return None
    x = rounded.operands[0]
    if (back := made_by(x, "arith.subf")) is not None:  # rounding by adding and subtracting a large number
        there = made_by(back.operands[0], "arith.addf")
        x = x if there is None or there.operands[1] is not back.operands[1] else there.operands[0]
    elif (even := made_by(x, "math.roundeven")) is not None:
        x = even.operands[0]
    clip = clip_of(x.owner) if isinstance(x.owner, Operation) else None
    if clip is None or not (clip.raises or is_number(clip.x)):
        return None
    low, high = clip.low, clip.high
    if low % 1 or high % 1 or not -(2**15) < low <= high < 2**15:
        return None
    return int(low), int(high)


def is_number(value: SSAValue) -> bool:
    """Whether a float cannot be NaN because it is computed from integers and constants. One factor of a product may
    also be an argument of the body: it is assumed to be a scale, which is finite."""
    if number(value) is not None:
        return True
    if not isinstance(owner := value.owner, Operation) or owner.name not in (*CONVERSIONS, *SUMS, "arith.mulf"):
        return False
    if owner.name in CONVERSIONS:
        return True
    parts = list(owner.operands)
    if owner.name not in ("arith.addf", "arith.subf"):
        scale = next((n for n in (0, 1) if isinstance(parts[n].owner, Block) and number(parts[1 - n]) is None), None)
        parts = [part for n, part in enumerate(parts) if n != scale]
    return all(map(is_number, parts))


def made_by(value: SSAValue, name: str) -> Operation | None:
    """Return the op that computes a value, if it has this name; else None."""
    return value.owner if isinstance(value.owner, Operation) and value.owner.name == name else None


def constant_of(value: SSAValue) -> int | None:
    """Return the number in all lanes of an integer constant; None if the value is no constant, or lanes differ."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    numbers = to_numpy(value.owner.value).reshape(-1)
    return int(numbers[0]) if (numbers == numbers[0]).all() else None


def constant_or_code(value: SSAValue, block: Block) -> int | Operation | None:
    """Return the value of an integer constant. For an 8-bit code that an op outside of `block` extends to more bits,
    return this op. Return None for any other value."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in EXTENDS and owner.parent is not block:
        return owner if owner.operands[0].type == i8 else None
    return constant_of(value)


def saturate(b: LoopBuilder, clamp: Clamp, vectors: Sequence[SSAValue]) -> SSAValue:
    """Add the zero point of `clamp` to 64 numbers, given as four vectors of 16 i32, and clamp them to 8-bit codes.
    Return the codes in the order in which AVX-512's pack instructions leave them: each 128-bit part has codes of all
    four vectors."""
    words = [_call(b, PACK_WORDS, vectors[k : k + 2], i16) for k in (0, 2)]
    if clamp.zero != 0:
        if isinstance(clamp.zero, int):
            zero = vector_constant(b, clamp.zero, i16, WIDTH // 2)
        else:
            number = b.add(EXTENDS[clamp.zero.name](clamp.zero.operands[0], i16)).result
            zero = b.broadcast(number, WIDTH // 2)
        words = [_call(b, ADD_SATURATING, [word, zero], i16) for word in words]
    codes = _call(b, PACK_UNSIGNED if clamp.low >= 0 else PACK_SIGNED, words, i8)
    return clipped(b, codes, clamp.low, clamp.high, WIDTH)


def clipped(b: LoopBuilder, codes: SSAValue, low: int, high: int, lanes: int) -> SSAValue:
    """Clip a vector of 8-bit codes, unsigned if `low` is not negative, to bounds narrower than the codes' range."""
    unsigned = low >= 0
    least, greatest = (0, 255) if unsigned else (-128, 127)
    if low > least:
        bound = vector_constant(b, _code(low), i8, lanes)
        codes = b.add((arith.MaxUIOp if unsigned else arith.MaxSIOp)(codes, bound)).result
    if high < greatest:
        bound = vector_constant(b, _code(high), i8, lanes)
        codes = b.add((arith.MinUIOp if unsigned else arith.MinSIOp)(codes, bound)).result
    return codes


def in_order(b: LoopBuilder, codes: SSAValue) -> SSAValue:
    """Undo the interleaving of the 64 codes that `saturate` returned. Of the four vectors that were given to
    `saturate`, return the 16 codes of the first, then those of the second, the third and the fourth."""
    words = b.bitcast(codes, i32, WORDS * PARTS)
    words = b.shuffle(words, words, [WORDS * part + vector for vector in range(PARTS) for part in range(WORDS)])
    return b.bitcast(words, i8, WIDTH)


def _code(number: int) -> int:
    """Return the signed 8-bit code that has the same bits as an unsigned one."""
    return number - 256 if number > 127 else number


def _call(b: LoopBuilder, name: str, operands: Sequence[SSAValue], element: Attribute) -> SSAValue:
    lanes = WIDTH if element == i8 else WIDTH // 2
    return b.intrinsic(name, operands, vector_of(element, lanes))
