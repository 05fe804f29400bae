"""`convert-gpu-to-llvm-spv`: what OpenCL calls a thread's number and a barrier, for LLVM's SPIR-V."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Attribute, Operation

from relay.dialects.gpu import BarrierOp
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import INDEX
from relay.lowering.gpu.convert_gpu_to_nvvm import IdOp, device_ops, replace
from relay.passes import Pass

FUNCTIONS: dict[str, str] = {
    "gpu.thread_id": "_Z12get_local_idj",
    "gpu.block_id": "_Z12get_group_idj",
    "gpu.block_dim": "_Z14get_local_sizej",
    "gpu.grid_dim": "_Z14get_num_groupsj",
}
"""OpenCL's functions by their mangled names, as LLVM's SPIR-V knows them."""
BARRIER = "_Z7barrierj"
LOCAL_FENCE = 1
"""OpenCL's CLK_LOCAL_MEM_FENCE."""
DIMENSIONS = {DimensionEnum.X: 0, DimensionEnum.Y: 1, DimensionEnum.Z: 2}


@dataclass(frozen=True)
class ConvertGpuToLlvmSpv(Pass):
    """Turn `gpu.thread_id`, `gpu.block_id`, `gpu.block_dim`, `gpu.grid_dim` and `gpu.barrier` inside `gpu.module` into
    calls of OpenCL's functions, which the module declares. Loops, memory and arithmetic stay: the translator to LLVM
    IR takes them."""

    name = "convert-gpu-to-llvm-spv"
    requires = ("outlined",)
    establishes = ("device-calls",)
    invalidates = ()
    why = "spells numbers of threads for OpenCL"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not device_ops(op)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in device_ops(op):
            if isinstance(inner, BarrierOp):
                fence = arith.ConstantOp(IntegerAttr(LOCAL_FENCE, i32))
                declare(inner.parent_op(), BARRIER, llvm.LLVMVoidType())
                replace(inner, [fence, llvm.CallOp(BARRIER, fence.result)])
            elif isinstance(inner, IdOp):
                name = FUNCTIONS[inner.name]
                number = arith.ConstantOp(IntegerAttr(DIMENSIONS[inner.dimension.data], i32))
                declare(inner.parent_op(), name, i64)
                call = llvm.CallOp(name, number.result, return_type=i64)
                replace(inner, [number, call, arith.IndexCastOp(call.results[0], INDEX)])


def declare(op: Operation | None, name: str, result: Attribute) -> None:
    """Declare a function of one i32 in the `gpu.module` around the operation, once."""
    while not isinstance(op, GpuModuleOp):
        assert op is not None
        op = op.parent_op()
    block = op.body.block
    if any(isinstance(other, llvm.FuncOp) and other.sym_name.data == name for other in block.ops):
        return
    type = llvm.LLVMFunctionType([i32], result)
    block.add_op(llvm.FuncOp(name, type, linkage=llvm.LinkageAttr("external")))
