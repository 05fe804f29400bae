"""The base of conversions of device ops, such as thread indices and barriers, to calls of a target's functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.gpu import BarrierOp
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.passes import Pass

IdOp = gpu.ThreadIdOp | gpu.BlockIdOp | gpu.BlockDimOp | gpu.GridDimOp


@dataclass(frozen=True)
class ConvertDeviceCalls(Pass):
    """Turn `gpu.thread_id`, `gpu.block_id`, `gpu.block_dim`, `gpu.grid_dim` and `gpu.barrier` inside `gpu.module` into
    the target's calls."""

    requires = ("outlined",)
    establishes = ("device-calls",)
    invalidates = ()

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not _device_ops(op)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner, module in _device_ops(op):
            new = self.barrier(module) if isinstance(inner, BarrierOp) else self.number(module, inner)
            replace(inner, new)

    @abstractmethod
    def barrier(self, module: GpuModuleOp) -> Sequence[Operation]:
        """Return the operations that synchronise the threads of a block."""

    @abstractmethod
    def number(self, module: GpuModuleOp, op: IdOp) -> Sequence[Operation]:
        """Return the operations that replace `op`, which reads an index or the size of a block or grid; the result of
        the last operation is that number."""


def _device_ops(op: ModuleOp) -> list[tuple[BarrierOp | IdOp, GpuModuleOp]]:
    """Return the index and barrier ops of all `gpu.module`s."""
    modules = [module for module in op.body.block.ops if isinstance(module, GpuModuleOp)]
    return [(inner, module) for module in modules for inner in module.walk() if isinstance(inner, BarrierOp | IdOp)]


def replace(op: Operation, new: Sequence[Operation]) -> None:
    """Replace an operation by others; the results of the last one replace its results."""
    for each in new:
        each.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], new[-1].results)
