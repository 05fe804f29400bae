"""`gpu-module-to-binary`: compiles kernels to code that a driver loads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from relay.dialects.gpu import BinaryOp, ObjectAttr
from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.dialects.gpu_targets import NvvmTargetAttr, TargetAttr, XevmTargetAttr
from relay.errors import Unsupported
from relay.lowering.gpu.codegen import compile_kernels
from relay.lowering.gpu.kernel_text import NVPTX, SPIRV, kernels_text
from relay.passes import Pass
from relay.target import GpuTarget
from relay.target.chips import CHIPS


@dataclass(frozen=True)
class GpuModuleToBinary(Pass):
    """Turn each `gpu.module` into a `gpu.binary` with an object for each of its targets. An object is PTX as `assembly`
    for `#nvvm.target`, SPIR-V as `bin` for `#xevm.target`. LLVM runs in a separate process."""

    name = "gpu-module-to-binary"
    requires = ("device-calls",)
    invalidates = ()
    why = "compiles kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for module in [inner for inner in op.body.block.ops if isinstance(inner, GpuModuleOp)]:
            name = module.sym_name.data
            targets = () if module.targets is None else module.targets.data
            if not targets:
                raise Unsupported(f"gpu.module @{name}", "has no target", "run nvvm-attach-target first")
            binary = BinaryOp(name, [compiled(module, target) for target in targets])
            binary.location = module.location
            Rewriter.replace_op(module, binary)


def compiled(module: GpuModuleOp, target: Attribute) -> ObjectAttr:
    """Return the module compiled for one target. Raises Unsupported for an unknown target."""
    if not isinstance(target, TargetAttr):
        raise Unsupported(f"gpu.module @{module.sym_name.data}", f"has the target {target}, which is not known")
    gpu = target_of(target)
    convention = NVPTX if gpu.kind == "cuda" else SPIRV
    code = compile_kernels(kernels_text(module, convention), gpu, int(target.get("O")))
    return ObjectAttr(target, StringAttr(code.format), BytesAttr(code.code))


def target_of(target: TargetAttr) -> GpuTarget:
    """Return the target that an attribute describes. Raises Unsupported for an unknown one."""
    if isinstance(target, XevmTargetAttr):
        return GpuTarget(target.get("triple"), "", frozenset(), "opencl")
    chip = target.get("chip")
    if not isinstance(target, NvvmTargetAttr) or chip not in CHIPS:
        raise Unsupported(f"target {target}", "is not known", f"chips are {', '.join(CHIPS)}")
    return GpuTarget(target.get("triple"), chip, CHIPS[chip].features, "cuda")
