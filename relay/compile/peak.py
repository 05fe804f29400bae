"""Measures the peak of a core: multiply-adds per second on 8-bit codes, bf16 and float32, by code that does nothing
else; and the speed-up by several processors."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Barrier
from time import perf_counter

import numpy as np
from xdsl.dialects.builtin import bf16

from relay.errors import InvalidArgument, RelayError
from relay.lowering.codegen import compile_text
from relay.runtime import Library
from relay.runtime.archive import unfit
from relay.runtime.memory import address, aligned_bytes
from relay.target import CpuTarget, host, resolve
from relay.target.dots import Dot, best_dot, half_dot

ACCUMULATORS, TURNS, ROUNDS = 12, 1 << 19, 9
PAIRS = 20
"""The number of independent accumulators for bf16 products, more than for others because their latency is longer."""
TILES = 6
"""The number of independent accumulators in tile registers; the other two of the eight hold the factors."""
TILE, SIZE = "x86_amx", "i16 16, i16 64"
TILE_DOT, TILE_LOAD, TILE_STORE = (f"@llvm.x86.{name}.internal" for name in ("tdpbusd", "tileloadd64", "tilestored64"))
TILE_DECLARATIONS = f"""
declare {TILE} {TILE_DOT}(i16, i16, i16, {TILE}, {TILE}, {TILE})
declare {TILE} {TILE_LOAD}(i16, i16, ptr, i64)
declare void {TILE_STORE}(i16, i16, ptr, i64, {TILE})"""


@dataclass(frozen=True)
class Instruction:
    """A multiply-add instruction: the types of its accumulator and operands, and the LLVM IR of calls of it, in which
    `{s}` stands for the accumulator and `{t}` for its new value."""

    type: str
    operand: str
    calls: Sequence[str]
    macs: int
    declaration: str
    accumulators: int = ACCUMULATORS

    @property
    def start(self) -> str:
        """The initial value of an accumulator; LLVM has no constants of tile types."""
        return "%a" if self.type == TILE else "zeroinitializer"

    def load(self, place: str) -> str:
        """LLVM IR that loads an operand of the instruction from address `place`. A tile register is loaded with a
        stride of 0, so that all its rows are the same 64 bytes."""
        if self.operand == TILE:
            return f"call {TILE} {TILE_LOAD}({SIZE}, ptr {place}, i64 0)"
        return f"load {self.operand}, ptr {place}, align 4"

    def store(self, value: str, place: str) -> str:
        """LLVM IR that stores an accumulator, so that the loop is not removed; all rows of a tile go to one address."""
        if self.type == TILE:
            return f"call void {TILE_STORE}({SIZE}, ptr {place}, i64 0, {TILE} {value})"
        return f"store {self.type} {value}, ptr {place}, align 4"


def of_dot(dot: Dot) -> Instruction:
    """A dot product of vectors. If the instruction does not add to an accumulator, a factor is loaded in each
    iteration: otherwise LLVM would move the product out of the loop."""
    sums = f"<{dot.lanes} x {'float' if dot.element == bf16 else 'i32'}>"
    factors = f"<{dot.lanes * dot.group} x {'bfloat' if dot.element == bf16 else dot.element}>"
    name, types = f"@{dot.intrinsic}", ", ".join([*[sums] * dot.adds, factors, factors])
    calls = [f"{{t}} = call {sums} {name}({sums} {{s}}, {factors} %a, {factors} %b)"]
    if not dot.adds:
        calls = [
            f"{{t}}.f = load volatile {factors}, ptr %data, align 4",
            f"{{t}}.p = call {sums} {name}({factors} {{t}}.f, {factors} %b)",
            f"{{t}} = add {sums} {{t}}.p, {{s}}",
        ]
    accumulators = PAIRS if dot.element == bf16 else ACCUMULATORS
    return Instruction(sums, factors, calls, dot.lanes * dot.group, f"declare {sums} {name}({types})", accumulators)


def of_floats(target: CpuTarget) -> Instruction:
    """Multiply-adds of float32: one instruction, or two where the machine does not fuse them."""
    lanes = target.register_bytes // 4
    type, fma = f"<{lanes} x float>", f"@llvm.fma.v{lanes}f32"
    if target.fuses:
        calls = [f"{{t}} = call {type} {fma}({type} %a, {type} %b, {type} {{s}})"]
    else:
        factor = f"{{t}}.f = load volatile {type}, ptr %data, align 4"
        calls = [factor, f"{{t}}.p = fmul {type} {{t}}.f, %b", f"{{t}} = fadd {type} {{t}}.p, {{s}}"]
    return Instruction(type, type, calls, lanes, f"declare {type} {fma}({type}, {type}, {type})")


def instructions(target: CpuTarget) -> dict[str, Instruction]:
    """The multiply-add instructions of a target by kind: `float32` always, `int8` and `bfloat16` if it has products of
    tiles or dot products."""
    found = {"float32": of_floats(target)}
    dots = {"bfloat16": half_dot(target.features), "int8": best_dot(target.features)}
    found |= {kind: of_dot(dot) for kind, dot in dots.items() if dot is not None}
    if target.multiplies_tiles:
        call = f"{{t}} = call {TILE} {TILE_DOT}({SIZE}, i16 64, {TILE} {{s}}, {TILE} %a, {TILE} %b)"
        found["int8"] = Instruction(TILE, TILE, [call], 16 * 16 * 64, TILE_DECLARATIONS, TILES)
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
        *(f"  {call.format(s=f'%s{k}', t=f'%t{k}')}" for k in every for call in instruction.calls),
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
def library(kind: str, target: CpuTarget) -> Library:
    """Compile and load the loop that measures the peak rate of one kind of multiply-add instruction (a key of
    `instructions`)."""
    return Library(compile_text(loop(instructions(target)[kind]), target).shared_object())


def scaling(processors: Sequence[int]) -> float:
    """The float32 multiply-adds per second of these processors together, relative to the first alone: less than their
    number if they share a core, or other processes use them."""
    run, here = library("float32", host()).function("relay_peak"), os.sched_getaffinity(0)
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


def measure(target: str | CpuTarget = "llvm") -> Mapping[str, float]:
    """Multiply-adds per second by kind: the best of several rounds. `target`: this machine's target, or one with fewer
    of its features. Raises InvalidArgument for a target whose code this machine cannot run."""
    machine = resolve(target)
    if not isinstance(machine, CpuTarget):
        raise InvalidArgument(f"target {str(target)!r}", "is not a CPU's")
    if (why := unfit(machine.triple, machine.features)) is not None:
        raise InvalidArgument(f"target {str(target)!r}", why)
    data = aligned_bytes(128 + 64 * PAIRS)
    found: dict[str, float] = {}
    for kind, instruction in instructions(machine).items():
        run = library(kind, machine).function("relay_peak")
        times: list[float] = []
        for _ in range(ROUNDS):
            start = perf_counter()
            run(address(data))
            times.append(perf_counter() - start)
        found[kind] = instruction.accumulators * TURNS * instruction.macs / float(np.min(times))
    return found


if __name__ == "__main__":
    try:
        for kind, rate in measure(*sys.argv[1:]).items():
            print(f"{kind}: {rate / 1e9:.1f} GMAC/s")
    except RelayError as error:
        sys.exit(str(error))
