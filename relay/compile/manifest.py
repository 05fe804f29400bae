"""The graph of a planned module as JSON: the facts that the runtime needs, the memory of each kernel, and the
compiler's choices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DenseResourceAttr, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from relay import signature
from relay.dialects.attributes import Array, int_values, share_memory, to_numpy
from relay.lowering import externals
from relay.lowering.linalg.emitter import number
from relay.lowering.llvm.parallel import threaded
from relay.lowering.llvm.team import TEAM_FUNCTIONS
from relay.lowering.llvm_ir import ENTRY
from relay.lowering.plan_memory import loops, planned_rows, steps
from relay.lowering.shaped import buffer_of, is_buffer, size_of
from relay.lowering.update_in_place import IN_PLACE
from relay.module import IRModule
from relay.target import Target
from relay.transforms.location import words

Signature = tuple[list[signature.TensorInfo], list[signature.TensorInfo]]
"""The inputs and outputs of a model, as its function declares them before it is lowered."""


def describe(
    module: IRModule,
    target: Target,
    inputs: list[signature.TensorInfo],
    outputs: list[signature.TensorInfo],
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The graph of a planned module as JSON, and its constants by name."""
    main = module["main"]
    params: dict[str, Array] = {}
    constants: list[dict[str, Any]] = []
    for row in planned_rows(module.op, "relay.constants"):
        name, array = row["name"], to_numpy(row["value"])
        params[name] = array
        constants.append({"name": name, "offset": row["offset"], "dtype": str(array.dtype), "shape": list(array.shape)})
    described: list[dict[str, Any]] = []
    for info in inputs:
        entry = _describe(info)
        if info.initial is not None:
            entry["initial"] = f"{info.name}.initial"
            params[entry["initial"]] = np.array(np.broadcast_to(info.initial, info.shape), info.dtype)
        described.append(entry)
    constants_bytes, arena_bytes = (prod(buffer_of(arg).get_shape()) for arg in main.body.block.args[-2:])
    graph: dict[str, Any] = {
        "entry": ENTRY,
        "target": {"triple": target.triple, "cpu": target.cpu, "features": sorted(target.features)},
        "inputs": described,
        "outputs": [_describe(info) for info in outputs],
        "kernels": [op.callee.string_value() for op in main.walk() if isinstance(op, CallOp)],
        "functions": [name for name in module.functions if name != "main"],
        "buffers": planned_rows(module.op, "relay.buffers"),
        "layers": layers(main, target),
        "arena_bytes": arena_bytes,
        "constants_bytes": constants_bytes,
        "constants": constants,
    }
    if isa(pairs := main.attributes.get(IN_PLACE), ArrayAttr[DenseArrayBase]):
        graph["in_place"] = [[first, second - len(inputs)] for first, second in map(int_values, pairs)]
    if "main" in threaded(module.op):
        graph["team"] = TEAM_FUNCTIONS
    if rows := externals.describe(module.op, params):
        graph["externals"] = rows
    return graph, params


def share_constants(module: ModuleOp, params: Mapping[str, Array]) -> None:
    """Make the module's constants use the memory of `params`, into which they were copied for
    the executable, so that a build keeps one copy."""
    for row in planned_rows(module, "relay.constants"):
        if isinstance(value := row["value"], DenseResourceAttr):
            share_memory(value, params[row["name"]])


def _describe(info: signature.TensorInfo) -> dict[str, Any]:
    counted: dict[str, Any] = {"count": info.count, "axis": info.axis} if info.count else {}
    return counted | {
        "name": info.name,
        "shape": list(info.shape),
        "dtype": str(info.dtype),
        "scale": info.scale,
        "zero_point": int(info.zero_point),
        "kind": info.kind,
    }


def layers(main: FuncOp, target: Target) -> list[dict[str, Any]]:
    """For each call of a kernel, in order: its name (`kernel`), the operators that it comes from (`layer`), and the
    `bytes` of all buffers that are live while it runs, except the model's inputs and outputs; overlapping bytes count
    once."""
    block = main.body.block
    order = list(steps(block))
    numbers, repeated = {op: at for at, op in enumerate(order)}, loops(order)
    spans: list[tuple[range, int, int]] = []
    for use in block.args[-1].uses:
        view = use.operation
        touched = [numbers[step] for user in readers(view.results[0]) if (step := step_of(user, numbers)) is not None]
        if isinstance(view, memref.ViewOp) and touched:
            first, last = min(touched), max(touched)
            for start, end in repeated:
                last = max(last, end) if first < start <= last else last
            start = int(number(view.byte_shift) or 0)
            spans.append((range(start, start + target.room_of(size_of(buffer_of(view.result)))), first, last))
    return [
        {
            "kernel": op.callee.string_value(),
            "layer": words(op.location),
            "bytes": covered(span for span, first, last in spans if first <= at <= last),
        }
        for at, op in enumerate(order)
        if isinstance(op, CallOp)
    ]


def covered(spans: Iterable[range]) -> int:
    """The number of integers that are in at least one of the spans."""
    total = end = 0
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0, span.stop - max(end, span.start))
        end = max(end, span.stop)
    return total


def readers(value: SSAValue) -> Iterator[Operation]:
    """The ops that read or write a buffer, or a view of it."""
    for use in value.uses:
        if use.operation.results and is_buffer(use.operation.results[0].type):
            yield from readers(use.operation.results[0])
        else:
            yield use.operation


def step_of(op: Operation, number: dict[Operation, int]) -> Operation | None:
    """The operation with an entry in `number` that is `op` or contains it; None if there is none."""
    found: Operation | None = op
    while found is not None and found not in number:
        found = found.parent_op()
    return found
