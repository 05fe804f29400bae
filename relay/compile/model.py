"""A build that was not found in the cache: a module or a model file, compiled by public passes to an executable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay import signature
from relay.arguments import mapping, shown
from relay.compile import cache, gpu
from relay.compile.assemble import Signature, assemble
from relay.compile.pipeline import CODE_GENERATION, PASSES_LOCK, chosen_pipeline, default_pipeline, defaults_of
from relay.compile.progress import Update, bar, unseen
from relay.compile.workers import Compilation
from relay.errors import InvalidArgument
from relay.frontend import import_model, path_of
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.module import IRModule, arrays
from relay.passes import PassContext, Pipeline
from relay.passes.base import PassInfo, as_module
from relay.passes.context import activated
from relay.passes.requests import refuse_pending
from relay.passes.runner import Runner
from relay.runtime import Executable
from relay.target import GpuTarget, Target, resolve

if TYPE_CHECKING:
    from relay.byoc.composition import Targets

LLVM_EFFORT = (0, 1, 3, 3, 3)
"""LLVM's optimization level by `opt_level`."""
KERNELS_PER_WORKER = 12
"""Kernels for which one more process is worth its start: LLVM takes about half a second for as many."""
SILENT_SECONDS = 1.0
"""A build that is over by then shows no bar."""


class Building(Runner):
    """A run that ends in code. Passes may change what @main takes and gives (`quantize{io=codes}`,
    `dynamic-to-static`): the executable has what @main told last, before its types were lowered."""

    def __init__(self, module: IRModule, code: Compilation, described: Signature, progress: Update):
        super().__init__(module.op, **defaults_of(code.target))
        self.code, self.described = code, described
        self.progress, self.done = progress, 1
        self.type = module["main"].function_type

    def apply(self, step: ModulePass, info: PassInfo) -> None:
        self.progress(self.done, step.name)
        if isinstance(step, RelayToLinalg):
            function = self.mod["main"]
            if function.function_type != self.type:
                signature.check(function)
                self.described = signature.read(function)
            elif signature.INPUTS in function.attributes:
                self.described = signature.read(function)
            if not isinstance(self.code.target, GpuTarget):
                self.code.pool.start_workers(len(self.mod.op.body.block.ops) // KERNELS_PER_WORKER)
        super().apply(step, info)
        self.done += 1


def compile_model(
    mod: IRModule | ModuleOp | str | PathLike[str] | bytes,
    target: str | Target,
    params: Mapping[str, npt.ArrayLike] | None,
    pipeline: Pipeline | Sequence[ModulePass] | str | None,
    opt_level: int | None,
    frontend: Mapping[str, Any] | None,
    external: Targets | None,
    numerics: str | None,
    progress: bool | None,
) -> tuple[Executable, str | None]:
    """What `relay.build` does with these arguments, and the key that the executable is kept under, if it is."""
    machine = resolve(target)
    ctx = PassContext.current().at_level(opt_level)
    if isinstance(mod, IRModule | ModuleOp) and frontend:
        raise InvalidArgument("frontend", "options are for model files; a module is imported already")
    if external is None and numerics is not None:
        from relay.frontend.tflite.profiles import PROFILES

        hint = (
            f"write frontend={{'numerics': '{numerics}'}}"
            if shown(numerics) in map(shown, PROFILES)
            else "write external='x'"
        )
        raise InvalidArgument("numerics", "is for external compilers, and none is named", hint)
    model = as_module(mod) if isinstance(mod, IRModule | ModuleOp) else mod if isinstance(mod, bytes) else path_of(mod)
    weights = arrays({} if params is None else params)
    mapping(frontend or {}, "frontend", "{'batch': 1}")
    with activated(ctx):
        chosen = chosen_pipeline(pipeline, default_pipeline(machine))
        given = (machine, weights, chosen, frontend or {})
        content = cache.content_of(model)
        key = None
        if external is None and content is not None:
            key = cache.key(content, frontend or {}, weights, machine, ctx, chosen)
        executable = None
        if key is not None and content is not None:
            executable = cache.find(key, content, lambda old: _under(ctx, old, *given))
        if executable is None:
            with bar(progress, "building", 2 * len(chosen) + 1, after=SILENT_SECONDS) as update:
                executable = _compile(model, *given, external, numerics, update)
            if key is not None:
                cache.keep(key, executable)
    return executable, key if key is not None and cache.keeps(executable) else None


def _under(ctx: PassContext, model: Model, *given: *Given) -> Executable:
    with activated(ctx):
        return _compile(model, *given)


Model = IRModule | str | bytes
"""A module, the path of a file, or its bytes."""
Given = tuple[Target, Mapping[str, npt.ArrayLike], Pipeline, Mapping[str, Any]]
"""What a model is compiled with: target, weights by name, passes, options of the importer."""


def _compile(
    model: Model,
    machine: Target,
    params: Mapping[str, npt.ArrayLike],
    chosen: Pipeline,
    frontend: Mapping[str, Any],
    external: Targets | None = None,
    numerics: str | None = None,
    progress: Update = unseen,
) -> Executable:
    """See `build`; under the current context."""
    progress(0, "import")
    module = model.clone() if isinstance(model, IRModule) else import_model(model, frontend)
    module.replace_weights(params)
    described = signature.read(module["main"])
    if not module["main"].body.blocks:
        raise InvalidArgument("function main", "is only declared", "give it a body")
    if external is not None:
        from relay.byoc.composition import build_external_compiler

        with PASSES_LOCK:
            module = build_external_compiler(module, external, numerics=numerics)
    with Compilation(machine, LLVM_EFFORT[PassContext.current().opt_level]) as code:
        runner = Building(module, code, described, progress)
        with PASSES_LOCK:
            runner.run(chosen)
            runner.reach("code generation", gpu.CODE_GENERATION if isinstance(machine, GpuTarget) else CODE_GENERATION)
        refuse_pending(module.op, [step.name for step in chosen])
        done, rest = runner.done, len(chosen)
        return assemble(module, code, runner.described, lambda n, total: progress(done + rest * n / total, "code"))
