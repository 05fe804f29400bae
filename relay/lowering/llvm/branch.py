"""Writes `scf.if` as branches."""

from __future__ import annotations

from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Operation

from relay.lowering.llvm.function import FunctionWriter


def write_if(w: FunctionWriter, op: Operation) -> None:
    """Write an `scf.if` as a branch; its results become phis where the branches join."""
    assert isinstance(op, IfOp)
    w.counter += 1
    end = f"end{w.counter}"
    branches = [(f"then{w.counter}", op.true_region), (f"else{w.counter}", op.false_region)]
    first, second = (label if region.blocks else end for label, region in branches)
    w.line(f"br i1 {w.of(op.cond)}, label %{first}, label %{second}")
    sources: list[list[str]] = [[] for _ in op.results]
    for label, region in branches:
        if not region.blocks:
            continue
        last = region.block.last_op
        assert isinstance(last, YieldOp)
        w.lines.append(f"{label}:")
        w.label = label
        for inner in region.block.ops:
            if inner is not last:
                w.operation(inner)
        for source, value in zip(sources, last.operands, strict=True):
            source.append(f"[ {w.of(value)}, %{w.label} ]")
        w.line(f"br label %{end}")
    w.lines.append(f"{end}:")
    w.label = end
    for result, source in zip(op.results, sources, strict=True):
        w.define(result, f"phi {w.type(result)} {', '.join(source)}")
