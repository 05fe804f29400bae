"""Translates kernels' LLVM IR for NVPTX to LLVM IR for the host: thread indices become arguments, and accesses are
checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from relay.errors import Unsupported
from relay.lowering.gpu.emulator import threads
from relay.lowering.gpu.emulator.assembly import Assembly, check_registers
from relay.lowering.gpu.emulator.block import BLOCK
from relay.lowering.gpu.emulator.products import products
from relay.lowering.gpu.emulator.warp import PRELUDE, accesses

REGISTERS = ("tid.x", "ctaid.x", "ntid.x", "nctaid.x")
"""The special registers of a thread, in the order of a function's arguments."""

DEFINE = re.compile(r"define ptx_kernel void @(\w+)\((.*)\) nounwind \"nvvm\.reqntid\"=\"(\d+)\".* \{")
PARAMETER = re.compile(r"ptr addrspace\(1\) .*?dereferenceable\((\d+)\).*? (%\w+)$")
ADDRESS = re.compile(
    r"  (%\w+) = getelementptr (?:inbounds )?([^,]+), ptr addrspace\((\d)\) (%\w+|@shared), (i\d+) (.*)"
)
LOAD = re.compile(r"  (%\w+) = load (.+), ptr addrspace\((\d)\) (%\w+|@shared), align (\d+)(?: ; (.*))?$")
STORE = re.compile(r"  store (.+) (\S+|<.*>), ptr addrspace\((\d)\) (%\w+|@shared), align (\d+)(?: ; (.*))?$")
POINTER = re.compile(r"  (%\w+) = ptrtoint ptr addrspace\(3\) (%\w+|@shared) to i64")
RENAMED = {
    rf"call (?:range\([^)]*\) )?i32 @llvm\.nvvm\.read\.ptx\.sreg\.({'|'.join(REGISTERS)})\(\)": r"add i32 0, %\1",
    r"ptrtoint ptr addrspace\(1\) (%\w+) to i64": r"ptrtoint ptr \1 to i64",
    r"fptrunc (<2 x float> %\w+) to <2 x bfloat>": r"call <2 x bfloat> @emulator.bf16(\1)",
    r"@llvm\.nvvm\.(f2tf32\.rna|fma\.rz\.f|f2i\.rn|saturate\.f)\(": r"@emulator.\1(",
    r'asm "cvt\.pack\.sat\.(s8|u8)\.s32\.b32 \$0, \$1, \$2, \$3;", "=r,r,r,r"\(': r"@emulator.pack.\1(",
    r"@llvm\.nvvm\.idp2a\.([su]\.[su])\((i32 \S+), (i32 \S+), i1 true, ": r"@emulator.pair.\1.hi(\2, \3, ",
    r"@llvm\.nvvm\.idp2a\.([su]\.[su])\((i32 \S+), (i32 \S+), i1 false, ": r"@emulator.pair.\1.lo(\2, \3, ",
    r"@llvm\.nvvm\.idp4a\.([su]\.[su])\(": r"@emulator.dot.\1(",
    r'call i64 asm sideeffect "mov\.b64 \$0, 0;", "=l"\(\)': "add i64 0, 0",
    r"@llvm\.nvvm\.cp\.async\.commit\.group\(\)": "@emulator.commit(ptr %ctx)",
    r"@llvm\.nvvm\.cp\.async\.wait\.group\(": "@emulator.wait(ptr %ctx, ",
}
"""Patterns of instructions, and the text that replaces each."""
FOREIGN = re.compile(r"@llvm\.nvvm\.| asm |addrspace|fptrunc")
"""Matches lines that `RENAMED` may change."""
LEFT_OUT = re.compile(r"(declare .*@llvm\.nvvm\.|@shared = )")

WIDTHS = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}

