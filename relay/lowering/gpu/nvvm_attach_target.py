"""`nvvm-attach-target`: attaches the GPU for which kernels are compiled."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from relay.dialects.gpu import ModuleOp as GpuModuleOp
from relay.dialects.gpu_targets import NvvmTargetAttr
from relay.passes import Pass
from relay.target.chips import CHIPS
from relay.target.gpu import DEFAULT_CHIP


@dataclass(frozen=True)
class NvvmAttachTarget(Pass):
    """Add `#nvvm.target` to each `gpu.module`. The target has the `chip` (`sm_80`), its `features` (`+ptx70`), and
    LLVM's optimization level `O`, 0 to 3. Options have upstream's names."""

    name = "nvvm-attach-target"
    requires = ("outlined",)
    invalidates = ()
    why = "says which GPU it is"
    chip: str = DEFAULT_CHIP
    features: str = CHIPS[DEFAULT_CHIP].ptx
    O: int = 3  # noqa: E741

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = NvvmTargetAttr.of(O=self.O, chip=self.chip, features=self.features)
        for module in op.body.block.ops:
            if isinstance(module, GpuModuleOp):
                before = () if module.targets is None else module.targets.data
                module.targets = ArrayAttr([*before, target])
