"""Writes a profiling `@main` that reads the processor's counter around each call of a kernel; the kernels are
unchanged."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from relay.errors import Unsupported
from relay.lowering.program import FunctionText

CALL = re.compile(r"  (?:call void|%\w+ = call i32) (@[\w.$-]+|%\w+)\(")
"""A call of a kernel, or of an external function, which returns a status."""
NOTES = "%notes"
"""The argument that points to the counters, 64-bit words: one for each call, in program order, which is increased by
the ticks of that call, and a last one for the time at which `@main` ends."""
READ = {
    "x86_64": "call i64 @llvm.readcyclecounter()",
    "aarch64": 'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()',
}
"""The instruction that reads a counter of constant rate, by the architecture in the target triple."""
DECLARATION = "declare i64 @llvm.readcyclecounter()"


def counted(main: FunctionText, kernels: Collection[str], triple: str) -> FunctionText:
    """Return `main` with code that adds the ticks of each call of one of the `kernels` to an array of counters. A
    pointer to this array becomes the last argument of `main` (`NOTES` describes the array). Raises Unsupported if
    `READ` has no row for the architecture of the target triple."""
    machine = triple.partition("-")[0]
    if machine not in READ:
        raise Unsupported("profile", f"no counter of {machine} is known", "profile on x86-64 or aarch64")
    lines: list[str] = []
    count = 0
    for line in main.body.split("\n"):
        found = CALL.match(line)
        if found is None or (found[1][0] == "@" and found[1][1:] not in kernels):
            lines.append(line)
            continue
        n = count
        lines += [
            f"  %c{n}.start = {READ[machine]}",
            line,
            f"  %c{n}.end = {READ[machine]}",
            f"  %c{n}.ticks = sub i64 %c{n}.end, %c{n}.start",
            f"  %c{n}.note = getelementptr i64, ptr {NOTES}, i64 {n}",
            f"  %c{n}.old = load i64, ptr %c{n}.note, align 8",
            f"  %c{n}.new = add i64 %c{n}.old, %c{n}.ticks",
            f"  store i64 %c{n}.new, ptr %c{n}.note, align 8",
        ]
        count += 1
    last = [
        f"  %c.last = {READ[machine]}",
        f"  %c.end = getelementptr i64, ptr {NOTES}, i64 {count}",
        "  store i64 %c.last, ptr %c.end, align 8",
    ]
    end = len(lines) - 1 - lines[::-1].index("  ret void")
    lines[end:end] = last
    return replace(main, arguments=(*main.arguments, f"ptr {NOTES}"), body="\n".join(lines))
