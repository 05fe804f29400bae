"""Builds for a CPU: the passes from kernels on, and the executable of a module whose memory is planned."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from xdsl.passes import ModulePass

from relay.compile.assemble import Backend, Planned
from relay.compile.claims import Claims, place_tensors, read_formulas
from relay.compile.manifest import describe, share_constants
from relay.compile.work import Work
from relay.compile.workers import Compilation
from relay.lowering import externals
from relay.lowering.c_interface import export
from relay.lowering.llvm.repeat import REPEAT
from relay.lowering.llvm.team import TEAM_FUNCTIONS
from relay.lowering.llvm_ir import program
from relay.lowering.passes import to_loops
from relay.module import IRModule
from relay.runtime import Executable, Library
from relay.target import CpuTarget

KERNELS_PER_WORKER = 12
"""The number of kernels that justifies one more worker process: LLVM takes about half a second for them."""


class Native(Backend[CpuTarget]):
    """The backend for CPUs: loops, compiled by LLVM for the processor that runs the graph."""

    needed = ("loops", "target-ops", "functions", "planned")

    def passes(self, target: CpuTarget) -> list[ModulePass]:
        return to_loops()

    def prepare(self, module: IRModule, code: Compilation) -> Claims:
        claims = read_formulas(module.op)
        code.pool.start_workers(len(module.op.body.block.ops) // KERNELS_PER_WORKER)
        return claims

    def assemble(self, planned: Planned, target: CpuTarget) -> Executable:
        module, code = planned.module, planned.code
        threads = target.triple if target.has_threads else ""
        repeated = planned.repeated and not externals.called(module.op)
        write = partial(
            program,
            module.op,
            target.function_attributes,
            threads,
            index_bits=target.index_bits,
            repeated=repeated,
        )
        write(ready=code.add, apart=code.apart)
        found = code.finish(lambda: write().text, planned.progress)  # not kept: it is as large as all modules of code
        graph, params = describe(module, target, *planned.described)
        if repeated:
            graph["repeat"] = {"entry": REPEAT, "team": TEAM_FUNCTIONS}
        if planned.length:
            graph["length"] = planned.length
        sources = {
            "mlir": module.to_text,
            "ll": lambda: found.ir,
            "asm": found.assembly,
            **externals.sources(module.op),
        }
        files = partial(export, module, graph, params, target, code.level)
        counts = partial(_profiled, module, code, planned.work)
        library = Library(found.shared_object(), sources, externals.artifacts(module.op), files, counts)
        claims = b"" if planned.length else place_tensors(planned.claims, module).pack()
        executable = Executable(json.dumps(graph), library, params, claims=claims)
        share_constants(module.op, executable.params)
        return executable


def _profiled(module: IRModule, code: Compilation, work: Work) -> dict[str, Any]:
    from relay.compile.profiling import profiled  # here: few builds are profiled

    return profiled(module, code, work)
