"""Builds the program that `Executable.profile` runs: the executable's kernels, unchanged, and a `@main` that adds up
the time of each of its calls in a counter."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, cast

from xdsl.dialects.func import CallOp

from relay.byoc.partitioning.records import operators as rows_of
from relay.compile.peak import measure
from relay.compile.work import Work
from relay.compile.workers import Compilation
from relay.lowering.llvm_ir import program
from relay.lowering.shaped import buffer_of, is_buffer, size_of
from relay.module import IRModule
from relay.target import CpuTarget
from relay.transforms.location import words


def profiled(module: IRModule, built: Compilation, work: Work) -> dict[str, Any]:
    """Return what a profile needs to know about a module with planned memory. `code`: the shared object of a program
    with counters. `calls`: for each call, its kernel, the bytes of its arguments, and the operators of the source model
    with their multiply-accumulates. `peak`: the measured multiply-adds per second of one core. `built` is the
    compilation of the executable: LLVM modules that it has compiled are not compiled again."""
    target = cast(CpuTarget, built.target)
    threads = target.triple if target.has_threads else ""
    write = partial(program, module.op, target.function_attributes, threads, counters=target.triple)
    with Compilation(target, built.level, codes=built.codes) as code:
        write(ready=code.add, apart=built.apart)
        found = code.finish(lambda: write().text)
    functions = module.functions
    calls = [op for op in module["main"].walk() if isinstance(op, CallOp)]
    number = Counter(op.callee.string_value() for op in calls)
    rows, peak = list[dict[str, Any]](), dict(measure())
    for op in calls:
        name = op.callee.string_value()
        kernel = functions.get(name)
        alone = kernel is not None and number[name] == 1  # of several calls, a kernel remembers one
        inner = list(kernel.walk()) if kernel is not None and alone else []
        operators = list(dict.fromkeys(filter(None, (words(op.location), *(words(each.location) for each in inner)))))
        counted = [work[name]] if name in work else []
        if kernel is not None and not kernel.body.blocks:  # an external compiler's
            theirs = rows_of(kernel)
            operators = list(dict.fromkeys(row.source for row in theirs)) or operators
            counted = [(row.macs, "int8" if row.op.startswith("qnn.") else "float32") for row in theirs if row.macs]
        rows.append(
            {
                "kernel": name,
                "bytes": bytes_of(op),
                "operators": operators,
                "macs": sum(macs for macs, _ in counted),
                "kind": counted[0][1] if counted else "",
            }
        )
        if rows[-1]["kind"] == "bfloat16" and "bfloat16" not in peak:
            rows[-1]["kind"] = "float32"  # without instructions for bf16, bf16 is widened
    return {"code": found.shared_object(), "calls": rows, "peak": peak}


def bytes_of(call: CallOp) -> int:
    """The size in bytes of a kernel's arguments: an upper bound of the memory that it accesses, each byte once."""
    return sum(size_of(buffer_of(operand)) for operand in call.operands if is_buffer(operand.type))
