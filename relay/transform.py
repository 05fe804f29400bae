"""Passes by their class names, and `Sequential`: `mod = relay.transform.Sequential([...])(mod)`."""

from relay.lowering.bufferize import Bufferize
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.passes import Pass, Sequential
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.infer_types import InferTypes
from relay.transforms.legalize import Legalize
from relay.transforms.simplify import Simplify

__all__ = [
    "Bufferize",
    "ExpandApplyScale",
    "FoldConstant",
    "FuseOps",
    "InferTypes",
    "Legalize",
    "Pass",
    "PlanMemory",
    "RelayToLinalg",
    "Schedule",
    "Sequential",
    "Simplify",
]
