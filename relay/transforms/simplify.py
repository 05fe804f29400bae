"""The pass `simplify`: removes `relay` ops that change nothing, and merges pairs of ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relay.transforms.legalization import PatternPass
from relay.transforms.simplification import PATTERNS


@dataclass(frozen=True)
class Simplify(PatternPass):
    """Remove `relay` ops that change nothing, and merge pairs of ops into one. The patterns are those of
    `relay.transforms.simplification`. Results stay equal to the last bit. Dead code is removed, too."""

    name: ClassVar[str] = "simplify"
    aliases = ("SimplifyExpr",)
    opt_level = 1
    invalidates = ()
    why = "replaces expressions by simpler ones with equal results"
    PATTERNS = PATTERNS