CHECK = """
define internal ptr @emulator.check(ptr %p, ptr %base, i64 %limit, i64 %mask, i64 %number, ptr %report) alwaysinline {
  %address = ptrtoint ptr %p to i64
  %start = ptrtoint ptr %base to i64
  %offset = sub i64 %address, %start
  %outside = icmp ugt i64 %offset, %limit
  %low = and i64 %offset, %mask
  %crooked = icmp ne i64 %low, 0
  %bad = or i1 %outside, %crooked
  br i1 %bad, label %wrong, label %right
right:
  ret ptr %p
wrong:
  %before = load i64, ptr %report
  %first = icmp eq i64 %before, 0
  br i1 %first, label %tell, label %go
tell:
  store i64 %number, ptr %report
  %second = getelementptr i64, ptr %report, i64 1
  store i64 %offset, ptr %second
  br label %go
go:
  %scratch = getelementptr i64, ptr %report, i64 8
  ret ptr %scratch
}
"""
"""The function that returns the address of an access: unchanged if it is in its buffer and aligned, else 64 bytes of
the report, in which the first wrong access is recorded."""


@dataclass(frozen=True)
class Access:
    """A load, store or copy, which a report identifies by its number. `size`: the buffer's size, None for shared
    memory, whose size is given by the launch."""

    kernel: str
    what: str
    source: str
    buffer: str
    size: int | None


@dataclass
class Kernel:
    """A kernel's name, the threads of its blocks, and its pointer parameters, with their sizes in bytes."""

    name: str
    threads: int
    parameters: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    lines: list[str] = field(default_factory=list[str])
    together: bool = False
    """Whether threads synchronise with each other."""
    places: list[Assembly] = field(default_factory=list[Assembly])
    """The inline assemblies that groups of warps execute, in the order of their numbers."""


