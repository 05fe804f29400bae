"""The passes of a build for a CPU, in order: down to kernels of `relay` ops, then to loops with planned memory."""

from __future__ import annotations

from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from relay.lowering.bufferize import Bufferize
from relay.lowering.distribute_loops import DistributeLoops
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.math_expand_ops import MathExpandOps
from relay.lowering.parallelize import Parallelize
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.lowering.select_target_ops import SelectTargetOps
from relay.lowering.share_kernels import ShareKernels
from relay.lowering.share_layers import ShareLayers
from relay.lowering.update_in_place import UpdateInPlace
from relay.transforms.alter_op_layout import AlterOpLayout
from relay.transforms.dead_pixels import DeadPixels
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fold_explicit_padding import FoldExplicitPadding
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize
from relay.transforms.simplify import Simplify
from relay.transforms.unsigned_codes import UnsignedCodes


def to_kernels() -> list[ModulePass]:
    """Return the passes from an imported model (stage 0), with a target, to outlined kernels of `relay` ops (stage
    1)."""
    return [
        Legalize(),
        AlterOpLayout(),
        FoldConstant(),
        FoldExplicitPadding(),
        Simplify(),
        CommonSubexpressionElimination(),
        DeadCodeElimination(),
        DeadPixels(),
        UnsignedCodes(),
        FuseOps(),
    ]


def to_loops() -> list[ModulePass]:
    """Return the passes from kernels of `relay` ops to loops over planned memory (stage 3)."""
    return [
        RelayToLinalg(),
        ExpandApplyScale(),
        Bufferize(),
        UpdateInPlace(),
        ShareLayers(),
        Schedule(),
        SelectTargetOps(),
        MathExpandOps(),
        DistributeLoops(),
        Parallelize(),
        ShareKernels(),
        PlanMemory(),
    ]
