"""The pass `legalize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes.target_pass import TargetPass
from relay.transforms.legalization import legal, legalize


@dataclass(frozen=True)
class Legalize(TargetPass):
    """Rewrite every op until only `relay` and `byoc` ops that have a lowering are left.

    The patterns of every dialect in use are applied (see `relay.transforms.legalization`); they may choose by the
    module's target. Regions of an external compiler are left unchanged. Raises Unsupported, naming the op and its
    source, if an op remains for which its dialect's patterns have no rewrite.
    """

    name: ClassVar[str] = "legalize"
    establishes = ("legal", "no-qnn")
    invalidates = ("folded",)
    why = "lowers every dialect to the ops that have a lowering"
    DIALECTS: ClassVar[tuple[str, ...] | None] = None
    """The dialects whose patterns are applied; None for every one in use."""

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return legal(op, cls.DIALECTS)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        legalize(ctx, op, self.target(op), self.DIALECTS)
