"""`convert-gpu-to-nvvm`: thread indices and barriers become LLVM's intrinsics for NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering.builder import INDEX
from relay.lowering.gpu.device_calls import ConvertDeviceCalls, IdOp
from relay.lowering.gpu.packed_codes import extract_by_dots, pack_saturated

REGISTERS: dict[str, str] = {
    "gpu.thread_id": "tid",
    "gpu.block_id": "ctaid",
    "gpu.block_dim": "ntid",
    "gpu.grid_dim": "nctaid",
}
"""The special register that each op reads."""
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


@dataclass(frozen=True)
class ConvertGpuToNvvm(ConvertDeviceCalls):
    """Turn the ops of GPU kernels into calls of LLVM's intrinsics for NVPTX. These are `gpu.thread_id`, `gpu.block_id`,
    `gpu.block_dim`, `gpu.grid_dim` and `gpu.barrier` inside `gpu.module`. Vectors of integers that are clipped and
    narrowed to codes become words by `cvt.pack.sat`; codes that are shifted and added to a constant are extracted from
    their words by `dp2a`. Loops, memory and other arithmetic are left to the translation to LLVM IR."""

    name = "convert-gpu-to-nvvm"
    why = "lowers thread and block indices to NVIDIA's special registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        super().apply(ctx, op)
        for module in [inner for inner in op.body.block.ops if isinstance(inner, GpuModuleOp)]:
            pack_saturated(module)
            extract_by_dots(module)

    def barrier(self, module: GpuModuleOp) -> Sequence[Operation]:
        zero = arith.ConstantOp(IntegerAttr(0, i32))
        return zero, llvm.CallIntrinsicOp(BARRIER, [zero.result], [])

    def number(self, module: GpuModuleOp, op: IdOp) -> Sequence[Operation]:
        name = f"llvm.nvvm.read.ptx.sreg.{REGISTERS[op.name]}.{op.dimension.data.value}"
        read = llvm.CallIntrinsicOp(name, [], [i32])
        return read, arith.IndexCastOp(read.results[0], INDEX)
