"""Measures the peak of a core: multiply-adds per second on 8-bit codes, bf16 and float32, by code that does nothing
else; and the gain by several processors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Barrier
from time import perf_counter

import numpy as np

from relay.lowering.codegen import compile_text
from relay.runtime import Library
from relay.runtime.memory import address, aligned_bytes
from relay.target import CpuTarget, host
from relay.target.dots import half_dot

ACCUMULATORS, TURNS, ROUNDS = 12, 1 << 19, 9
PAIRS = 20
"""Independent accumulators for bf16 products, whose latency is longer; there are 32 registers."""
TILES = 6
"""Independent accumulators in tile registers; two more of the eight hold the factors."""
DOT = "declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <64 x i8>, <64 x i8>)"
PAIR_DOT = "declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)"
TILE, SIZE = "x86_amx", "i16 16, i16 64"
TILE_DOT, TILE_LOAD, TILE_STORE = (f"@llvm.x86.{name}.internal" for name in ("tdpbusd", "tileloadd64", "tilestored64"))
TILE_DECLARATIONS = f"""
declare {TILE} {TILE_DOT}(i16, i16, i16, {TILE}, {TILE}, {TILE})
declare {TILE} {TILE_LOAD}(i16, i16, ptr, i64)
declare void {TILE_STORE}(i16, i16, ptr, i64, {TILE})"""


@dataclass(frozen=True)
class Instruction:
    """A multiply-add instruction: the types of its accumulator and operands, and a call of it."""

    type: str
    operand: str
    call: str
    macs: int
    declaration: str
    accumulators: int = ACCUMULATORS

    @property
    def start(self) -> str:
        """The initial value of an accumulator; LLVM has no constants of tile types."""
        return "%a" if self.type == TILE else "zeroinitializer"

    def load(self, place: str) -> str:
        """Load a factor from memory; all rows of a tile are the same 64 bytes."""
        if self.operand == TILE:
            return f"call {TILE} {TILE_LOAD}({SIZE}, ptr {place}, i64 0)"
        return f"load {self.operand}, ptr {place}, align 4"

    def store(self, value: str, place: str) -> str:
        """Store an accumulator, so that the loop is not removed; of a tile, the last row."""
        if self.type == TILE:
            return f"call void {TILE_STORE}({SIZE}, ptr {place}, i64 0, {TILE} {value})"
        return f"store {self.type} {value}, ptr {place}, align 4"


def instructions(target: CpuTarget) -> dict[str, Instruction]:
    """What a machine has: `int8` where there are products of tiles, or dot products of 64 codes, `bfloat16` where there
    are those of 32 numbers, `float32` always."""
    lanes = target.register_bytes // 4
    vector = f"<{lanes} x float>"
    fma = f"@llvm.fma.v{lanes}f32"
    found = {
        "float32": Instruction(
            vector, vector, f"call {vector} {fma}({vector} %a, {vector} %b, {vector} {{0}})", lanes,
            f"declare {vector} {fma}({vector}, {vector}, {vector})",
        )
    }  # fmt: skip
    pairs = half_dot(target.features)
    if pairs is not None and pairs.lanes == 16:
        call = f"call <16 x float> @{pairs.intrinsic}(<16 x float> {{0}}, <32 x bfloat> %a, <32 x bfloat> %b)"
        found["bfloat16"] = Instruction("<16 x float>", "<32 x bfloat>", call, 32, PAIR_DOT, PAIRS)
    if target.multiplies_tiles:
        call = f"call {TILE} {TILE_DOT}({SIZE}, i16 64, {TILE} {{0}}, {TILE} %a, {TILE} %b)"
        found["int8"] = Instruction(TILE, TILE, call, 16 * 16 * 64, TILE_DECLARATIONS, TILES)
    elif target.whole_dots:
        name = "@llvm.x86.avx512.vpdpbusd.512"
        call = f"call <16 x i32> {name}(<16 x i32> {{0}}, <64 x i8> %a, <64 x i8> %b)"
        found["int8"] = Instruction("<16 x i32>", "<64 x i8>", call, 64, DOT)
    return found


def loop(instruction: Instruction) -> str:
    """LLVM IR of `relay_peak`: independent accumulators in registers, nothing else in the loop."""
    type, every = instruction.type, range(instruction.accumulators)
    lines = [
        instruction.declaration,
        "define void @relay_peak(ptr %data) nounwind {",
        "entry:",
        f"  %a = {instruction.load('%data')}",
        f"  %b0 = getelementptr i8, ptr %data, i64 64\n  %b = {instruction.load('%b0')}",
        "  br label %turn",
        "turn:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %turn ]",
        *(f"  %s{k} = phi {type} [ {instruction.start}, %entry ], [ %t{k}, %turn ]" for k in every),
        *(f"  %t{k} = {instruction.call.format(f'%s{k}')}" for k in every),
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {TURNS}",
        "  br i1 %more, label %turn, label %end",
        "end:",
    ]
    for k in every:
        lines.append(f"  %p{k} = getelementptr i8, ptr %data, i64 {128 + 64 * k}")
        lines.append(f"  {instruction.store(f'%t{k}', f'%p{k}')}")
    return "\n".join([*lines, "  ret void", "}"])


@cache
def library(kind: str) -> Library:
    """The compiled loop for one kind."""
    target = host()
    return Library(compile_text(loop(instructions(target)[kind]), target).shared_object())


def scaling(processors: Sequence[int]) -> float:
    """How much more multiply-adds of float32 these processors do together than the first of them alone: fewer than
    there are where they share a core, or somebody else runs on one."""
    run, here = library("float32").function("relay_peak"), os.sched_getaffinity(0)
    barrier = Barrier(len(processors))

    def one(processor: int, together: bool) -> tuple[float, float]:
        os.sched_setaffinity(0, {processor})  # of this thread
        data = aligned_bytes(128 + 64 * ACCUMULATORS)
        if together:
            barrier.wait()
        start = perf_counter()
        run(address(data))
        return start, perf_counter()

    try:
        with ThreadPoolExecutor(len(processors)) as pool:
            alone, together = list[float](), list[float]()
            for _ in range(ROUNDS):
                start, end = pool.submit(one, processors[0], False).result()
                alone.append(end - start)
                starts, ends = zip(*pool.map(one, processors, [True] * len(processors)), strict=True)
                together.append(max(ends) - min(starts))
    finally:
        os.sched_setaffinity(0, here)
    return len(processors) * min(alone) / min(together)


def measure() -> Mapping[str, float]:
    """Multiply-adds per second by kind: the best of several rounds."""
    data = aligned_bytes(128 + 64 * PAIRS)
    found: dict[str, float] = {}
    for kind, instruction in instructions(host()).items():
        run = library(kind).function("relay_peak")
        times: list[float] = []
        for _ in range(ROUNDS):
            start = perf_counter()
            run(address(data))
            times.append(perf_counter() - start)
        found[kind] = instruction.accumulators * TURNS * instruction.macs / float(np.min(times))
    return found


if __name__ == "__main__":
    for kind, rate in measure().items():
        print(f"{kind}: {rate / 1e9:.1f} GMAC/s")
