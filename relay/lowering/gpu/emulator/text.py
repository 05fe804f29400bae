"""Kernels' LLVM IR for NVPTX as LLVM IR for the host: numbers of threads become arguments, accesses are checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from relay.errors import Unsupported

REGISTERS = ("tid.x", "ctaid.x", "ntid.x", "nctaid.x")
"""The special registers of a thread, in the order in which a function gets them."""

DEFINE = re.compile(r"define ptx_kernel void @(\w+)\((.*)\) nounwind \"nvvm\.reqntid\"=\"(\d+)\" \{")
PARAMETER = re.compile(r"ptr addrspace\(1\) .*?dereferenceable\((\d+)\).*? (%\w+)$")
ADDRESS = re.compile(r"  (%\w+) = getelementptr (?:inbounds )?([^,]+), ptr addrspace\((\d)\) (%?@?[\w.]+), i\d+ (.*)")
LOAD = re.compile(r"  (%\w+) = load (.+), ptr addrspace\((\d)\) (%\w+), align (\d+)(?: ; (.*))?$")
STORE = re.compile(r"  store (.+) (\S+|<.*>), ptr addrspace\((\d)\) (%\w+), align (\d+)(?: ; (.*))?$")
REGISTER = re.compile(r"  (%\w+) = call i32 @llvm\.nvvm\.read\.ptx\.sreg\.([\w.]+)\(\)")

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
"""Where an access may go: to memory of its buffer at a multiple of its alignment, or else to 64 bytes of the report,
which keeps what was wrong first."""


@dataclass(frozen=True)
class Access:
    """A load or store: what a report names by its number."""

    kernel: str
    what: str
    source: str
    buffer: str
    size: int


@dataclass
class Kernel:
    """A kernel's name and the pointers it takes, with their sizes in bytes."""

    name: str
    threads: int
    parameters: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    lines: list[str] = field(default_factory=list[str])


@dataclass
class Translation:
    """The host's text, the kernels by name, and all accesses."""

    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])
    accesses: list[Access] = field(default_factory=list[Access])
    declarations: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The module."""
        bodies = ["\n".join([*kernel.lines, launcher(kernel)]) for kernel in self.kernels.values()]
        return "\n".join([CHECK, *bodies, *self.declarations]) + "\n"


def width_of(type: str) -> int:
    """Bytes of a type in memory."""
    if type.startswith("<"):
        count, _, element = type.strip("<>").partition(" x ")
        return int(count) * WIDTHS[element]
    return WIDTHS[type]


def translate(text: str, checked: bool = True) -> Translation:
    """The kernels for the host. Raises Unsupported for what the emulator does not know."""
    found = Translation()
    kernel: Kernel | None = None
    roots: dict[str, tuple[str, int]] = {}
    for line in text.splitlines():
        if (head := DEFINE.match(line)) is not None:
            kernel = start(head)
            found.kernels[kernel.name] = kernel
            roots = {name: (name, size) for name, size in kernel.parameters}
        elif kernel is None:
            if "@llvm.nvvm." not in line:
                found.declarations.append(line)
        elif line == "}":
            kernel.lines.append(line)
            kernel = None
        else:
            kernel.lines.append(instruction(line, kernel, roots, found, checked))
    return found


def start(head: re.Match[str]) -> Kernel:
    """The kernel of a `define`, as a function that gets its registers and the report behind its parameters."""
    kernel = Kernel(head[1], int(head[3]))
    parameters: list[str] = []
    for parameter in filter(None, head[2].split(", ")):
        known = PARAMETER.match(parameter)
        if known is None:
            raise Unsupported(f"emulator: {kernel.name}", f"takes {parameter}, which is no pointer to a buffer")
        kernel.parameters.append((known[2], int(known[1])))
        parameters.append(f"ptr noalias {known[2]}")
    registers = [f"i32 %{name}" for name in REGISTERS]
    arguments = ", ".join([*parameters, *registers, "ptr %report"])
    kernel.lines.append(f"define internal void @{kernel.name}({arguments}) alwaysinline {{")
    return kernel


def instruction(line: str, kernel: Kernel, roots: dict[str, tuple[str, int]], found: Translation, checked: bool) -> str:
    """One line of a kernel."""
    if (register := REGISTER.match(line)) is not None:
        if register[2] not in REGISTERS:
            raise Unsupported(f"emulator: {kernel.name}", f"reads the register {register[2]}")
        return f"  {register[1]} = add i32 0, %{register[2]}"
    if (address := ADDRESS.match(line)) is not None:
        if address[4] in roots:
            roots[address[1]] = roots[address[4]]
        return f"  {address[1]} = getelementptr {address[2]}, ptr {address[4]}, i64 {address[5]}"
    if (load := LOAD.match(line)) is not None:
        before, pointer = check(kernel, roots, found, checked, "reads", load[2], load[4], load[5], load[6])
        return f"{before}  {load[1]} = load {load[2]}, ptr {pointer}, align {load[5]}"
    if (store := STORE.match(line)) is not None:
        before, pointer = check(kernel, roots, found, checked, "writes", store[1], store[4], store[5], store[6])
        return f"{before}  store {store[1]} {store[2]}, ptr {pointer}, align {store[5]}"
    if "@llvm.nvvm." in line or "addrspace" in line:
        raise Unsupported(f"emulator: {kernel.name}", f"has {line.strip()}, which is not known")
    return line


def check(
    kernel: Kernel,
    roots: dict[str, tuple[str, int]],
    found: Translation,
    checked: bool,
    what: str,
    type: str,
    pointer: str,
    align: str,
    source: str | None,
) -> tuple[str, str]:
    """A line that checks an access, and the pointer to use instead."""
    if pointer not in roots:
        raise Unsupported(f"emulator: {kernel.name}", f"{what} by {pointer}, which is in no known buffer")
    if not checked:
        return "", pointer
    base, size = roots[pointer]
    width = width_of(type)
    found.accesses.append(Access(kernel.name, f"{what} {width} bytes", source or "", base, size))
    name = f"%checked{len(found.accesses)}"
    arguments = f"ptr {pointer}, ptr {base}, i64 {size - width}, i64 {int(align) - 1}, i64 {len(found.accesses)}"
    if width > size:
        arguments = f"ptr {pointer}, ptr {base}, i64 0, i64 -1, i64 {len(found.accesses)}"
    return f"  {name} = call ptr @emulator.check({arguments}, ptr %report)\n", name


def symbol(kernel: str) -> str:
    """The name of a kernel's launcher."""
    return f"relay_launch_{kernel}"


def launcher(kernel: Kernel) -> str:
    """`relay_launch_NAME(pointers, blocks, report)`: all threads, one after the other, until one is at fault."""
    lines = [f"define void @{symbol(kernel.name)}(ptr noalias %table, i32 %nctaid, ptr noalias %report) {{"]
    lines.append("entry:")
    arguments: list[str] = []
    for number in range(len(kernel.parameters)):
        lines.append(f"  %at{number} = getelementptr ptr, ptr %table, i64 {number}")
        lines.append(f"  %p{number} = load ptr, ptr %at{number}")
        arguments.append(f"ptr %p{number}")
    registers = ["i32 %t", "i32 %b", f"i32 {kernel.threads}", "i32 %nctaid"]
    return "\n".join(
        [
            *lines,
            "  %where = getelementptr i64, ptr %report, i64 2",
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
            f"  %first = mul i32 %b, {kernel.threads}",
            "  %thread = add i32 %first, %t",
            "  %long = zext i32 %thread to i64",
            "  store i64 %long, ptr %where",
            "  br label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )
