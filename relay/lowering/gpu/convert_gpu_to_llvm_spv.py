"""`convert-gpu-to-llvm-spv`: what OpenCL calls a thread's number and a barrier, for LLVM's SPIR-V."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Attribute, Operation

from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import INDEX
from relay.lowering.gpu.device_calls import ConvertDeviceCalls, IdOp

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
class ConvertGpuToLlvmSpv(ConvertDeviceCalls):
    """Turn `gpu.thread_id`, `gpu.block_id`, `gpu.block_dim`, `gpu.grid_dim` and `gpu.barrier` inside `gpu.module` into
    calls of OpenCL's functions, which the module declares. Loops, memory and arithmetic stay: the translator to LLVM
    IR takes them."""

    name = "convert-gpu-to-llvm-spv"
    why = "lowers thread and block indices to calls of OpenCL C functions"

    def barrier(self, module: GpuModuleOp) -> Sequence[Operation]:
        declare(module, BARRIER, llvm.LLVMVoidType())
        fence = arith.ConstantOp(IntegerAttr(LOCAL_FENCE, i32))
        return fence, llvm.CallOp(BARRIER, fence.result)

    def number(self, module: GpuModuleOp, op: IdOp) -> Sequence[Operation]:
        name = FUNCTIONS[op.name]
        declare(module, name, i64)
        number = arith.ConstantOp(IntegerAttr(DIMENSIONS[op.dimension.data], i32))
        call = llvm.CallOp(name, number.result, return_type=i64)
        return number, call, arith.IndexCastOp(call.results[0], INDEX)


def declare(module: GpuModuleOp, name: str, result: Attribute) -> None:
    """Declare a function of one i32, once."""
    block = module.body.block
    if not any(isinstance(other, llvm.FuncOp) and other.sym_name.data == name for other in block.ops):
        block.add_op(llvm.FuncOp(name, llvm.LLVMFunctionType([i32], result), linkage=llvm.LinkageAttr("external")))
