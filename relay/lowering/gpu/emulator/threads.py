"""Kernels whose threads synchronise: each thread is an LLVM coroutine, which suspends where it waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relay.errors import Unsupported
from relay.lowering.gpu.emulator.assembly import VISIBLE, Assembly, Bulk, Registers, assembly_of
from relay.lowering.gpu.emulator.products import PRODUCTS, four, type_of
from relay.lowering.gpu.emulator.warp import CONTEXT, COPIES, COPY_BYTES, GROUP_SUMS, GROUP_WORDS, WARP_WORDS

SHARED = re.compile(r"@shared\b")
TOGETHER = re.compile(r"@llvm\.nvvm\.(barrier|cp\.async|ldmatrix|mma|shfl)|addrspace\(3\)| asm sideeffect ")
"""Matches operations for which the threads of a kernel must run concurrently."""
LABEL = re.compile(r"([\w.]+):$")
BARRIER = re.compile(r"  call void @llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all\(i32 0\)")
MATRICES = re.compile(
    r"  (%\w+) = call \{.*\} @llvm\.nvvm\.ldmatrix\.sync\.aligned\.m8n8\.x4\.b16\.p3\(ptr addrspace\(3\) (%\w+)\)"
)
MULTIPLY = re.compile(r"  (%\w+) = call \{.*\} @llvm\.nvvm\.mma\.(m16n8k\d+)\.row\.col\.([\w.]+)\((.*)\)")
SHAPES = {
    "m16n8k8": {"tf32": "tf32"},
    "m16n8k16": {"bf16": "bf16", "f32.f32": "f16"},
    "m16n8k32": {n: n for n in PRODUCTS},
}
"""The supported products: for each shape, the types in the intrinsic's name, and the name used here."""
SHUFFLE = re.compile(
    r"  (%\w+) = call (i32|float) @llvm\.nvvm\.shfl\.sync\.(bfly|idx)\.(?:i32|f32)"
    r"\(i32 -1, (?:i32|float) (\S+), i32 (\d+), i32 31\)"
)
COPY = re.compile(
    r"  call void @llvm\.nvvm\.cp\.async\.c[ag]\.shared\.global\.(16|8|4)(?:\.s)?"
    r"\(ptr addrspace\(3\) (%\w+), ptr addrspace\(1\) (%\w+)(?:, i32 (\S+))?\)"
)
WARP, BLOCK, FOUR_WARPS, MEMORY = 1, 2, 4, 5
"""The kinds of waits, as stored in a context's status."""
PLACE_BIT = 8
"""The lowest bit of the number of the place at which a thread waits, which is stored in the upper bits of a status."""

BEGIN = """  %co.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %co.size = call i64 @llvm.coro.size.i64()
  %co.more = add i64 %co.size, 63
  %co.whole = and i64 %co.more, -64
  %co.memory = call ptr @aligned_alloc(i64 64, i64 %co.whole)
  %co.handle = call ptr @llvm.coro.begin(token %co.id, ptr %co.memory)
  %shared = %ctx->shared
  %shared.size = %ctx->size
  %shared.some = call i64 @llvm.umax.i64(i64 %shared.size, i64 16)
  %shared.last.16 = sub i64 %shared.some, 16
  %shared.last.8 = sub i64 %shared.some, 8
  %shared.last.4 = sub i64 %shared.some, 4"""

END = """co.final:
  call void @emulator.stop(ptr %ctx, i32 3, i32 0)
  %co.last = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %co.last, label %co.suspend [i8 0, label %co.never
    i8 1, label %co.cleanup]
co.never:
  unreachable
co.cleanup:
  %co.freed = call ptr @llvm.coro.free(token %co.id, ptr %co.handle)
  call void @free(ptr %co.freed)
  br label %co.suspend
co.suspend:
  call void @llvm.coro.end(ptr %co.handle, i1 false, token none)
  ret ptr %co.handle
}"""

Checked = Callable[[str, str, str, str], str]
"""A function that emits the check of an access, given its verb, size, pointer and alignment, and returns the pointer's
new name."""


def waits(lines: Sequence[str]) -> bool:
    """Whether threads of the kernel must run concurrently."""
    return any(TOGETHER.search(line) for line in lines)


