"""The pass `simplify-inference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes import Pass
from relay.transforms.expansions import ExpandNorms
from relay.transforms.legalization import own, settle


@dataclass(frozen=True)
class SimplifyInference(Pass):
    """Write normalizations out as sums, products and roots, as inference computes them; dropout goes.

    `batch_norm` becomes a product and a sum per channel, which `fold-scale-axis` takes into weights.
    """

    name: ClassVar[str] = "simplify-inference"
    establishes = ("inference",)
    invalidates = ("folded",)
    why = "expands batch_norm into a multiply and an add per channel"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(type(inner) in ExpandNorms.REPLACES for inner in own(op))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        settle(op, [ExpandNorms()])
