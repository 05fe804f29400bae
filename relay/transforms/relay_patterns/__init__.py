"""The `relay` ops that others make up: `COMPOSITIONS` says of which, and `PATTERNS` is the pattern that puts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from relay.dialects.op import DYNAMIC, shape
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization
from relay.transforms.relay_patterns import creation, indexing, reduce, transform, unary

Composition = Callable[[Expansion, Any], Sequence[SSAValue]]
"""Adds the ops that mean the same; their values in place of the op's results."""

COMPOSITIONS: dict[type[Operation], Composition] = {
    **unary.COMPOSITIONS,
    **reduce.COMPOSITIONS,
    **transform.COMPOSITIONS,
    **creation.COMPOSITIONS,
    **indexing.COMPOSITIONS,
}


class Compose(Legalization):
    """An op of `COMPOSITIONS`, of known shapes  =>  the ops that it is made up of"""

    REPLACES: ClassVar[frozenset[type[Operation]]] = frozenset(COMPOSITIONS)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if (composition := COMPOSITIONS.get(type(op))) is not None and static(op):
            new = Expansion(op)
            new.replace(rewriter, *composition(new, op))


def static(op: Operation) -> bool:
    """Whether every dimension is known."""
    return not any(DYNAMIC in shape(value) for value in (*op.operands, *op.results))


PATTERNS: list[type[Legalization]] = [Compose]
