"""Parses the PTX instructions in a kernel's LLVM IR, and checks registers that asynchronous products are still
writing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from relay.errors import Unsupported
from relay.lowering.gpu.emulator.faults import KernelFault

ASSEMBLY = re.compile(r'  (?:(%\w+) = )?call (void|\{.*\}) asm sideeffect "(.*?)", "(.*?)"\((.*)\)')
FENCE, COMMIT = "wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned"
WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+)")
MULTIPLY = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k32\.s32\.([su]8)\.([su]8) \{(.*)\}, \$(\d+), \$(\d+), 1"
)
VISIBLE = "fence.proxy.async.shared::cta"
NAME = re.compile(r"%[\w.]+")


@dataclass(frozen=True)
class Multiply:
    """A `wgmma` instruction: 64 x `columns` sums of 32 products, in the registers from `first` on. `factors`: the
    indices of both factors' descriptors among the operands that are only read."""

    first: int
    columns: int
    signed: tuple[bool, bool]
    factors: tuple[int, int]


@dataclass(frozen=True)
class Wait:
    """A wait until at most `left` groups of products are in progress."""

    left: int


@dataclass(frozen=True)
class Registers:
    """A change of a thread's number of registers, which does not affect its results."""

    count: int


@dataclass(frozen=True)
class Bulk:
    """A PTX instruction for copies to shared memory by the copy engine (TMA). `name` is `init` (of an mbarrier for
    `number` arrivals), `arrive`, `expect` (an arrival that expects `number` bytes), `acquire` (a fence for a tensor
    map), `copy` (of a 2d tile), `windows` (an im2col copy), or `wait`, which the threads of a warp execute together."""

    name: str
    number: int

    @property
    def together(self) -> bool:
        return self.name == "wait"


BULK = {
    "init": r"mbarrier\.init\.shared::cta\.b64 \[\$0\], (\d+);",
    "arrive": r"mbarrier\.arrive\.shared::cta\.b64 _, \[\$0\](;)",
    "expect": r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[\$0\], (\d+);",
    "acquire": r"\{ \.reg \.b64 (\w+); cvta\.global\.u64 \1, \$0; "
    r"fence\.proxy\.tensormap::generic\.acquire\.sys \[\1\], 128; \}",
    "copy": r"\{ \.reg \.b64 (\w+); cvta\.global\.u64 \1, \$1; cp\.async\.bulk\.tensor\.2d\.shared::cluster\.global\."
    r"mbarrier::complete_tx::bytes \[\$0\], \[\1, \{\$2, \$3\}\], \[\$4\]; \}",
    "windows": r"\{ \.reg \.b64 (\w+); \.reg \.b16 (\w+), (\w+); cvta\.global\.u64 \1, \$1; cvt\.u16\.u32 \2, \$6; "
    r"cvt\.u16\.u32 \3, \$7; cp\.async\.bulk\.tensor\.4d\.shared::cluster\.global\.im2col\."
    r"mbarrier::complete_tx::bytes \[\$0\], \[\1, \{\$2, \$3, \$4, \$5\}\], \[\$8\], \{\2, \3\}; \}",
    "wait": r"\{ \.reg \.pred (\w+); (\w+): mbarrier\.try_wait\.parity\.shared::cta\.b64 \1, \[\$0\], \$1; "
    r"@!\1 bra \2; \}",
}
"""For each kind of `Bulk` instruction, a pattern that matches the whole text of its inline assembly."""
REGISTERS = re.compile(r"setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32 (\d+)")
Instruction = Multiply | Wait | Bulk | Registers | str
"""One instruction; fences and commits are plain strings."""


@dataclass(frozen=True)
class Assembly:
    """One inline assembly: its result, the registers that it changes, the words that it only reads, and its
    instructions in order."""

    source: str
    result: str | None
    type: str
    sums: tuple[str, ...]
    words: tuple[str, ...]
    instructions: tuple[Instruction, ...]

    @property
    def settled(self) -> bool:
        """Whether the registers that this inline assembly changes have their final values after it, because its last
        instruction waits for all products."""
        return bool(self.instructions) and self.instructions[-1] == Wait(0)


def parts(line: str) -> tuple[str | None, str, list[str], str, list[str]] | None:
    """Return the result, its type, the instructions, constraints and operands of a line; None if it is not inline
    assembly."""
    found = ASSEMBLY.match(line)
    if found is None:
        return None
    result, type, text, constraints, operands = found.groups()
    texts = [part.strip() for part in text.split(";") if part.strip()] if bulk_of(text) is None else [text]
    return result, type, texts, constraints, operands.split(", ") if operands else []


def assembly_of(kernel: str, line: str) -> Assembly | None:
    """Return the inline assembly of a line, or None. Raises Unsupported for instructions that the emulator does not
    know."""
    found = parts(line)
    if found is None:
        return None
    result, type, texts, constraints, operands = found
    count = constraints.count("=r")
    words, sums = (operands[:-count], operands[-count:]) if count else (operands, [])
    every = tuple(bulk_of(text) or instruction(kernel, text, count) for text in texts)
    return Assembly("; ".join(texts)[:60], result, type, tuple(sums), tuple(words), every)


def bulk_of(text: str) -> Bulk | None:
    """Return the copy or barrier instruction that an inline assembly consists of, else None."""
    for name, pattern in BULK.items():
        if (found := re.fullmatch(pattern, text)) is not None:
            return Bulk(name, int(found[1]) if found[1].isdigit() else 0)
    return None


def instruction(kernel: str, text: str, count: int) -> Instruction:
    """Parse one instruction of an inline assembly whose first `count` operands are registers that it changes. Raises
    Unsupported."""
    if text in (FENCE, COMMIT, VISIBLE):
        return text
    if (wait := WAIT.fullmatch(text)) is not None:
        return Wait(int(wait[1]))
    if (registers := REGISTERS.fullmatch(text)) is not None:
        return Registers(int(registers[1]))
    known = MULTIPLY.fullmatch(text)
    sums = [] if known is None else known[4].split(", ")
    first = int(sums[0][1:]) if sums else 0
    each = [f"${number}" for number in range(first, min(first + len(sums), count))]
    if known is None or 2 * len(sums) != int(known[1]) or sums != each:
        raise Unsupported(f"emulator: {kernel}", f"has {text[:80]}, which is not known")
    factors = int(known[5]) - count, int(known[6]) - count
    return Multiply(first, int(known[1]), (known[2] == "s8", known[3] == "s8"), factors)


def check_registers(kernel: str, body: Sequence[str]) -> None:
    """Raise KernelFault for an instruction that uses a register which products in progress may change: only further
    products, and a wait for all, may use it."""
    under_way: set[str] = set()
    before = -1
    while before != len(under_way):
        before = len(under_way)
        for line in body:
            name, _, text = line.strip().partition(" = ")
            found = assembly_of(kernel, line)
            if found is not None and found.result is not None and not found.settled:
                under_way.add(found.result)
            if text.startswith(("extractvalue ", "phi ")) and not under_way.isdisjoint(NAME.findall(text)):
                under_way.add(name)
    for line in body if under_way else ():
        text = line.strip().partition(" = ")[2] or line
        if text.startswith(("extractvalue ", "phi ")) or parts(line) is not None:
            continue
        if not under_way.isdisjoint(NAME.findall(text)):
            raise KernelFault(f"kernel {kernel}", f"uses a register that products under way change: {line.strip()}")
