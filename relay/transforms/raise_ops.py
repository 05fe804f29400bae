"""The pass `raise-ops`: replaces the elementwise formulas that exporters write for softmax, sigmoid and hard-swish by
the ops for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from relay.dialects.op import tensor
from relay.transforms.algebra import Algebra, Rule, by_root
from relay.transforms.legalization import PatternPass

GATE = "clip(add(x, 3), 0, 6)"
HARD_SWISH = f"multiply(x, multiply({GATE}, {np.float32(1 / 6)}))"
RULES = [
    Rule("divide(exp(subtract(x, max(x))), sum(exp(subtract(x, max(x)))))", "softmax(x)", "f"),
    Rule("divide(exp(x), sum(exp(x)))", "softmax(x)", "f"),
    Rule("divide(1, add(1, exp(negative(x))))", "sigmoid(x)", "f"),
    Rule(f"multiply(x, divide({GATE}, 6))", HARD_SWISH, "f"),
    Rule(f"divide(multiply(x, {GATE}), 6)", HARD_SWISH, "f"),
]
"""Rules from the terms that exporters write to the op that they stand for. A term has elementwise ops, `clip`, and
`sum` and `max` along one axis that is kept with size 1."""


class Raise(Algebra):
    """Replaces a softmax, sigmoid or hard swish that is written as several float32 ops, by the first of `RULES` that
    matches and keeps the result type."""

    BY_ROOT: ClassVar[Mapping[str, Sequence[Rule]]] = by_root(RULES)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op.name in self.BY_ROOT and tensor(op.results[0]).element_type == f32:
            super().match_and_rewrite(op, rewriter)


@dataclass(frozen=True)
class RaiseOps(PatternPass):
    """Replace softmax, sigmoid and hard swish that an exporter decomposed by single ops.

    Results differ by a few units in the last place. A softmax that was written without its maximum no longer overflows.
    `from_onnx` runs it.
    """

    name: ClassVar[str] = "raise-ops"
    invalidates = ()
    why = "raises subgraphs that exporters write out to single ops"
    PATTERNS = (Raise,)
