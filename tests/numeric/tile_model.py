"""Code for tile registers (AMX) and AVX-512, run on any x86-64: each instruction is a function in LLVM IR.

What tile instructions compute is not written here: LLVM's pass `lower-amx-intrinsics` makes loops over scalars of them,
at -O0 and with an option of its own, if their operands were vectors before and are vectors after. So a tile is a vector
of 256 words, and each instruction a function of these. `start` has all builds of this process come out so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import llvmlite.binding as llvm

from relay.compile import model, workers
from relay.compile.workers import Compilation
from relay.lowering import codegen
from relay.lowering.codegen import Job
from relay.runtime import processor
from relay.target import host

TILE = "<256 x i32>"
LOAD, STORE = "tileloadd64.internal", "tilestored64.internal"
PRODUCTS = [f"tdpb{signs}.internal" for signs in ("ssd", "sud", "usd", "uud")]
OPTION = "-enable-x86-scalar-amx=true"


def lanes(numbers: list[int]) -> str:
    """A mask of `shufflevector`."""
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {number}' for number in numbers)}>"


ROWS = """
define internal void @model.rows(i16 %m, i16 %n, ptr %p, i64 %s, ptr %to) noinline {
entry:
  %rows = zext i16 %m to i64
  %bytes = zext i16 %n to i64
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %from = mul i64 %i, %s
  %into = mul i64 %i, 64
  br label %byte
byte:
  %j = phi i64 [ 0, %row ], [ %j1, %byte ]
  %a = add i64 %from, %j
  %b = add i64 %into, %j
  %x = getelementptr i8, ptr %p, i64 %a
  %y = getelementptr i8, ptr %to, i64 %b
  %code = load i8, ptr %x
  store i8 %code, ptr %y
  %j1 = add i64 %j, 1
  %more = icmp ult i64 %j1, %bytes
  br i1 %more, label %byte, label %next
next:
  %i1 = add i64 %i, 1
  %again = icmp ult i64 %i1, %rows
  br i1 %again, label %row, label %end
end:
  ret void
}
"""
"""Rows copied to where they are 64 bytes apart: LLVM's loops take only whole words from row to row."""


def tiles() -> str:
    """Functions around the intrinsics of tiles."""
    text = [
        f"declare x86_amx @llvm.x86.{LOAD}(i16, i16, ptr, i64)",
        f"declare void @llvm.x86.{STORE}(i16, i16, ptr, i64, x86_amx)",
        ROWS,
        f"define internal {TILE} @model.{LOAD}(i16 %m, i16 %n, ptr %p, i64 %s) noinline {{",
        "  %rows = alloca [1024 x i8]",
        "  call void @model.rows(i16 %m, i16 %n, ptr %p, i64 %s, ptr %rows)",
        f"  %t = call x86_amx @llvm.x86.{LOAD}(i16 %m, i16 %n, ptr %rows, i64 64)",
        f"  %v = bitcast x86_amx %t to {TILE}",
        f"  ret {TILE} %v\n}}",
        f"define internal void @model.{STORE}(i16 %m, i16 %n, ptr %p, i64 %s, {TILE} %v) noinline {{",
        f"  %t = bitcast {TILE} %v to x86_amx",
        f"  call void @llvm.x86.{STORE}(i16 %m, i16 %n, ptr %p, i64 %s, x86_amx %t)",
        "  ret void\n}",
    ]
    sizes = "i16 %m, i16 %n, i16 %k"
    for name in PRODUCTS:
        text += [
            f"declare x86_amx @llvm.x86.{name}(i16, i16, i16, x86_amx, x86_amx, x86_amx)",
            f"define internal {TILE} @model.{name}({sizes}, {TILE} %c, {TILE} %a, {TILE} %b) noinline {{",
            *(f"  %t{v} = bitcast {TILE} %{v} to x86_amx" for v in "cab"),
            f"  %t = call x86_amx @llvm.x86.{name}({sizes}, x86_amx %tc, x86_amx %ta, x86_amx %tb)",
            f"  %v = bitcast x86_amx %t to {TILE}",
            f"  ret {TILE} %v\n}}",
        ]
    return "\n".join(text)


def pack(name: str, count: int, bits: int, least: int, most: int) -> str:
    """Lanes of two vectors, saturated in half of their bits, those of both in turn by 128 bits. Source: Intel's manual
    of `PACKSSDW`, `PACKSSWB` and `PACKUSWB`."""
    source, half, each = f"<{count} x i{bits}>", f"<{count} x i{bits // 2}>", 128 // bits
    result = f"<{2 * count} x i{bits // 2}>"
    order = [at + part * count + n for at in range(0, count, each) for part in (0, 1) for n in range(each)]
    text = [f"define internal {result} @model.avx512.{name}.512({source} %a, {source} %b) noinline {{"]
    for v in "ab":
        for side, bound, before, after in (("smax", least, v, f"{v}1"), ("smin", most, f"{v}1", f"{v}2")):
            operands = f"{source} %{before}, {source} splat (i{bits} {bound})"
            text.append(f"  %{after} = call {source} @llvm.{side}.v{count}i{bits}({operands})")
        text.append(f"  %{v}3 = trunc {source} %{v}2 to {half}")
    text.append(f"  %r = shufflevector {half} %a3, {half} %b3, {lanes(order)}")
    return "\n".join([*text, f"  ret {result} %r\n}}"])


