"""`build`: a thin composition of public passes, from a module or a model file to an executable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from relay import signature
from relay.dialects.attributes import Array, to_numpy
from relay.errors import InvalidArgument, RelayError
from relay.lowering.bufferize import Bufferize
from relay.lowering.codegen import compile_text
from relay.lowering.expand_apply_scale import ExpandApplyScale
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
    mlir = module.to_text()
    text = translate(module.op, '"prefer-vector-width"="512"' if "avx512f" in machine.features else "")
    code = compile_text(text, machine, 3 if opt_level is None else opt_level)
    graph, params_out = describe(module, machine, inputs, outputs)
    library = Library(code.code, {"mlir": mlir, "ll": code.ir, "asm": code.assembly})
    return Executable(json.dumps(graph), library, params_out)


def describe(
    module: IRModule,
    target: CpuTarget,
    inputs: list[signature.TensorInfo],
    outputs: list[signature.TensorInfo],
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The graph of a planned module as JSON, and its constants by name."""
    main = module["main"]
    params: dict[str, Array] = {}
    constants: list[dict[str, Any]] = []
    for row in _rows(module.op, "relay.constants"):
        name, array = _string(row, "name"), to_numpy(row.data["value"])
        params[name] = array
        constants.append(
            {"name": name, "offset": _int(row, "offset"), "dtype": str(array.dtype), "shape": list(array.shape)}
        )
    described: list[dict[str, Any]] = []
    for info in inputs:
        entry = _describe(info)
        if info.initial is not None:
            entry["initial"] = f"{info.name}.initial"
            params[entry["initial"]] = np.array(np.broadcast_to(info.initial, info.shape), info.dtype)
        described.append(entry)
    sizes = [arg.type.get_shape()[0] for arg in main.body.block.args[-2:] if isinstance(arg.type, MemRefType)]
    graph: dict[str, Any] = {
        "entry": "relay_main",
        "target": {"triple": target.triple, "cpu": target.cpu, "features": sorted(target.features)},
        "inputs": described,
        "outputs": [_describe(info) for info in outputs],
        "kernels": [op.callee.string_value() for op in main.walk() if isinstance(op, CallOp)],
        "functions": [name for name, f in module.functions.items() if isinstance(f, FuncOp) and name != "main"],
        "buffers": [
            {"name": _string(row, "name"), **{k: _int(row, k) for k in ("offset", "size", "first", "last")}}
            for row in _rows(module.op, "relay.buffers")
        ],
        "arena_bytes": sizes[1],
        "constants_bytes": sizes[0],
        "constants": constants,
    }
    return graph, params


def _describe(info: signature.TensorInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "shape": list(info.shape),
        "dtype": str(info.dtype),
        "scale": info.scale,
        "zero_point": int(info.zero_point),
        "kind": info.kind,
    }


def _rows(op: ModuleOp, name: str) -> list[DictionaryAttr]:
    attr = op.attributes.get(name)
    if not isinstance(attr, ArrayAttr):
        raise RelayError("module", f"has no {name}; run plan-memory first")
    return [row for row in attr.data if isinstance(row, DictionaryAttr)]


def _string(row: DictionaryAttr, key: str) -> str:
    value = row.data[key]
    assert isinstance(value, StringAttr)
    return value.data


def _int(row: DictionaryAttr, key: str) -> int:
    value = row.data[key]
    assert isinstance(value, IntegerAttr)
    return value.value.data
