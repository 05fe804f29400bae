"""Builds for a GPU: the passes from kernels on, and the executable of a module whose kernels run there."""

from __future__ import annotations

import json
from typing import Any

from xdsl.passes import ModulePass

from relay.compile.assemble import Backend, Planned
from relay.compile.manifest import Signature, describe
from relay.dialects.attributes import Array
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.lowering import externals
from relay.lowering.bufferize import Bufferize
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.gpu.codegen import DeviceCode, compile_kernels
from relay.lowering.gpu.convert_gpu_to_llvm_spv import ConvertGpuToLlvmSpv
from relay.lowering.gpu.convert_gpu_to_nvvm import ConvertGpuToNvvm
from relay.lowering.gpu.convert_parallel_loops_to_gpu import ConvertParallelLoopsToGpu
from relay.lowering.gpu.gpu_kernel_outlining import GpuKernelOutlining
from relay.lowering.gpu.kernel_text import NVPTX, SPIRV, kernels_text
from relay.lowering.gpu.launches import program
from relay.lowering.gpu.nvvm_attach_target import NvvmAttachTarget
from relay.lowering.gpu.schedule_gpu import ScheduleGpu
from relay.lowering.math_expand_ops import MathExpandOps
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.update_in_place import UpdateInPlace
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.device import DeviceLibrary
from relay.target import GpuTarget


def gpu_passes(target: GpuTarget) -> list[ModulePass]:
    """The passes from kernels to launches with planned memory."""
    cuda = [NvvmAttachTarget(chip=target.cpu, features=target.feature_string), ConvertGpuToNvvm()]
    return [
        RelayToLinalg(),
        ExpandApplyScale(),
        Bufferize(),
        UpdateInPlace(),
        ScheduleGpu(),
        ConvertParallelLoopsToGpu(),
        GpuKernelOutlining(),
        MathExpandOps(),
        *(cuda if target.kind == "cuda" else [ConvertGpuToLlvmSpv()]),
        PlanMemory(),
    ]


def kernels_of(module: IRModule, target: GpuTarget, level: int) -> DeviceCode:
    """Compile all kernels of a module, together, for the GPU; the result contains no kernels if the module has none."""
    found = [op for op in module.op.body.block.ops if isinstance(op, GpuModuleOp)]
    convention = NVPTX if target.kind == "cuda" else SPIRV
    return compile_kernels("\n".join(kernels_text(op, convention) for op in found), target, level)


def describe_device(
    module: IRModule, target: GpuTarget, described: Signature
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The graph of a planned module as JSON, with the device's launches, and its constants by name. The arena is on the
    device; the host has none."""
    graph, params = describe(module, target, *described)
    launches, steps = program(module)
    graph["device"] = {
        "kind": target.kind,
        "chip": target.cpu,
        "arena_bytes": graph["arena_bytes"],
        "launches": [launch.row() for launch in launches],
    }
    if steps != [{"launches": [0, len(launches)]}]:
        graph["device"]["steps"] = steps
    graph["arena_bytes"] = 0
    return graph, params


class Device(Backend[GpuTarget]):
    """The backend for GPUs: kernels that the host launches."""

    needed = ("device-calls", "functions", "planned")

    def passes(self, target: GpuTarget) -> list[ModulePass]:
        return gpu_passes(target)

    def assemble(self, planned: Planned, target: GpuTarget) -> Executable:
        module = planned.module
        graph, params = describe_device(module, target, planned.described)
        kernels = kernels_of(module, target, planned.code.level)
        sources = {"mlir": module.to_text, "ll": lambda: kernels.text, **externals.sources(module.op)}
        if target.kind == "cuda":
            sources["ptx"] = lambda: kernels.assembly
        library = DeviceLibrary(kernels.code, graph, sources, externals.artifacts(module.op))
        return Executable(json.dumps(graph), library, params)
