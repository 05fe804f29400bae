"""`build`: a thin composition of public passes, from a module or a model file to an executable."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from relay import build_cache, signature
from relay.arguments import mapping, shown, text
from relay.building import build as build  # beside default_pipeline and optimize
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.errors import InvalidArgument
from relay.lowering import externals
from relay.lowering.bufferize import Bufferize
from relay.lowering.c_interface import export
from relay.lowering.codegen import Compilation
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.gpu import pipeline as gpu
from relay.lowering.gpu.target import GpuTarget
from relay.lowering.graph import describe
from relay.lowering.llvm_ir import program
from relay.lowering.math_expand_ops import MathExpandOps
from relay.lowering.parallelize import Parallelize
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.lowering.scheduling.tables import reads_tables
from relay.lowering.select_target_ops import SelectTargetOps
from relay.lowering.targets import CpuTarget, resolve
from relay.module import IRModule, arrays
from relay.passes import PassContext, Pipeline
from relay.passes.base import PassInfo, as_module, info_of
from relay.passes.build_config import BuildConfig
from relay.passes.context import activated
from relay.passes.requests import refuse_pending
from relay.passes.requirements import Providers, providers_of
from relay.passes.runner import Runner
from relay.progress import Update, bar, unseen
from relay.runtime import Executable, Library
from relay.runtime.device import DeviceLibrary
from relay.signature import TensorInfo
from relay.transforms.dead_pixels import DeadPixels
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fold_explicit_padding import FoldExplicitPadding
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize
from relay.transforms.simplify import Simplify
from relay.transforms.unsigned_codes import UnsignedCodes

if TYPE_CHECKING:
    from relay.byoc.composition import Targets

CODE_GENERATION = ("loops", "target-ops", "functions", "planned")
"""Properties that a module must have for LLVM IR."""
LLVM_EFFORT = (0, 1, 3, 3, 3)
"""LLVM's optimization level by `opt_level`."""
WORTH = 12
"""Kernels for which one more process is worth its start: LLVM takes about half a second for as many."""
SHORT = 1.0
"""Seconds: a build that is over by then shows no bar."""


def graph_passes(target: CpuTarget) -> list[ModulePass]:
    """Level 0 to outlined kernels: what `optimize` runs."""
    features = ",".join(sorted(target.features))
    return [
        CompileExternal(),
        Legalize(features=features),
        FoldConstant(),
        FoldExplicitPadding(),
        Simplify(),
        CommonSubexpressionElimination(),
        DeadCodeElimination(),
        DeadPixels(),
        UnsignedCodes(features=features),
        FuseOps(),
    ]


def lowering_passes(target: CpuTarget) -> list[ModulePass]:
    """Kernels to loops with planned memory; for a GPU, to launches."""
    if isinstance(target, GpuTarget):
        return gpu.gpu_passes(target)
    features = ",".join(sorted(target.features))
    return [
        RelayToLinalg(tables_apart=reads_tables(target.features), transposes_apart=True),
        ExpandApplyScale(features=features, literal=not target.fuses),
        Bufferize(),
        Schedule(features=features),
        SelectTargetOps(features=features),
        MathExpandOps(features=features),
        Parallelize(),
        PlanMemory(),
    ]


def default_pipeline(target: str | CpuTarget = "llvm", opt_level: int | None = None) -> Pipeline:
    """What `build` runs for a target at a level (default: the current `PassContext`'s), to be listed and edited."""
    machine = resolve(target)
    ctx = PassContext.current().at_level(opt_level)
    every = Pipeline([*graph_passes(machine), *lowering_passes(machine)])
    if isinstance(ctx, BuildConfig):
        ctx.expand(every)
    return Pipeline([step for step in every if ctx.enabled(info_of(step))])


def optimize(
    mod: IRModule | ModuleOp,
    target: str | CpuTarget = "llvm",
    *,
    pipeline: Pipeline | Sequence[ModulePass] | str | None = None,
    opt_level: int | None = None,
) -> IRModule:
    """A new module, legalised, folded and fused: what `build` does before it goes below `relay` ops.

    `pipeline` runs another one instead. The given module stays as it is. Raises RelayError.
    """
    machine = resolve(target)
    with activated(PassContext.current().at_level(opt_level)):
        chosen = _chosen(pipeline, default_pipeline(machine))
        if pipeline is None:
            below = {step.name for step in lowering_passes(machine)}
            first = next((n for n, step in enumerate(chosen) if step.name in below), len(chosen))
            chosen = chosen[:first]
        module = as_module(mod).clone()
        with _PASSES:
            _runner(module, machine).run(chosen)
    return module


def _chosen(pipeline: Pipeline | Sequence[ModulePass] | str | None, default: Pipeline) -> Pipeline:
    return default if pipeline is None else Pipeline.of(pipeline)


def _runner(module: IRModule, machine: CpuTarget) -> Runner:
    return Runner(module.op, **_of_default(machine))


class Defaults(TypedDict):
    """Passes that others require, and options that are not given: those of the default pipeline."""

    providers: Providers
    options: Mapping[str, object]


def _of_default(machine: CpuTarget) -> Defaults:
    every = [*graph_passes(machine), *lowering_passes(machine)]
    return {"providers": providers_of(every), "options": {"features": ",".join(sorted(machine.features))}}


