"""Packing codes into 32-bit words, and extracting them, on NVIDIA GPUs.

Integers that are clipped and narrowed to codes are saturated and packed two at a time (`cvt.pack`); if `f2i.rn`
computed the integers, the assembler fuses both instructions. A code times a power of two plus a constant is a sum of
products of half words and bytes (`dp2a`), all but one of which are zero. Source: PTX ISA, "cvt.pack" and "dp2a".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i1, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.arith import TruncIOp
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import Before, LoopBuilder
from relay.lowering.scheduling.saturate import constant_of
from relay.lowering.shaped import is_vector

PACK = "cvt.pack.sat.{codes}.s32.b32 $0, $1, $2, $3;"
"""The result's bytes are, from the lowest on, the second number, the first, and the lower two bytes of the third
operand."""
CODES = {"s8": (-128, 127), "u8": (0, 255)}
WORD = 4
"""The number of codes of a word."""
HALF_WORD = 16
CLIPS = arith.MaxSIOp | arith.MinSIOp
SIGNS = {"arith.extsi": "s", "arith.extui": "u"}
"""The letters for signed and unsigned codes in the names of `dp2a`."""


def pack_saturated(module: GpuModuleOp) -> None:
    """trunci(minsi(maxsi %x, low), high) : vector<Nxi8>  =>  bitcast (cvt.pack.sat of four lanes) : vector<N/4xi32>"""
    for op in [op for op in module.walk() if isinstance(op, TruncIOp | arith.TruncIOp)]:
        source = op.operands[0]
        if are_words(source, i32) and are_words(op.results[0], i8) and (found := clipped(source)) is not None:
            b = Before(op)
            lanes = lanes_of(b, found[0])
            words = [word(b, lanes[start : start + WORD], found[1]) for start in range(0, len(lanes), WORD)]
            Rewriter.replace_op(op, [], [b.bitcast(b.packed(words), i8, len(lanes))])


def extract_by_dots(module: GpuModuleOp) -> None:
    """addi(shli(ext %x : vector<Nxi8>, n), base)  =>  for each lane, dp2a(factors, word, base)

    `word`: the 32-bit word of %x that contains the lane's code. `dp2a` adds to `base` the products of two neighbouring
    codes of the word with two factors: 2^n for the lane's code, 0 for the other.
    """
    for op in [op for op in module.walk() if isinstance(op, arith.AddiOp)]:
        shift, base = op.lhs.owner, constant_of(op.rhs)
        if not isinstance(shift, arith.ShLIOp) or base is None or (places := constant_of(shift.rhs)) is None:
            continue
        wide = shift.lhs.owner
        if not isinstance(wide, Operation) or wide.name not in SIGNS or not are_words(wide.operands[0], i8):
            continue
        if 0 <= places < HALF_WORD:
            b, count = Before(op), len(lanes_of_type(op.result))
            words = lanes_of(b, b.bitcast(wide.operands[0], i32, count // WORD))
            start = b.constant(base, i32)
            lanes: list[SSAValue] = []
            for lane in range(count):
                factor = np.array(1 << places + HALF_WORD * (lane % 2), np.uint32).view(np.int32)
                upper = b.constant(lane % WORD // 2, i1)
                operands = [b.constant(int(factor), i32), words[lane // WORD], upper, start]
                lanes.append(b.intrinsic(f"llvm.nvvm.idp2a.u.{SIGNS[wide.name]}", operands, i32))
            Rewriter.replace_op(op, [], [b.packed(lanes)])


def are_words(value: SSAValue, element: Attribute) -> bool:
    """Whether the value is a vector of `element`s whose length is a multiple of the number of codes in a word."""
    return is_vector(value.type) and value.type.element_type == element and not len(lanes_of_type(value)) % WORD


def clipped(value: SSAValue) -> tuple[SSAValue, str] | None:
    """If `value` is clipped so that it fits a type of 8-bit codes, return a pair: an integer that equals `value` once
    it is saturated to this type, and the name of the type (`s8` or `u8`); else return None. The integer is `value`
    without the outermost clips whose bounds are those of the whole type."""
    bounds: list[tuple[SSAValue, int]] = []
    low, high, inner = -(2**31), 2**31 - 1, value
    while isinstance(owner := inner.owner, CLIPS) and (bound := constant_of(owner.rhs)) is not None:
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


def lanes_of_type(value: SSAValue) -> range:
    """Return the indices of the lanes of a vector, which are 0 to n - 1 for n lanes."""
    assert is_vector(value.type)
    return range(value.type.get_shape()[-1])


def lanes_of(b: LoopBuilder, value: SSAValue) -> list[SSAValue]:
    """Return the lanes of a vector."""
    return [b.lane(value, lane) for lane in lanes_of_type(value)]


def word(b: LoopBuilder, lanes: Sequence[SSAValue], codes: str) -> SSAValue:
    """Return a 32-bit word whose bytes, the lowest first, are the four integers `lanes`, saturated to 8 bits (`codes`:
    `s8` or `u8`)."""
    upper = pack(b, lanes[3], lanes[2], b.constant(0, i32), codes)
    return pack(b, lanes[1], lanes[0], upper, codes)


def pack(b: LoopBuilder, second: SSAValue, first: SSAValue, rest: SSAValue, codes: str) -> SSAValue:
    """Return a 32-bit word: byte 0 is `first` and byte 1 `second`, both saturated to 8 bits (`codes`: `s8` or `u8`);
    bytes 2 and 3 are the lower two bytes of `rest`."""
    op = llvm.InlineAsmOp(PACK.format(codes=codes), "=r,r,r,r", [second, first, rest], [i32], 0)
    return b.add(op).results[0]
