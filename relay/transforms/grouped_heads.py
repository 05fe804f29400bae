"""Heads that share keys and values, which exporters repeat for each of them: products without the copies."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import DYNAMIC, rank, shape
from relay.transforms.expansion import Expansion


class GroupedHeads(RewritePattern):
    """relay.nn.batch_matmul %q, (each matrix of %k, n times)  =>  reshape (relay.nn.batch_matmul (reshape %q), %k)

    The rows of n matrices of %q become those of one.
    The matrices may be exchanged in their last two axes (`relay.transpose`) after they were repeated.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.BatchMatmulOp, rewriter: PatternRewriter) -> None:
        a, dims = op.tensor_a, shape(op.tensor_a)
        repeated, turned = before_exchange(op.tensor_b)
        found = before_repeating(repeated)
        if found is None or op.transpose_a.value.data or DYNAMIC in (*dims, *shape(op.tensor_b)):
            return
        matrices, count = found
        heads, matrix = prod(dims[:-2]), shape(repeated)[-2:]
        if dims[:-2] != shape(repeated)[:-2]:
            return
        new = Expansion(op)
        rows = new.reshape(a, [heads // count, count * dims[-2], dims[-1]])
        each = new.reshape(matrices, [heads // count, *matrix])
        properties = {**op.properties, "transpose_b": IntegerAttr.from_bool(bool(op.transpose_b.value.data) != turned)}
        product = new.value(relay.BatchMatmulOp, rows, each, properties=properties)
        new.replace(rewriter, new.reshape(product, shape(op.result)))


def before_exchange(x: SSAValue) -> tuple[SSAValue, bool]:
    """The matrices before their last two axes were exchanged, and whether they were."""
    op, last = x.owner, rank(x) - 1
    if isinstance(op, relay.TransposeOp) and int_values(op.axes) == (*range(last - 1), last, last - 1):
        return op.input, True
    return x, False


def before_repeating(x: SSAValue) -> tuple[SSAValue, int] | None:
    """A stack of matrices before each was repeated n times in a row, and n; None where `x` is no such repetition."""
    merge = x.owner
    copies = merge.input.owner if isinstance(merge, relay.ReshapeOp) else None
    if not isinstance(merge, relay.ReshapeOp) or not isinstance(copies, relay.BroadcastToOp):
        return None
    if shape(merge.input)[-2:] != shape(x)[-2:]:
        return None
    before, after = shape(copies.input), shape(copies.result)
    before = (1,) * (len(after) - len(before)) + before
    axes = [axis for axis, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    innermost = axes and prod(after[axes[0] + 1 : -2]) == 1
    return (copies.input, after[axes[0]]) if len(axes) == 1 and axes[0] < len(after) - 2 and innermost else None