Signature = tuple[list[TensorInfo], list[TensorInfo]]
"""Inputs and outputs of a model, as its function tells them before it is lowered."""


class Building(Runner):
    """A run that ends in code. Passes may change what @main takes and gives (`quantize{io=codes}`,
    `dynamic-to-static`): the executable has what @main told last, before its types were lowered."""

    def __init__(self, module: IRModule, code: Compilation, described: Signature, progress: Update):
        super().__init__(module.op, **_of_default(code.target))
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
                self.code.crew.hire(len(self.mod.op.body.block.ops) // WORTH)
        super().apply(step, info)
        self.done += 1


_PASSES = threading.RLock()
"""One build at a time runs passes: xDSL builds some operations through a hook that the whole process shares."""


def import_model(model: str | PathLike[str] | bytes, options: Mapping[str, Any]) -> IRModule:
    """A model file by its content. Raises Malformed for a format that is not known."""
    from relay import frontend

    file = model if isinstance(model, bytes) else path_of(model)
    known = inspect.signature(frontend.from_tflite).parameters
    for name in mapping(options, "frontend", "{'batch': 1}"):
        if name not in known or name == "model":
            raise InvalidArgument(
                f"frontend['{name}']", "is no option of the importer", f"it has {', '.join([*known][1:])}"
            )
    return frontend.from_tflite(file, **options)


def path_of(model: object) -> str:
    """The path of a model file. Raises InvalidArgument for what is none."""
    if not isinstance(model, str | PathLike):
        hint = "import a model with relay.frontend, or give its path or bytes"
        raise InvalidArgument("model", f"{shown(model)} is no module and no file", hint)
    path: object = fspath(cast("PathLike[str]", model))
    return text(path, "model", "a path is a text")


def compile_model(
    mod: IRModule | ModuleOp | str | PathLike[str] | bytes,
    target: str | CpuTarget,
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
        chosen = _chosen(pipeline, default_pipeline(machine))
        given = (machine, weights, chosen, frontend or {})
        content = build_cache.content_of(model)
        key = None
        if external is None and content is not None:
            key = build_cache.key(content, frontend or {}, weights, machine, ctx, chosen)
        executable = None
        if key is not None and content is not None:
            executable = build_cache.find(key, content, lambda old: _under(ctx, old, *given))
        if executable is None:
            with bar(progress, "building", 2 * len(chosen) + 1, after=SHORT) as update:
                executable = _compile(model, *given, external, numerics, update)
            if key is not None:
                build_cache.keep(key, executable)
    return executable, key if key is not None and build_cache.keeps(executable) else None


def _under(ctx: PassContext, model: Model, *given: *Given) -> Executable:
    with activated(ctx):
        return _compile(model, *given)


Model = IRModule | str | bytes
"""A module, the path of a file, or its bytes."""
Given = tuple[CpuTarget, Mapping[str, npt.ArrayLike], Pipeline, Mapping[str, Any]]
"""What a model is compiled with: target, weights by name, passes, options of the importer."""


def _compile(
    model: Model,
    machine: CpuTarget,
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

        with _PASSES:
            module = build_external_compiler(module, external, numerics=numerics)
    with Compilation(machine, LLVM_EFFORT[PassContext.current().opt_level]) as code:
        runner = Building(module, code, described, progress)
        with _PASSES:
            runner.run(chosen)
            runner.reach("code generation", gpu.CODE_GENERATION if isinstance(machine, GpuTarget) else CODE_GENERATION)
        refuse_pending(module.op, [step.name for step in chosen])
        done, rest = runner.done, len(chosen)
        return assemble(module, code, runner.described, lambda n, total: progress(done + rest * n / total, "code"))


def assemble(
    module: IRModule,
    compilation: Compilation,
    described: Signature,
    progress: Callable[[int, int], object] | None = None,
) -> Executable:
    """The executable of a module that has what `CODE_GENERATION` names. `progress` is told how much of the code is
    compiled."""
    machine, effort = compilation.target, compilation.level
    if isinstance(machine, GpuTarget):
        return assemble_for_device(module, machine, described, effort)
    threads = machine.triple if "linux" in machine.triple else ""
    whole = program(module.op, machine.function_attributes, threads, ready=compilation.add).text
    code = compilation.finish(whole, progress)
    graph, params = describe(module, machine, *described)
    sources = {"mlir": module.to_text, "ll": lambda: code.ir, "asm": code.assembly, **externals.sources(module.op)}
    files = partial(export, module, graph, params, machine, effort)
    library = Library(code.shared_object(), sources, externals.artifacts(module.op), files)
    return Executable(json.dumps(graph), library, params)


def assemble_for_device(module: IRModule, machine: GpuTarget, described: Signature, effort: int) -> Executable:
    """The executable of a module whose kernels run on a GPU."""
    graph, params = gpu.describe_device(module, machine, *described)
    code = gpu.kernels_of(module, machine, effort)
    sources = {"mlir": module.to_text, "ll": lambda: code.text, **externals.sources(module.op)}
    if machine.kind == "cuda":
        sources["ptx"] = lambda: code.assembly
    library = DeviceLibrary(code.code, graph, sources, externals.artifacts(module.op))
    return Executable(json.dumps(graph), library, params)
