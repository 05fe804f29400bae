"""Instructions of a few kernels, counted in their assembly: `python -m benchmarks.instructions [--update]`.

The noise of a machine does not touch these numbers: per kernel, the multiplying instructions of its innermost loops,
all instructions of those loops, the same of the whole kernel (what ends a tile lies outside of its innermost loop), and
vector registers spilled and reloaded anywhere. They are compared with `instructions.json`; the exit code is 1 if a
kernel got worse. Made for a fixed CPU: every x86-64 machine counts alike. Instructions run are not counted: valgrind
knows no AVX-512, and virtual machines have no counters for perf.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from benchmarks.cases import CASES, module_of
from relay.compile.pipeline import default_pipeline
from relay.lowering.codegen import compile_text
from relay.lowering.llvm_ir import translate
from relay.module import IRModule
from relay.target import CpuTarget

EXPECTED = Path(__file__).with_suffix(".json")
TARGET = CpuTarget(
    "x86_64-unknown-linux-gnu",
    "cascadelake",
    frozenset({"avx2", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni"}),
)
MULTIPLY = re.compile(r"\tv(pdpbusd|fn?madd\w+|pmaddwd|pmulld)\s")
INSTRUCTION = re.compile(r"\t[a-z]")
LABEL = re.compile(r"^(\.LBB\d+_\d+):")
JUMP = re.compile(r"\tj\w+\s+(\.LBB\d+_\d+)$")
SPILL = re.compile(r"\tvmov\w+\s.*\(%rsp\).*zmm|\tvmov\w+\s.*zmm.*\(%rsp\)")
SLACK = 1.02
"""A kernel's instructions per multiplication may grow by as much, 2 %, before it counts as worse."""
RATIOS = {
    "instructions per multiplication": ("instructions", "multiplications"),
    "instructions of all per multiplication": ("all_instructions", "all_multiplications"),
}

Counts = dict[str, int]


def innermost(lines: Sequence[str]) -> list[list[str]]:
    """The lines of each innermost loop: from a label to a jump back to it, with no such pair between."""
    labels: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        if (label := LABEL.match(line)) is not None:
            labels[label[1]] = number
        elif (jump := JUMP.match(line)) is not None and jump[1] in labels:
            spans.append((labels[jump[1]], number))
    inner = [(a, b) for a, b in spans if not any((a, b) != (c, d) and a <= c and d <= b for c, d in spans)]
    return [list(lines[a : b + 1]) for a, b in inner]


def count(assembly: str) -> Counts:
    """Multiplications and instructions of the innermost loops that multiply (else of everything), and spills."""
    every = assembly.splitlines()
    loops = [loop for loop in innermost(every) if any(map(MULTIPLY.search, loop))] or [every]
    lines = [line for loop in loops for line in loop]
    return {
        "multiplications": sum(MULTIPLY.search(line) is not None for line in lines),
        "instructions": sum(INSTRUCTION.match(line) is not None for line in lines),
        "all_multiplications": sum(MULTIPLY.search(line) is not None for line in every),
        "all_instructions": sum(INSTRUCTION.match(line) is not None for line in every),
        "spills": sum(SPILL.match(line) is not None for line in every),
    }


def assembly_of(module: IRModule) -> str:
    """The module compiled for the fixed CPU."""
    default_pipeline(TARGET).apply(module)
    text = translate(module.op, TARGET.function_attributes)
    return compile_text(text, TARGET).assembly()


def counted() -> dict[str, Counts]:
    """All kernels, compiled and counted."""
    return {name: count(assembly_of(module_of(case))) for name, case in CASES.items()}


def worse(found: Mapping[str, Counts], expected: Mapping[str, Counts]) -> list[str]:
    """What to say of each kernel that got worse, or is not expected."""
    said: list[str] = []
    for name, new in found.items():
        old = expected.get(name)
        if old is None:
            said.append(f"{name}: is not in {EXPECTED.name}; add it with --update")
            continue
        for what, (count, per) in RATIOS.items():
            before, after = (one[count] / max(one[per], 1) for one in (old, new))
            if after > SLACK * before:
                said.append(f"{name}: {after:.2f} {what}, {before:.2f} expected")
        if new["spills"] > old["spills"]:
            said.append(f"{name}: {new['spills']} spills and reloads, {old['spills']} expected")
    return said


def main(arguments: Sequence[str]) -> int:
    """Count, print, compare or update."""
    found = counted()
    for name, counts in found.items():
        ratio = counts["instructions"] / max(counts["multiplications"], 1)
        print(f"{name}: {ratio:.2f} instructions per multiplication; {counts}")
    if "--update" in arguments:
        EXPECTED.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    said = worse(found, cast(dict[str, Counts], json.loads(EXPECTED.read_text())))
    print(*said, sep="\n")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
