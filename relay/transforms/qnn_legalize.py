"""The pass `qnn-legalize`: expands `qnn` ops into integer `relay` ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes.target_pass import TargetPass
from relay.transforms.legalization import legal, legalize


@dataclass(frozen=True)
class QnnLegalize(TargetPass):
    """Expand `qnn` ops into integer `relay` ops with equal results. Patterns of other dialects are not applied."""

    name: ClassVar[str] = "qnn-legalize"
    aliases = ("qnn.Legalize",)
    establishes = ("no-qnn",)
    invalidates = ("folded",)
    why = "lowers quantised ops to integer ones"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return legal(op, ("qnn",))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        legalize(ctx, op, self.target(op), ("qnn",))
