"""`convert-gpu-to-llvm-spv`: thread indices and barriers become calls of OpenCL functions, for LLVM's SPIR-V."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Attribute, Operation

from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import INDEX
from relay.lowering.gpu.device_calls import ConvertDeviceCalls, IdOp, replace

FUNCTIONS: dict[str, str] = {
    "gpu.thread_id": "_Z12get_local_idj",
    "gpu.block_id": "_Z12get_group_idj",
    "gpu.block_dim": "_Z14get_local_sizej",
    "gpu.grid_dim": "_Z14get_num_groupsj",
}
"""OpenCL's functions for each op, by the mangled names that LLVM's SPIR-V back end recognises."""
BARRIER = "_Z7barrierj"
DOTS: dict[str, str] = {
    "llvm.nvvm.idp4a.s.s": "_Z20dot_4x8packed_ss_intjj",
    "llvm.nvvm.idp4a.s.u": "_Z20dot_4x8packed_su_intjj",
    "llvm.nvvm.idp4a.u.s": "_Z20dot_4x8packed_us_intjj",
    "llvm.nvvm.idp4a.u.u": "_Z21dot_4x8packed_uu_uintjj",
}
"""Dot products of four bytes from cl_khr_integer_dot_product, which, unlike `idp4a`, do not add a sum."""
LOCAL_FENCE = 1
"""OpenCL's CLK_LOCAL_MEM_FENCE."""
DIMENSIONS = {DimensionEnum.X: 0, DimensionEnum.Y: 1, DimensionEnum.Z: 2}


@dataclass(frozen=True)
class ConvertGpuToLlvmSpv(ConvertDeviceCalls):
    """Turn the ops of GPU kernels into calls of OpenCL's functions. These are `gpu.thread_id`, `gpu.block_id`,
    `gpu.block_dim`, `gpu.grid_dim` and `gpu.barrier` inside `gpu.module`; the pass declares the functions. `idp4a`
    becomes `dot_4x8packed` and an addition. Loops, memory and other arithmetic are left to the translation to LLVM
    IR."""

    name = "convert-gpu-to-llvm-spv"
    why = "lowers thread and block indices to calls of OpenCL C functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        super().apply(ctx, op)
        for module in [inner for inner in op.body.block.ops if isinstance(inner, GpuModuleOp)]:
            for inner in [*module.walk()]:
                if isinstance(inner, llvm.CallIntrinsicOp) and inner.intrin.data in DOTS:
                    replace(inner, self.dot(module, inner))

    def dot(self, module: GpuModuleOp, op: llvm.CallIntrinsicOp) -> Sequence[Operation]:
        """Return the dot product of the first two operands, and its addition to the third."""
        name, (x, y, start) = DOTS[op.intrin.data], op.args
        declare(module, name, i32, arguments=2)
        product = llvm.CallOp(name, x, y, return_type=i32)
        return product, arith.AddiOp(start, product.results[0])

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


def declare(module: GpuModuleOp, name: str, result: Attribute, arguments: int = 1) -> None:
    """Declare a function with i32 arguments, unless the module declares it already."""
    block = module.body.block
    if not any(isinstance(other, llvm.FuncOp) and other.sym_name.data == name for other in block.ops):
        block.add_op(
            llvm.FuncOp(name, llvm.LLVMFunctionType([i32] * arguments, result), linkage=llvm.LinkageAttr("external"))
        )
