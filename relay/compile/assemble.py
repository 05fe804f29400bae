"""The executable of a module whose memory is planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from relay.compile.claims import Claims, place_tensors
from relay.compile.manifest import Signature, describe
from relay.compile.work import Work
from relay.compile.workers import Compilation
from relay.lowering import externals
from relay.lowering.c_interface import export
from relay.lowering.llvm_ir import program
from relay.module import IRModule
from relay.runtime import Executable, Library
from relay.target import CpuTarget, GpuTarget


def assemble(
    module: IRModule,
    compilation: Compilation,
    described: Signature,
    claims: Claims,
    progress: Callable[[int, int], object] | None = None,
    work: Work | None = None,
) -> Executable:
    """The executable of a module that has what `CODE_GENERATION` names; `claims` are its formulas. `progress` is told
    how much of the code is compiled; `work` is that of the source's operators, for profiles."""
    machine, effort = compilation.target, compilation.level
    if isinstance(machine, GpuTarget):
        from relay.compile.gpu import assemble_for_device  # builds for a CPU import nothing for GPUs

        return assemble_for_device(module, machine, described, effort)
    threads = machine.triple if "linux" in machine.triple else ""
    whole = program(module.op, machine.function_attributes, threads, ready=compilation.add).text
    code = compilation.finish(whole, progress)
    graph, params = describe(module, machine, *described)
    sources = {"mlir": module.to_text, "ll": lambda: code.ir, "asm": code.assembly, **externals.sources(module.op)}
    files = partial(export, module, graph, params, machine, effort)
    counts = partial(_profiled, module, machine, effort, work or {})
    library = Library(code.shared_object(), sources, externals.artifacts(module.op), files, counts)
    return Executable(json.dumps(graph), library, params, claims=place_tensors(claims, module).pack())


def _profiled(module: IRModule, machine: CpuTarget, effort: int, work: Work) -> dict[str, Any]:
    from relay.compile.profiling import profiled  # here: few builds are profiled

    return profiled(module, machine, effort, work)
