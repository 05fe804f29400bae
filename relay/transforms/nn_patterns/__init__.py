"""Legalization of `relay` ops that stand for several simpler ones, split by kind; `EXPANSIONS` lists them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from relay.dialects import relay
from relay.dialects.op import DYNAMIC, shape
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization
from relay.transforms.nn_patterns import activation, convolution, matmul, pooling, rearrange, resizing
from relay.transforms.nn_patterns.rows import Expansions

EXPANSIONS: Expansions = {
    **convolution.EXPANSIONS,
    **matmul.EXPANSIONS,
    **resizing.EXPANSIONS,
    **pooling.EXPANSIONS,
    **activation.EXPANSIONS,
    **rearrange.EXPANSIONS,
}
"""What each op is written as."""
KEPT: frozenset[type[Operation]] = frozenset([relay.BatchMatmulOp, relay.Resize2dOp, relay.SoftmaxOp, *pooling.KEPT])
"""Ops of which a row leaves some as they are."""


@dataclass(frozen=True)
class Expand(Legalization):
    """relay.nn.conv3d, ... %x  =>  the ops of its row in `EXPANSIONS`

    An op of unknown sizes stays.
    """

    REPLACES: ClassVar[frozenset[type[Operation]]] = frozenset(EXPANSIONS) - KEPT

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        expand = EXPANSIONS.get(type(op))
        if expand is None or any(DYNAMIC in shape(operand) for operand in op.operands):
            return
        new = Expansion(op, self.features)
        result = expand(new, op)
        if result is not None:
            new.replace(rewriter, result)


PATTERNS: list[type[Legalization]] = [Expand]
