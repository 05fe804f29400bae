"""`summary`: a module's inputs, outputs, weights, and amount of computation by operator of the source model."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay import signature
from relay.byoc.partitioning.records import counts, source_of
from relay.byoc.partitioning.work import multiplications
from relay.dialects.relay import ConstantOp
from relay.module import IRModule
from relay.passes.info import as_module
from relay.tables import aligned

NUMBERED = re.compile(r"\w+ \d+ (\S+)")
"""Matches the operator's kind in the source location that importers write: `operator 3 ADD 'x'`."""


@dataclass(frozen=True)
class Operator:
    """The operators of one kind: their number and multiply-accumulates."""

    kind: str
    count: int
    macs: int
    """The multiply-accumulates of all operators of this kind in one run."""


@dataclass(frozen=True)
class Summary:
    """The result of `summary`; `print` shows it as a table."""

    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    operators: tuple[Operator, ...]
    """The kinds of operators, those with the most multiply-accumulates first."""
    weights: int
    weight_bytes: int

    @property
    def macs(self) -> int:
        """The multiply-accumulates of one run."""
        return sum(row.macs for row in self.operators)

    def to_json(self) -> dict[str, Any]:
        """The summary as a JSON object."""
        return asdict(self) | {"macs": self.macs}

    def __str__(self) -> str:
        ends = ("input", self.inputs), ("output", self.outputs)
        lines = [f"{what:7} {described(row)}" for what, rows in ends for row in rows]
        lines += [f"weights {self.weights} tensors, {self.weight_bytes} bytes", ""]
        table = [("operator", "count", "multiply-accumulates")]
        table += [(row.kind, str(row.count), str(row.macs)) for row in self.operators]
        table.append(("all", str(sum(row.count for row in self.operators)), str(self.macs)))
        return "\n".join([*lines, *aligned(table, (1, 2))])


def described(row: dict[str, Any]) -> str:
    """The name, dtype, shape and quantization of an input or output as text; `row` is a result of `tensor_row`."""
    size = "x".join("?" if size < 0 else str(size) for size in row["shape"]) or "scalar"
    scale = "" if row["scale"] is None else f", real = {row['scale']:.9g} * (code - {row['zero_point']})"
    return f"{row['name']!r} {row['dtype']} {size}{scale}{', a state' if row['kind'] == 'state' else ''}"


def tensor_row(info: signature.TensorInfo) -> dict[str, Any]:
    """An input or an output as a JSON object."""
    return {
        "name": info.name, "shape": list(info.shape), "dtype": str(info.dtype), "kind": info.kind,
        "scale": info.scale, "zero_point": info.zero_point,
    }  # fmt: skip


def kind_of(op: Operation) -> str:
    """The kind of the source model's operator that an op comes from; the op's name if that is unknown."""
    found = NUMBERED.match(source_of(op))
    return found[1] if found else op.name


def summary(mod: IRModule | ModuleOp) -> Summary:
    """Summarize a module: its inputs and outputs, its operators by kind with their multiply-accumulates, and its
    weights."""
    module = as_module(mod)
    inputs, outputs = signature.read(module["main"])
    seen = set[str]()
    number, macs = Counter[str](), Counter[str]()
    for function in module.functions.values():
        for op in function.walk():
            if isinstance(op, ConstantOp) or not counts(op):
                continue
            kind, source = kind_of(op), source_of(op)
            if kind == op.name or source not in seen:
                number[kind] += 1
            seen.add(source)
            macs[kind] += multiplications(op)
    rows = [Operator(kind, count, macs[kind]) for kind, count in number.items()]
    weights = module.weights
    return Summary(
        tuple(map(tensor_row, inputs)),
        tuple(map(tensor_row, outputs)),
        tuple(sorted(rows, key=lambda row: (-row.macs, -row.count, row.kind))),
        len(weights),
        sum(array.nbytes for array in weights.values()),
    )
