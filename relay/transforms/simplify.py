"""The pass `simplify`: removes `relay` ops that change nothing, and merges pairs of ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.legalization import settle
from relay.transforms.simplification import PATTERNS


@dataclass(frozen=True)
class Simplify(Pass):
    """Remove `relay` ops that change nothing, and merge pairs of ops into one. The patterns are those of
    `relay.transforms.simplification`. Results stay equal to the last bit. Dead code is removed, too."""

    name: ClassVar[str] = "simplify"
    aliases = ("SimplifyExpr",)
    opt_level = 1
    invalidates = ()
    why = "replaces expressions by simpler ones with equal results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        settle(op, [pattern() for pattern in PATTERNS])
        erase_dead(op.walk())
