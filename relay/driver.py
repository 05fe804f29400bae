"""`build`: a thin composition of public passes, from a module or a model file to an executable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from relay import signature
from relay.errors import InvalidArgument
from relay.lowering.bufferize import Bufferize
from relay.lowering.codegen import compile_text
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.graph import describe
from relay.lowering.llvm_ir import translate
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.lowering.targets import CpuTarget, resolve
from relay.module import IRModule
from relay.passes import Sequential
from relay.runtime import Executable, Library
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize
from relay.transforms.simplify import Simplify


def graph_passes(target: CpuTarget) -> list[ModulePass]:
    """Level 0 to outlined kernels: what `optimize` runs."""
    return [
        Legalize(features=",".join(sorted(target.features))),
        FoldConstant(),
        Simplify(),
        CommonSubexpressionElimination(),
        DeadCodeElimination(),
        FuseOps(),
    ]


def lowering_passes(target: CpuTarget) -> list[ModulePass]:
    """Kernels to loops with planned memory."""
    return [
        RelayToLinalg(),
        ExpandApplyScale(),
        Bufferize(),
        Schedule(features=",".join(sorted(target.features))),
        PlanMemory(),
    ]


def optimize(mod: IRModule | ModuleOp, target: str | CpuTarget = "llvm") -> IRModule:
    """Everything before code generation: legalised, folded, fused. The given module stays as it is."""
    return Sequential(graph_passes(resolve(target)))(_module(mod))


def _module(mod: IRModule | ModuleOp) -> IRModule:
    return mod if isinstance(mod, IRModule) else IRModule(mod)


def import_model(model: str | PathLike[str] | bytes, options: Mapping[str, Any]) -> IRModule:
    """A model file by its content. Raises Malformed for a format that is not known."""
    from relay import frontend

    return frontend.from_tflite(model, **options)


def build(
    mod: IRModule | ModuleOp | str | PathLike[str] | bytes,
    target: str | CpuTarget = "llvm",
    params: Mapping[str, npt.ArrayLike] | None = None,
    *,
    opt_level: int | None = None,
    frontend: Mapping[str, Any] | None = None,
) -> Executable:
    """Compile a module, or the model in a file (or its bytes), for a target.

    `params` replaces weights by name. `opt_level` (0-3, default 3) is LLVM's effort; the integers never depend on it.
    `frontend` holds options of the importer. Raises RelayError.
    """
    machine = resolve(target)
    if opt_level is not None and opt_level not in (0, 1, 2, 3):
        raise InvalidArgument(f"opt_level={opt_level}", "is not 0, 1, 2 or 3")
    if isinstance(mod, IRModule | ModuleOp):
        if frontend:
            raise InvalidArgument("frontend", "options are for model files; a module is imported already")
        module = _module(mod).clone()
    else:
        module = import_model(mod if isinstance(mod, bytes) else fspath(mod), frontend or {})
    if params:
        module.replace_weights({name: np.asarray(value) for name, value in params.items()})
    main = module["main"]
    inputs, outputs = signature.read(main)
    Sequential(graph_passes(machine)).apply(module)
    Sequential(lowering_passes(machine)).apply(module)
    text = translate(module.op, '"prefer-vector-width"="512"' if "avx512f" in machine.features else "")
    code = compile_text(text, machine, 3 if opt_level is None else opt_level)
    graph, params_out = describe(module, machine, inputs, outputs)
    library = Library(code.code, {"mlir": module.to_text, "ll": lambda: code.ir, "asm": code.assembly})
    return Executable(json.dumps(graph), library, params_out)