@dataclass
class Coroutine:
    """Writes the text of a kernel as a coroutine, which a thread executes and which suspends where the thread waits.
    `sites`: the source text of each instruction that waits; `places`: the inline assembly that a group of four warps
    executes together."""

    kernel: str
    sites: list[str]
    places: list[Assembly]
    lines: list[str] = field(default_factory=list[str])
    label: str = "entry"
    ends: dict[str, str] = field(default_factory=dict[str, str])
    """For each basic block of the kernel, by label, the last of the blocks into which its waits divide it: phis that
    name the kernel's block must name this one."""
    count: int = 0

    def begin(self, parameters: Sequence[str]) -> None:
        """Write the start of the function, which suspends before the kernel's first instruction."""
        head = ", ".join([*parameters, "ptr %report", "ptr %ctx"])
        self.lines += [f"define internal ptr @{self.kernel}({head}) presplitcoroutine {{", "entry:", BEGIN]
        self.stop(0, 0)

    def stop(self, status: int, site: int) -> None:
        """Write LLVM IR that suspends the thread's coroutine. `status`: the kind of wait (`WARP`, `BLOCK`, ...);
        `site`: the number, from 1, of the waiting instruction in `sites`; 0 before the first instruction."""
        self.count += 1
        self.lines += [
            f"  call void @emulator.stop(ptr %ctx, i32 {status}, i32 {site})",
            f"  %co.s{self.count} = call i8 @llvm.coro.suspend(token none, i1 false)",
            f"  switch i8 %co.s{self.count}, label %co.suspend [i8 0, label %co.r{self.count}",
            "    i8 1, label %co.cleanup]",
            f"co.r{self.count}:",
        ]
        self.ends[self.label] = f"co.r{self.count}"

    def wait(self, status: int, what: str) -> None:
        """Write a suspension in which the thread waits for others. `status`: for whom it waits (`WARP`, `BLOCK`,
        `FOUR_WARPS` or `MEMORY`); `what`: the source line, for messages."""
        self.sites.append(f"kernel {self.kernel}: {what}")
        self.stop(status, len(self.sites))

    def begins(self, line: str) -> bool:
        """If the line is a label, write it and return True."""
        if (label := LABEL.match(line)) is None:
            return False
        if label[1] != "entry":
            self.label = label[1]
            self.ends[self.label] = self.label
            self.lines.append(line)
        return True

    def together(self, line: str, checked: Checked) -> bool:
        """If the line is an operation of several threads, write its translation and return True."""
        source = line.strip()
        if BARRIER.match(line):
            self.lines.append("  call void @emulator.show(ptr %ctx)")
            self.wait(BLOCK, source)
        elif (load := MATRICES.match(line)) is not None:
            row = checked("reads", "<16 x i8>", load[2], "16")
            self.lines.append(f"  call void @emulator.give.row(ptr %ctx, ptr {row})")
            self.wait(WARP, source)
            self.lines.append(f"  {load[1]} = call {four('i32')} @emulator.ldmatrix(ptr %ctx)")
        elif (product := MULTIPLY.match(line)) is not None:
            result, shape, types, given = product.groups()
            values, name = given.split(", "), SHAPES.get(shape, {}).get(types)
            if name is None or len(values) != 10:
                raise Unsupported(f"emulator: {self.kernel}", f"has {source}, which is not known")
            if name == "f16":
                self.lines += [f"  {result}.{n} = bitcast {value} to i32" for n, value in enumerate(values[:6])]
                values[:6] = [f"i32 {result}.{n}" for n in range(6)]
            self.lines.append(f"  call void @emulator.give(ptr %ctx, {', '.join(values[:6])})")
            self.wait(WARP, source)
            sums = ", ".join(values[6:])
            self.lines.append(f"  {result} = call {four(type_of(name))} @emulator.mma.{name}(ptr %ctx, {sums})")
        elif (shuffle := SHUFFLE.match(line)) is not None:
            name, type, mode, value, number = shuffle.groups()
            self.lines.append(f"  {name}.bits = bitcast {type} {value} to i32")
            self.lines.append(f"  call void @emulator.give.word(ptr %ctx, i32 {name}.bits)")
            self.wait(WARP, source)
            mask = -1 if mode == "bfly" else 0
            self.lines.append(f"  {name}.other = call i32 @emulator.word(ptr %ctx, i32 {mask}, i32 {number})")
            self.lines.append(f"  {name} = bitcast i32 {name}.other to {type}")
        elif (copy := COPY.match(line)) is not None:
            width = copy[1]
            size = copy[4] or width
            to = checked("copies to", f"<{width} x i8>", copy[2], width)
            start = checked("copies from", size, copy[3], width)
            self.lines.append(f"  call void @emulator.copy(ptr %ctx, ptr {to}, ptr {start}, i32 {size}, i32 {width})")
        elif (place := assembly_of(self.kernel, line)) is not None:
            self.assembly(place)
        elif line == "  ret void":
            self.lines.append("  br label %co.final")
        else:
            return False
        return True

    def assembly(self, place: Assembly) -> None:
        """Write the LLVM IR that emulates one inline assembly. For an instruction that a group of warps executes
        together, each thread waits for the group; the first then calls the listener, the emulator's callback."""
        if place.instructions == (VISIBLE,):
            self.lines.append("  call void @emulator.visible(ptr %ctx)")
            return
        if isinstance(place.instructions[0], Registers):
            return
        self.places.append(place)
        name = f"%co.p{len(self.places)}"
        words = [(number, value) for number, value in enumerate(place.sums)]
        words += [(GROUP_SUMS + 2 * number, value) for number, value in enumerate(place.words)]
        for number, value in words:
            self.lines.append(f"  {name}.{number} = call ptr @emulator.register(ptr %ctx, i32 {number})")
            self.lines.append(f"  store {value}, ptr {name}.{number}, align 4")
        match place.instructions:
            case (Bulk(together=False),):
                self.lines.append(f"  call void @emulator.say(ptr %ctx, i32 {len(self.places)}, ptr %report)")
                return
            case (Bulk(),):
                self.wait(MEMORY | len(self.places) << PLACE_BIT, place.source)
                return
            case _:
                self.wait(FOUR_WARPS, place.source)
        self.lines.append(f"  call void @emulator.group(ptr %ctx, i32 {len(self.places)}, ptr %report)")
        before = "poison"
        for number in range(len(place.sums)):
            now = place.result if number + 1 == len(place.sums) else f"{name}.s{number}"
            self.lines += [
                f"  {name}.a{number} = call ptr @emulator.register(ptr %ctx, i32 {number})",
                f"  {name}.v{number} = load i32, ptr {name}.a{number}",
                f"  {now} = insertvalue {place.type} {before}, i32 {name}.v{number}, {number}",
            ]
            before = now

    def finish(self) -> list[str]:
        """Return the lines of the coroutine's LLVM IR. Waits divide the kernel's basic blocks, so each phi is changed
        to name the last part of a predecessor instead of the predecessor."""

        def renamed(line: str) -> str:
            if " = phi " not in line:
                return line
            return re.sub(r", %([\w.]+) ?\]", lambda at: f", %{self.ends.get(at[1], at[1])} ]", line)

        return [*map(renamed, self.lines), END]