@dataclass
class Translation:
    """The kernels of a module, translated from LLVM IR for NVPTX to LLVM IR for the host. `kernels`: by name;
    `accesses`: all checked memory accesses, in the order of the numbers by which reports identify them; `sites`: the
    source texts of the instructions at which threads wait."""

    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])
    accesses: list[Access] = field(default_factory=list[Access])
    sites: list[str] = field(default_factory=list[str])
    declarations: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The LLVM IR of a host module with all kernels, a launcher for each, and the checks of their memory
        accesses."""
        lines = "\n".join(line for kernel in self.kernels.values() for line in kernel.lines)
        parts = [CHECK, products(lines)]
        if any(kernel.together for kernel in self.kernels.values()):
            parts += [PRELUDE, BLOCK]
        for kernel in self.kernels.values():
            parts += kernel.lines
            if kernel.together:
                count = len(kernel.parameters)
                heard = bool(kernel.places)
                parts.append(threads.launcher(symbol(kernel.name), kernel.name, count, kernel.threads, heard))
            else:
                parts.append(launcher(kernel))
        return accesses("\n".join([*parts, *self.declarations]) + "\n")


def symbol(kernel: str) -> str:
    """Return the name of the host function that executes all threads of a launch of the kernel:
    `relay_launch_KERNEL`."""
    return f"relay_launch_{kernel}"


def width_of(type: str) -> int:
    """Return the size of a type in memory, in bytes."""
    if type.startswith("<"):
        count, _, element = type.strip("<>").partition(" x ")
        return int(count) * WIDTHS[element]
    return WIDTHS[type]


def translate(text: str, checked: bool = True) -> Translation:
    """Translate the kernels for the host. Raises Unsupported for instructions that the emulator does not know."""
    found = Translation()
    head: re.Match[str] | None = None
    body: list[str] = []
    for line in text.splitlines():
        if (define := DEFINE.match(line)) is not None:
            head, body = define, []
        elif head is None:
            if not LEFT_OUT.match(line):
                found.declarations.append(line)
        elif line == "}":
            writer = KernelTranslation(head, body, found, checked)
            found.kernels[writer.kernel.name] = writer.write()
            head = None
        else:
            body.append(line)
    return found


class KernelTranslation:
    """Translates one kernel. `roots`: the buffer that each pointer points into, and its size."""

    def __init__(self, head: re.Match[str], body: list[str], found: Translation, checked: bool):
        self.kernel = Kernel(head[1], int(head[3]), together=threads.waits(body))
        self.body, self.found = body, found
        self.checks = checked or any(" asm sideeffect " in line for line in body)
        for parameter in filter(None, head[2].split(", ")):
            known = PARAMETER.match(parameter)
            if known is None:
                raise self.unknown(parameter)
            self.kernel.parameters.append((known[2], int(known[1])))
        self.roots: dict[str, tuple[str, int | None]] = {"@shared": ("%shared", None)}
        self.roots |= {name: (name, size) for name, size in self.kernel.parameters}
        self.out: list[str] = []

    def unknown(self, what: str) -> Unsupported:
        """Return the error for something that the emulator does not know."""
        return Unsupported(f"emulator: {self.kernel.name}", f"has {what.strip()}, which is not known")

    def write(self) -> Kernel:
        """Return the kernel with its lines of LLVM IR for the host."""
        noalias = "" if self.kernel.together else "noalias "  # threads that run alternately see each other's writes
        parameters = [f"ptr {noalias}{name}" for name, _ in self.kernel.parameters]
        parameters += [f"i32 %{name}" for name in REGISTERS]
        if self.kernel.together:
            check_registers(self.kernel.name, self.body)
            coroutine = threads.Coroutine(self.kernel.name, self.found.sites, self.kernel.places)
            self.out = coroutine.lines
            coroutine.begin(parameters)
            for line in self.body:
                if not coroutine.begins(line) and not coroutine.together(line, self.checked):
                    self.instruction(line)
            self.kernel.lines = coroutine.finish()
        else:
            arguments = ", ".join([*parameters, "ptr %report"])
            self.out.append(f"define internal void @{self.kernel.name}({arguments}) alwaysinline {{")
            for line in self.body:
                self.instruction(line)
            self.kernel.lines = [*self.out, "}"]
        return self.kernel

    def instruction(self, line: str) -> None:
        """Translate one line of a kernel's LLVM IR for NVPTX to LLVM IR for the host, and append it to `out`. Raises
        Unsupported for an instruction that the emulator does not know."""
        if (address := ADDRESS.match(line)) is not None:
            if address[4] in self.roots:
                self.roots[address[1]] = self.roots[address[4]]
            base = "%shared" if address[4] == "@shared" else address[4]
            self.out.append(f"  {address[1]} = getelementptr {address[2]}, ptr {base}, {address[5]} {address[6]}")
        elif (load := LOAD.match(line)) is not None:
            pointer = self.checked("reads", load[2], load[4], load[5], load[6] or "")
            self.out.append(f"  {load[1]} = load {load[2]}, ptr {pointer}, align {load[5]}")
        elif (store := STORE.match(line)) is not None:
            pointer = self.checked("writes", store[1], store[4], store[5], store[6] or "")
            self.out.append(f"  store {store[1]} {store[2]}, ptr {pointer}, align {store[5]}")
        elif (pointer := POINTER.match(line)) is not None:
            name, base = pointer[1], "%shared" if pointer[2] == "@shared" else pointer[2]
            self.out.append(f"  {name}.at = ptrtoint ptr {base} to i64")
            self.out.append(f"  {name}.start = ptrtoint ptr %shared to i64")
            self.out.append(f"  {name} = sub i64 {name}.at, {name}.start")
        else:
            new = line
            for pattern, text in RENAMED.items() if FOREIGN.search(line) else ():
                new = re.sub(pattern, text, new)
            if "@llvm.nvvm." in new or "addrspace" in new:
                raise self.unknown(line)
            self.out.append(new)

    def checked(self, what: str, type: str, pointer: str, align: str, source: str = "") -> str:
        """Emit the check of an access; return the pointer to use instead. `type`: the type that is accessed, or the
        number of bytes, which may be a value of the kernel."""
        if pointer not in self.roots:
            raise Unsupported(f"emulator: {self.kernel.name}", f"{what} by {pointer}, which is in no known buffer")
        if not self.checks:
            return "%shared" if pointer == "@shared" else pointer
        base, size = self.roots[pointer]
        pointer = base if pointer == "@shared" else pointer
        known = None if type.startswith("%") or type.isdigit() else width_of(type)
        width = f"{known} bytes" if known is not None else "bytes"
        self.found.accesses.append(Access(self.kernel.name, f"{what} {width}", source, base, size))
        number = len(self.found.accesses)
        name, mask = f"%checked{number}", int(align) - 1
        if size is None and what.startswith("copies"):
            arguments = f"ptr {pointer}, ptr %shared, i64 %shared.last.{known}, i64 {mask}, i64 {number}, ptr %report"
            call = f"@emulator.check({arguments})"
        elif size is None:
            writes = "true" if what == "writes" else "false"
            call = f"@emulator.shared(ptr {pointer}, ptr %ctx, i64 {known}, i64 {mask}, i1 {writes}, i64 {number}, "
            call += "ptr %report)"
        elif known is None:
            self.out += [
                f"  %bytes{number} = zext i32 {type} to i64",
                f"  %limit{number} = sub i64 {size}, %bytes{number}",
                f"  %none{number} = icmp eq i32 {type}, 0",
                f"  %from{number} = select i1 %none{number}, ptr {base}, ptr {pointer}",
            ]
            call = f"@emulator.check(ptr %from{number}, ptr {base}, i64 %limit{number}, i64 {mask}, i64 {number}, "
            call += "ptr %report)"
        else:
            limit, mask = (size - known, mask) if known <= size else (0, -1)
            call = f"@emulator.check(ptr {pointer}, ptr {base}, i64 {limit}, i64 {mask}, i64 {number}, ptr %report)"
        self.out.append(f"  {name} = call ptr {call}")
        return name


def launcher(kernel: Kernel) -> str:
    """Return the text of `relay_launch_NAME(pointers, blocks, report, work, shared)`, which executes all threads, one
    after the other, until one has a fault."""
    names = [f"p{number}" for number in range(len(kernel.parameters))]
    lines = [f"define void @{symbol(kernel.name)}(ptr noalias %table, i32 %nctaid, ptr noalias %report, ptr, i64) {{"]
    arguments = [f"ptr %{name}" for name in names]
    registers = ["i32 %t", "i32 %b", f"i32 {kernel.threads}", "i32 %nctaid"]
    return "\n".join(
        [
            *lines,
            "entry:",
            *threads.pointers("table", names),
            "  br label %blocks",
            "blocks:",
            "  %b = phi i32 [ 0, %entry ], [ %b1, %next ]",
            "  br label %threads",
            "threads:",
            "  %t = phi i32 [ 0, %blocks ], [ %t1, %going ]",
            f"  call void @{kernel.name}({', '.join([*arguments, *registers, 'ptr %report'])})",
            "  %fault = load i64, ptr %report",
            "  %wrong = icmp ne i64 %fault, 0",
            "  br i1 %wrong, label %stop, label %going",
            "going:",
            "  %t1 = add i32 %t, 1",
            f"  %more = icmp ult i32 %t1, {kernel.threads}",
            "  br i1 %more, label %threads, label %next",
            "next:",
            "  %b1 = add i32 %b, 1",
            "  %again = icmp ult i32 %b1, %nctaid",
            "  br i1 %again, label %blocks, label %done",
            "stop:",
            "  %where = getelementptr i64, ptr %report, i64 2",
            "  %thread = zext i32 %t to i64",
            "  store i64 %thread, ptr %where",
            "  %place = getelementptr i64, ptr %report, i64 3",
            "  %block = zext i32 %b to i64",
            "  store i64 %block, ptr %place",
            "  br label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )
