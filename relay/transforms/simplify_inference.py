"""The pass `simplify-inference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes import Pass
from relay.target import target_of
from relay.transforms.expansions import ExpandNorms
from relay.transforms.legalization import own, settle


@dataclass(frozen=True)
class SimplifyInference(Pass):
    """Expand normalizations to sums, products and roots, and remove dropout.

    `batch_norm` becomes a product and a sum per channel, which `fold-scale-axis` folds into weights. `layer_norm` and
    `rms_norm` of float32 along the last axis stay where the module's target is a CPU: they run row by row in one
    kernel.
    """

    name: ClassVar[str] = "simplify-inference"
    establishes = ("inference",)
    invalidates = ("folded",)
    why = "expands batch_norm into a multiply and an add per channel"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(map(ExpandNorms(target_of(op)).replaces, own(op)))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        settle(op, [ExpandNorms(target_of(op))])
