"""`convert-gpu-to-nvvm`: what the device calls a thread's number and a barrier, as LLVM's intrinsics for NVIDIA's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, gpu, llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from relay.dialects.gpu import BarrierOp
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import INDEX
from relay.passes import Pass

REGISTERS: dict[str, str] = {
    "gpu.thread_id": "tid",
    "gpu.block_id": "ctaid",
    "gpu.block_dim": "ntid",
    "gpu.grid_dim": "nctaid",
}
"""The special register that has the number."""
IdOp = gpu.ThreadIdOp | gpu.BlockIdOp | gpu.BlockDimOp | gpu.GridDimOp
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


@dataclass(frozen=True)
class ConvertGpuToNvvm(Pass):
    """Turn `gpu.thread_id`, `gpu.block_id`, `gpu.block_dim`, `gpu.grid_dim` and `gpu.barrier` inside `gpu.module` into
    calls of LLVM's intrinsics for NVPTX. Loops, memory and arithmetic stay: the translator to LLVM IR takes them."""

    name = "convert-gpu-to-nvvm"
    requires = ("outlined",)
    establishes = ("device-calls",)
    invalidates = ()
    why = "spells numbers of threads for NVIDIA's GPUs"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not device_ops(op)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in device_ops(op):
            if isinstance(inner, BarrierOp):
                zero = arith.ConstantOp(IntegerAttr(0, i32))
                replace(inner, [zero, llvm.CallIntrinsicOp(BARRIER, [zero.result], [])])
            elif isinstance(inner, IdOp):
                name = f"llvm.nvvm.read.ptx.sreg.{REGISTERS[inner.name]}.{inner.dimension.data.value}"
                read = llvm.CallIntrinsicOp(name, [], [i32])
                replace(inner, [read, arith.IndexCastOp(read.results[0], INDEX)])


def device_ops(op: ModuleOp) -> list[Operation]:
    """The operations of `gpu.module`s that ask for numbers of threads, or wait for them."""
    modules = [module for module in op.body.block.ops if isinstance(module, GpuModuleOp)]
    return [inner for module in modules for inner in module.walk() if isinstance(inner, BarrierOp | IdOp)]


def replace(op: Operation, new: Sequence[Operation]) -> None:
    """Put these operations in the place of one; the last one's results are its results."""
    block = op.parent
    assert block is not None
    for each in new:
        each.location = op.location
        block.insert_op_before(each, op)
    for old, result in zip(op.results, new[-1].results, strict=True):
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()
