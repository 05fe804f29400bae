"""Clipped integers that are narrowed to codes: NVIDIA's GPUs saturate and pack two of them at once.

Where `f2i.rn` gave the integers, the assembler makes one instruction of both. Source: PTX ISA, "cvt.pack".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Block, Operation, SSAValue

from relay.dialects.arith import TruncIOp
from relay.dialects.attributes import to_numpy
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import LoopBuilder
from relay.lowering.shaped import is_vector

PACK = "cvt.pack.sat.{codes}.s32.b32 $0, $1, $2, $3;"
"""The result's bytes are the second number, the first, and the lower two of the third operand."""
CODES = {"s8": (-128, 127), "u8": (0, 255)}
WORD = 4
"""Codes of a word."""
CLIPS = arith.MaxSIOp | arith.MinSIOp


def pack_saturated(module: GpuModuleOp) -> None:
    """trunci(minsi(maxsi %x, low), high) : vector<Nxi8>  =>  bitcast (cvt.pack.sat of four lanes) : vector<N/4xi32>"""
    for op in [op for op in module.walk() if isinstance(op, TruncIOp | arith.TruncIOp)]:
        source, result = op.operands[0], op.results[0]
        if is_vector(source.type) and source.type.element_type == i32 and is_vector(result.type):
            if result.type.element_type == i8 and not source.type.get_shape()[-1] % WORD:
                if (found := clipped(source)) is not None:
                    rewrite(op, *found)


def clipped(value: SSAValue) -> tuple[SSAValue, str] | None:
    """What is clipped to a range of codes, less the outermost bounds that saturation gives, and the codes; None if it
    is not clipped to such a range."""
    bounds: list[tuple[SSAValue, int]] = []
    low, high, inner = -(2**31), 2**31 - 1, value
    while isinstance(owner := inner.owner, CLIPS) and (bound := splat(owner.rhs)) is not None:
        low, high = (max(low, bound), high) if isinstance(owner, arith.MaxSIOp) else (low, min(high, bound))
        inner = owner.lhs
        bounds.append((inner, bound))
    codes = next((name for name, (least, most) in CODES.items() if least <= low <= high <= most), None)
    if codes is None:
        return None
    for inner, bound in bounds:
        if bound not in CODES[codes]:
            break
        value = inner
    return value, codes


def splat(value: SSAValue) -> int | None:
    """The number that is in all lanes of a constant."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    lanes = to_numpy(value.owner.value).reshape(-1)
    return int(lanes[0]) if bool((lanes == lanes[0]).all()) else None


def rewrite(op: Operation, source: SSAValue, codes: str) -> None:
    """Put packed words in the place of the narrowed vector."""
    region, result = op.parent, op.results[0]
    assert region is not None and is_vector(source.type)
    b = LoopBuilder(Block())
    b.location = op.location
    lanes = [b.lane(source, lane) for lane in range(source.type.get_shape()[-1])]
    words = [word(b, lanes[start : start + WORD], codes) for start in range(0, len(lanes), WORD)]
    new = b.bitcast(b.packed(words), i8, len(lanes))
    ops = list(b.block.ops)
    for each in ops:
        each.detach()
    region.insert_ops_before(ops, op)
    result.replace_all_uses_with(new)
    op.detach()
    op.erase()


def word(b: LoopBuilder, lanes: Sequence[SSAValue], codes: str) -> SSAValue:
    """Four numbers as the bytes of a word."""
    upper = pack(b, lanes[3], lanes[2], b.constant(0, i32), codes)
    return pack(b, lanes[1], lanes[0], upper, codes)


def pack(b: LoopBuilder, second: SSAValue, first: SSAValue, rest: SSAValue, codes: str) -> SSAValue:
    """Two numbers as the lower bytes of a word, saturated, and the lower bytes of another word above them."""
    op = llvm.InlineAsmOp(PACK.format(codes=codes), "=r,r,r,r", [second, first, rest], [i32], 0)
    found = b.add(op).res
    assert found is not None
    return found