WORK = ("contexts", "handles", "words", "memory", "written", "copies", "stamps", "registers", "listener")
"""The names of the arrays with which a launch works (see `work_of`), in the order of their pointers in the table that
the launcher gets."""


def pointers(table: str, names: Sequence[str]) -> list[str]:
    """Return lines of LLVM IR that load the pointers in the table `%table`, in the order of `names`, as `%NAME`."""
    places = [f"  %{name}.at = getelementptr ptr, ptr %{table}, i64 {n}" for n, name in enumerate(names)]
    return places + [f"  %{name} = load ptr, ptr %{name}.at" for name in names]


def work_of(threads: int, shared: int) -> list[int]:
    """Return the sizes in bytes of the emulator's memory for one block: the threads' contexts, the coroutines' handles,
    the words that lanes of a warp exchange, shared memory, a flag for each written byte of it, asynchronous copies in
    progress, the writer of each byte of shared memory, and registers of groups of warps."""
    warps = -(-threads // 32)
    copies = threads * COPIES * (COPY_BYTES + 4)
    bytes, registers = shared + 16, 4 * GROUP_WORDS * threads
    return [CONTEXT.itemsize * threads, 8 * threads, 4 * WARP_WORDS * warps, bytes, bytes, copies, bytes, registers]


def launcher(symbol: str, kernel: str, parameters: int, threads: int, heard: bool) -> str:
    """Return the text of `SYMBOL(pointers, blocks, report, work, shared)`: it runs the threads of each block
    concurrently, block by block. `heard`: the listener for groups of warps is also notified at the end of each
    block."""
    lines = [f"define void @{symbol}(ptr %table, i32 %nctaid, ptr %report, ptr %work, i64 %shared) {{", "entry:"]
    names = [f"p{number}" for number in range(parameters)]
    lines += pointers("table", names) + pointers("work", WORK)
    arguments = [f"ptr %{name}" for name in names]
    registers = ["i32 %t", "i32 %b", f"i32 {threads}", "i32 %nctaid"]
    lines += [
        "  br label %blocks",
        "blocks:",
        "  %b = phi i32 [ 0, %entry ], [ %b1, %freed ]",
        "  call void @llvm.memset.p0.i64(ptr %written, i8 0, i64 %shared, i1 false)",
        "  call void @llvm.memset.p0.i64(ptr %stamps, i8 0, i64 %shared, i1 false)",
        f"  call void @llvm.memset.p0.i64(ptr %contexts, i8 0, i64 {CONTEXT.itemsize * threads}, i1 false)",
        "  br label %make",
        "make:",
        "  %t = phi i32 [ 0, %blocks ], [ %t1, %make ]",
        "  %ctx = getelementptr %emulator.context, ptr %contexts, i32 %t",
        "  %ctx->thread = %t",
        "  %lane = and i32 %t, 31",
        "  %ctx->lane = %lane",
        "  %warp = lshr i32 %t, 5",
        f"  %own = getelementptr [{WARP_WORDS} x i32], ptr %words, i32 %warp",
        "  %ctx->words = %own",
        f"  %queue = getelementptr [{COPIES * COPY_BYTES} x i8], ptr %copies, i32 %t",
        "  %ctx->queue = %queue",
        f"  %groups = getelementptr i8, ptr %copies, i64 {threads * COPIES * COPY_BYTES}",
        f"  %ends = getelementptr [{COPIES} x i32], ptr %groups, i32 %t",
        "  %ctx->ends = %ends",
        f"  %seen = getelementptr [{GROUP_WORDS} x i32], ptr %registers, i32 %t",
        "  %ctx->registers = %seen",
        "  %ctx->shared = %memory",
        "  %ctx->size = %shared",
        *(f"  %ctx->{name} = %{name}" for name in ("written", "stamps", "listener")),
        f"  %handle = call ptr @{kernel}({', '.join([*arguments, *registers, 'ptr %report', 'ptr %ctx'])})",
        "  %h = getelementptr ptr, ptr %handles, i32 %t",
        "  store ptr %handle, ptr %h",
        "  %t1 = add i32 %t, 1",
        f"  %more = icmp ult i32 %t1, {threads}",
        "  br i1 %more, label %make, label %run",
        "run:",
        f"  %fine = call i1 @emulator.block(ptr %handles, ptr %contexts, i32 {threads}, ptr %report)",
        f"  br i1 %fine, label %{'ended' if heard else 'over'}, label %over",
        "ended:",
        "  call void @emulator.group(ptr %contexts, i32 0, ptr %report)",
        "  br label %over",
        "over:",
        "  %said = load i64, ptr %report",
        "  %well = icmp eq i64 %said, 0",
        "  br label %free",
        "free:",
        "  %d = phi i32 [ 0, %over ], [ %d1, %free ]",
        "  %dh = getelementptr ptr, ptr %handles, i32 %d",
        "  %dead = load ptr, ptr %dh",
        "  call void @llvm.coro.destroy(ptr %dead)",
        "  %d1 = add i32 %d, 1",
        f"  %left = icmp ult i32 %d1, {threads}",
        "  br i1 %left, label %free, label %freed",
        "freed:",
        "  %b1 = add i32 %b, 1",
        "  %again = icmp ult i32 %b1, %nctaid",
        "  %on = and i1 %again, %well",
        "  br i1 %on, label %blocks, label %done",
        "done:",
        "  %place = getelementptr i64, ptr %report, i64 3",
        "  %long = zext i32 %b to i64",
        "  store i64 %long, ptr %place",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)
