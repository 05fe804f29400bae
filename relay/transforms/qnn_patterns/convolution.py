"""Products that accumulate: only the zero points are left of the quantisation."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from relay.dialects import qnn, relay
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization


class Conv2d(Legalization):
    """qnn.conv2d %x, %w  =>  relay.nn.conv2d %x, %w {zero points that are not 0}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: qnn.Conv2dOp, rewriter: PatternRewriter) -> None:
        new = Expansion(op)
        new.replace(rewriter, new.value(relay.Conv2dOp, op.data, op.kernel, properties=kept(op)))


class Dense(Legalization):
    """qnn.dense %x, %w  =>  relay.nn.dense %x, %w {zero points that are not 0}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: qnn.DenseOp, rewriter: PatternRewriter) -> None:
        new = Expansion(op)
        new.replace(rewriter, new.value(relay.DenseOp, op.data, op.kernel, properties=kept(op)))


def kept(op: Operation) -> dict[str, Attribute | None]:
    """The properties without scales and without zero points of 0."""
    return {
        name: attr
        for name, attr in op.properties.items()
        if not name.endswith("_scale")
        and not (name.endswith("_zero_point") and isinstance(attr, IntegerAttr) and attr.value.data == 0)
    }


PATTERNS: list[type[Legalization]] = [Conv2d, Dense]
