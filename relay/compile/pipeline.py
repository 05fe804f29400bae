"""The passes of a build for a target, as data that can be listed, edited, and run without generating code."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TypedDict

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay.byoc.partitioning.compile_external import CompileExternal
from relay.compile.assemble import backend_of
from relay.errors import InvalidArgument
from relay.lowering.codegen import wait_in_fork
from relay.lowering.passes import to_kernels
from relay.module import IRModule
from relay.passes import PassContext, Pipeline
from relay.passes.build_config import BuildConfig
from relay.passes.context import activated
from relay.passes.info import as_module, info_of
from relay.passes.requirements import Providers, providers_of
from relay.passes.runner import Runner
from relay.target import Target, attach, resolve, spelled, target_of
from relay.transforms.attach_target import AttachTarget

TARGET_OPTION = "attach-target.target"
PASSES_LOCK = threading.RLock()
"""Held while a build runs passes: xDSL builds some operations through a hook that is global to the process."""
wait_in_fork(PASSES_LOCK.acquire, PASSES_LOCK.release)


def graph_passes(target: Target) -> list[ModulePass]:
    """The first passes of the default pipeline, from an imported module to outlined kernels; `optimize` runs only
    these."""
    return [AttachTarget(configured() or spelled(target)), CompileExternal(), *to_kernels()]


def configured() -> str:
    """The target that the context's configuration sets for modules; empty if none."""
    return str(PassContext.current().config.get(TARGET_OPTION, ""))


def lowering_passes(target: Target) -> list[ModulePass]:
    """The passes from kernels to loops with planned memory; for a GPU, to launches."""
    return backend_of(target).passes(target)


def default_pipeline(target: str | Target = "llvm", opt_level: int | None = None) -> Pipeline:
    """The pipeline that `build` runs for a target at a level (default: the current `PassContext`'s), to be listed and
    edited."""
    machine = resolve(target)
    ctx = PassContext.current().at_level(opt_level)
    every = Pipeline([*graph_passes(machine), *lowering_passes(machine)])
    if isinstance(ctx, BuildConfig):
        ctx.expand(every)
    return Pipeline([step for step in every if ctx.enabled(info_of(step))])


def optimize(
    mod: IRModule | ModuleOp,
    target: str | Target = "llvm",
    *,
    pipeline: Pipeline | Sequence[ModulePass] | str | None = None,
    opt_level: int | None = None,
) -> IRModule:
    """Legalize, fold and fuse a copy of a module, as `build` does before it lowers `relay` ops.

    `pipeline` replaces the default one. The given module is not changed. Raises RelayError.
    """
    machine = resolve(target)
    with activated(PassContext.current().at_level(opt_level)):
        chosen = chosen_pipeline(pipeline, machine)
        if pipeline is None:
            below = {step.name for step in lowering_passes(machine)}
            first = next((n for n, step in enumerate(chosen) if step.name in below), len(chosen))
            chosen = chosen[:first]
        module = as_module(mod).clone()
        with PASSES_LOCK:
            attach_unless(chosen, module, machine)
            Runner(module.op, **defaults_of(machine)).run(chosen)
    return module


def chosen_pipeline(pipeline: Pipeline | Sequence[ModulePass] | str | None, machine: Target) -> Pipeline:
    """The given pipeline, as passes or text; the target's default pipeline if none is given."""
    return default_pipeline(machine) if pipeline is None else Pipeline.of(pipeline)


def attach_unless(chosen: Pipeline, module: IRModule, machine: Target) -> None:
    """Attach the target to the module, unless the pipeline does."""
    if not any(isinstance(step, AttachTarget) for step in chosen):
        attach(module.op, resolve(configured() or machine))


def check_attached(module: IRModule, machine: Target) -> None:
    """Raise InvalidArgument if the module was lowered for a target whose code `machine` cannot run: another triple, or
    features that it lacks. Other costs, unused features, and no target are accepted."""
    found = target_of(module.op)
    if found.triple not in ("", machine.triple) or not found.features <= machine.features:
        what = f"the module is for {spelled(found)!r}, and the build is for {spelled(machine)!r}"
        raise InvalidArgument("attach-target", what, "give relay.build the target")


class Defaults(TypedDict):
    """The arguments of `Runner` that depend on the target. `providers`: the passes of the target's default pipeline, by
    name and by the properties that they establish. If a pass requires another one, the other is taken from these.
    `options`: the values, by `pass.option`, that replace default values of options: the target of `attach-target`."""

    providers: Providers
    options: Mapping[str, object]


def defaults_of(machine: Target) -> Defaults:
    every = [*graph_passes(machine), *lowering_passes(machine)]
    return {"providers": providers_of(every), "options": {TARGET_OPTION: spelled(machine)}}
