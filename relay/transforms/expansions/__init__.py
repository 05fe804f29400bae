"""Expansions of `relay` ops to simpler ones, one file for each kind; `EXPANSIONS` lists them all. `legalize` applies
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.transforms.expansion import Expansion
from relay.transforms.expansions import (
    activation,
    attention,
    convolution,
    creation,
    dynamic,
    indexing,
    matmul,
    norm,
    pooling,
    rearrange,
    reduce,
    resizing,
    transform,
    unary,
    vision,
)
from relay.transforms.expansions.steps import Expansions
from relay.transforms.legalization import ExpandRows, Legalization, is_static

EXPANSIONS: Expansions = {
    **activation.EXPANSIONS,
    **attention.EXPANSIONS,
    **convolution.EXPANSIONS,
    **creation.EXPANSIONS,
    **dynamic.EXPANSIONS,
    **indexing.EXPANSIONS,
    **matmul.EXPANSIONS,
    **norm.EXPANSIONS,
    **pooling.EXPANSIONS,
    **rearrange.EXPANSIONS,
    **reduce.EXPANSIONS,
    **resizing.EXPANSIONS,
    **transform.EXPANSIONS,
    **unary.EXPANSIONS,
    **vision.EXPANSIONS,
}
"""A mapping from op class to the function that expands the op."""
KEPT: frozenset[type[Operation]] = frozenset(
    [
        relay.BatchMatmulOp,
        relay.Resize2dOp,
        relay.SoftmaxOp,
        relay.WeightOnlyDenseOp,
        *norm.KEPT,
        *pooling.KEPT,
    ]
)
"""Ops that some expansions leave unchanged."""


@dataclass(frozen=True)
class Expand(ExpandRows):
    """relay.nn.conv3d, ... %x  =>  the ops of its row in `EXPANSIONS`

    An op with unknown sizes is left unchanged, unless it is a normalization.
    """

    ROWS: ClassVar[Expansions] = EXPANSIONS
    REPLACES: ClassVar[frozenset[type[Operation]]] = frozenset(EXPANSIONS) - KEPT

    def choice(self) -> str:
        made = "stays" if self.target.multiplies_rows_by_rows else "becomes [n, k, m]"
        return f"the second matrix of relay.nn.batch_matmul of codes, [n, m, k], {made}"

    def replaces(self, op: Operation) -> bool:
        if type(op) not in KEPT or type(op) not in self.ROWS:
            return super().replaces(op)
        new = Expansion(op, self.target)
        found = self.expanded(new, op)
        for each in reversed(new.ops):
            each.drop_all_references()
        return found is not None

    def expanded(self, new: Expansion, op: Operation) -> SSAValue | Sequence[SSAValue] | None:
        return self.ROWS[type(op)](new, op) if type(op) in norm.EXPANSIONS or is_static(op) else None


@dataclass(frozen=True)
class ExpandNorms(Expand):
    """relay.nn.batch_norm, ... %x  =>  the ops of its row in `norm.EXPANSIONS`"""

    ROWS: ClassVar[Expansions] = norm.EXPANSIONS
    REPLACES: ClassVar[frozenset[type[Operation]]] = frozenset(norm.EXPANSIONS)


PATTERNS: list[type[Legalization]] = [Expand]