def dot() -> str:
    """Sums of four products of unsigned by signed bytes."""
    sums, codes, wide = "<16 x i32>", "<64 x i8>", "<64 x i32>"
    text = [f"define internal {sums} @model.avx512.vpdpbusd.512({sums} %c, {codes} %a, {codes} %b) noinline {{"]
    text += [f"  %x = zext {codes} %a to {wide}", f"  %y = sext {codes} %b to {wide}", f"  %p = mul {wide} %x, %y"]
    for k in range(4):
        before = "%c" if k == 0 else f"%s{k - 1}"
        text.append(f"  %p{k} = shufflevector {wide} %p, {wide} %p, {lanes([*range(k, 64, 4)])}")
        text.append(f"  %s{k} = add {sums} {before}, %p{k}")
    return "\n".join([*text, f"  ret {sums} %s3\n}}"])


def lookup(name: str, count: int, bits: int) -> str:
    """Entries of two vectors, one behind the other, by the last bits of numbers. Source: Intel (`VPERMI2B`)."""
    type = f"<{count} x i{bits}>"
    text = [f"define internal {type} @model.avx512.{name}.512({type} %a, {type} %i, {type} %b) noinline {{"]
    text += [f"  %table = alloca [2 x {type}]", f"  store {type} %a, ptr %table"]
    text += [f"  %half = getelementptr {type}, ptr %table, i64 1", f"  store {type} %b, ptr %half"]
    text.append(f"  %places = and {type} %i, splat (i{bits} {2 * count - 1})")
    for lane in range(count):
        before = f"{type} poison" if lane == 0 else f"{type} %r{lane - 1}"
        text += [
            f"  %i{lane} = extractelement {type} %places, i64 {lane}",
            f"  %n{lane} = zext i{bits} %i{lane} to i64",
            f"  %p{lane} = getelementptr i{bits}, ptr %table, i64 %n{lane}",
            f"  %x{lane} = load i{bits}, ptr %p{lane}",
            f"  %r{lane} = insertelement {before}, i{bits} %x{lane}, i64 {lane}",
        ]
    return "\n".join([*text, f"  ret {type} %r{count - 1}\n}}"])


CONTROL = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""


def multiply_add(name: str, floats: str, suffix: str) -> str:
    """Products and sums of floats, rounded towards zero once: kernels ask for no other rounding."""
    fma = f"llvm.experimental.constrained.fma.{suffix}"
    how = 'metadata !"round.towardzero", metadata !"fpexcept.strict"'
    return f"""
declare {floats} @{fma}({floats}, {floats}, {floats}, metadata, metadata)
define internal {floats} @model.{name}({floats} %a, {floats} %b, {floats} %c, i32 %r) noinline strictfp {{
  %old = alloca i32
  %new = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  %word = load i32, ptr %old
  %zero = or i32 %word, 24576
  store i32 %zero, ptr %new
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  %v = call {floats} @{fma}({floats} %a, {floats} %b, {floats} %c, {how}) strictfp
  call void @llvm.x86.sse.ldmxcsr(ptr %old)
  ret {floats} %v
}}"""


MODEL = "\n".join(
    [
        tiles(),
        dot(),
        CONTROL,
        multiply_add("avx512.vfmadd.ps.512", "<16 x float>", "v16f32"),
        multiply_add("avx512.vfmadd.f32", "float", "f32"),
        lookup("vpermi2var.qi", 64, 8),
        lookup("vpermi2var.hi", 32, 16),
        pack("packssdw", 16, 32, -(1 << 15), (1 << 15) - 1),
        pack("packsswb", 32, 16, -128, 127),
        pack("packuswb", 32, 16, 0, 255),
    ]
)
NAMES = ("vpdpbusd", "vfmadd.ps", "vpermi2var.qi", "vpermi2var.hi", "packssdw", "packsswb", "packuswb")
VECTORS = [f"avx512.{name}.512" for name in NAMES]
SCALARS = ["avx512.vfmadd.f32"]


def modelled(text: str) -> str:
    """The text with the model's functions in the place of instructions."""
    lines = [line for line in text.splitlines() if not (line.startswith("declare") and "@llvm.x86." in line)]
    found = "\n".join(lines).replace("x86_amx", TILE)
    for name in [LOAD, STORE, *PRODUCTS, *VECTORS, *SCALARS]:
        found = found.replace(f"@llvm.x86.{name}(", f"@model.{name}(")
    used = set(re.findall(r"@(llvm\.s(?:max|min)\.v\d+i\d+)\(", MODEL)) - set(
        re.findall(r"declare .*@([\w.]+)\(", found)
    )
    vectors = {name: f"<{name.split('.v')[1].replace('i', ' x i')}>" for name in used}
    declarations = [f"declare {type} @{name}({type}, {type})" for name, type in vectors.items()]
    return "\n".join([found, MODEL, *declarations])


def emit(job: Job, compile: Callable[[Job], bytes] = codegen.emit) -> bytes:
    """Object code for this machine, at -O0."""
    text, machine, _ = job
    here = codegen.machine_of(host())
    return compile((modelled(text), here._replace(relocation=machine.relocation), 0))


def start() -> None:
    """Have this process build with the model, for good."""
    llvm.set_option("", OPTION)
    model.Compilation = partial(Compilation, compile=emit)
    workers.processors = alone
    processor.lacks = no_features


def alone() -> int:
    """How many processors there are: other processes would compile without the model."""
    return 1


def no_features(_: frozenset[str]) -> list[str]:
    """What this machine lacks: nothing, as the code is its own."""
    return []
