"""Each kernel of a model by itself, in the model's order and memory, timed by the processor's counter.

Every call of `@main` becomes a function of its own on the planned memory; one more function runs them in turn and
notes the counter around each, so that a kernel finds in the caches what it finds there in the model.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from benchmarks.macs import Work, kernels_of
from benchmarks.native import Memory
from relay import signature
from relay.compile.manifest import describe
from relay.compile.pipeline import default_pipeline, lowering_passes, optimize
from relay.frontend import import_model
from relay.lowering.codegen import compile_text
from relay.lowering.llvm_ir import translate
from relay.module import IRModule
from relay.passes import Pipeline
from relay.runtime import Executable, Library
from relay.target import host
from relay.tools.peers import Array, importer_options
from relay.transforms.print_choices import schedule_lines

COUNTER = "llvm.readcyclecounter"


@dataclass(frozen=True)
class Timed:
    """One call: its kernel, where in the model it comes from, its time in seconds."""

    kernel: str
    work: Work
    seconds: float
    schedule: str


def slices(module: IRModule) -> list[CallOp]:
    """Add a public function `call_N` for each call of `@main`, with `@main`'s arguments; returns the calls."""
    main = module["main"]
    calls = [op for op in main.body.block.ops if isinstance(op, CallOp)]
    for number, call in enumerate(calls):
        block = Block(arg_types=[argument.type for argument in main.body.block.args])
        known: dict[SSAValue, SSAValue] = dict(zip(main.body.block.args, block.args, strict=True))
        copy_with_sources(call, block, known)
        block.add_op(ReturnOp())
        module.op.body.block.add_op(FuncOp(f"call_{number}", main.function_type, Region(block)))
    return calls


def copy_with_sources(op: Operation, block: Block, known: dict[SSAValue, SSAValue]) -> None:
    """Copy an operation behind copies of what its operands are views of."""
    for operand in op.operands:
        if operand not in known and isinstance(operand.owner, Operation):
            copy_with_sources(operand.owner, block, known)
    copy = op.clone(known)
    block.add_op(copy)
    known.update(zip(op.results, copy.results, strict=True))


def profile(count: int) -> str:
    """LLVM IR of `relay_profile`: takes the addresses of the model's table and of `count + 1` numbers to fill."""
    lines = [
        f"declare i64 @{COUNTER}()",
        "define void @relay_profile(ptr %job) nounwind {",
        "  %table = load ptr, ptr %job, align 8",
        "  %second = getelementptr ptr, ptr %job, i64 1",
        "  %notes = load ptr, ptr %second, align 8",
    ]
    for number in range(count + 1):
        lines.append(f"  %t{number} = call i64 @{COUNTER}()")
        lines.append(f"  %n{number} = getelementptr i64, ptr %notes, i64 {number}")
        lines.append(f"  store i64 %t{number}, ptr %n{number}, align 8")
        if number < count:
            lines.append(f"  call void @relay_call_{number}(ptr %table)")
    return "\n".join([*lines, "  ret void", "}"])


def schedule_of(function: FuncOp) -> str:
    """What `schedule` says it chose, and why."""
    return "; ".join(schedule_lines(function.attributes.get("relay.schedule"))) or "loops"


def lowered(model: Path, options: Mapping[str, Any]) -> tuple[IRModule, dict[str, Work]]:
    """The model's module with planned memory, and its kernels' multiply-adds."""
    target = host()
    module = optimize(import_model(str(model), options), target)
    work = kernels_of(module)
    names = {step.name for step in lowering_passes(target)}
    Pipeline([step for step in default_pipeline(target) if step.name in names]).apply(module)
    return module, work


def compiled(model: Path, options: Mapping[str, Any]) -> tuple[Executable, list[Timed]]:
    """The model with `relay_profile` beside its entry point, and its calls, not timed yet."""
    target = host()
    inputs, outputs = signature.read(import_model(str(model), options)["main"])
    module, work = lowered(model, options)
    graph, params = describe(module, target, inputs, outputs)
    calls = slices(module)
    text = translate(module.op, target.function_attributes, target.triple)
    code = compile_text(f"{text}\n{profile(len(calls))}\n", target)
    rows: list[Timed] = []
    for call in calls:
        name = call.callee.string_value()
        rows.append(Timed(name, work[name], 0.0, schedule_of(module[name])))
    return Executable(json.dumps(graph), Library(code.shared_object()), params), rows


def time_kernels(model: Path, inputs: Sequence[Array], seconds: float = 1.0) -> list[Timed]:
    """Every call of the model in order, each with the median of its times."""
    options = importer_options(model, inputs)
    executable, rows = compiled(model, options)
    inputs = [array for array in inputs if array.ndim or not options]
    memory = Memory(executable, inputs)
    executable.library.function(executable.graph["entry"])
    return run_profile(executable.library, memory, rows, seconds)


def run_profile(library: Library, memory: Memory, rows: Sequence[Timed], seconds: float) -> list[Timed]:
    """Run the model again and again for some time."""
    notes = np.zeros(len(rows) + 1, np.int64)
    job = (ctypes.c_uint64 * 2)(memory.pointer, notes.ctypes.data)
    run = library.function("relay_profile")
    spans: list[Array] = []
    run(ctypes.addressof(job))
    start, first = perf_counter(), int(notes[-1])
    while perf_counter() < start + seconds or len(spans) < 3:
        run(ctypes.addressof(job))
        spans.append(np.diff(notes))
    ticks = (int(notes[-1]) - first) / (perf_counter() - start)
    times = np.median(np.array(spans), axis=0) / ticks
    return [Timed(row.kernel, row.work, float(time), row.schedule) for row, time in zip(rows, times, strict=True)]
