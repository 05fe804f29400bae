"""Reshapes behind what is computed from products, element by element or row by row."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from relay.dialects import qnn, relay
from relay.dialects.op import DYNAMIC, TensorOp, axis_of, rank, shape
from relay.transforms.expansion import Expansion

PRODUCTS = (relay.MatmulOp, relay.DenseOp, relay.BatchMatmulOp, qnn.DenseOp, qnn.BatchMatmulOp)
ROWS = (relay.LayerNormOp, relay.RmsNormOp, relay.SoftmaxOp)


class LaterReshape(RewritePattern):
    """op (relay.reshape %x), %v  =>  relay.reshape (op %x, (relay.reshape %v)), of elementwise ops, layer
    normalizations and softmaxes, where the reshape splits axes before the last one, and %x is computed from a product.

    The op can join the product's kernel then.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, TensorOp) or not (op.ELEMENTWISE or isinstance(op, ROWS)) or len(op.results) != 1:
            return
        reshape = next((v.owner for v in op.operands if isinstance(v.owner, relay.ReshapeOp)), None)
        if reshape is None or not splits(reshape) or shape(reshape.result) != shape(op.results[0]):
            return
        if not computed_from_product(reshape.input):
            return
        properties: dict[str, Attribute | None] = dict(op.properties)
        if isinstance(axis := op.properties.get("axis"), IntegerAttr):
            last = rank(reshape.result) - 1
            if axis_of(axis.value.data, last + 1, op.name) != last:
                return
            properties["axis"] = IntegerAttr(rank(reshape.input) - 1, i64)
        new = Expansion(op)
        operands = [merged(new, value, reshape) for value in op.operands]
        found = [value for value in operands if value is not None]
        if len(found) < len(operands):
            for each in reversed(new.ops):
                each.drop_all_references()
            return
        result = new.value(type(op), *found, properties=properties)
        new.replace(rewriter, new.reshape(result, shape(op.results[0])))
        if not reshape.result.uses:
            rewriter.erase(reshape)


def splits(op: relay.ReshapeOp) -> bool:
    """Whether the result has more axes before the last one, which stays."""
    before, after = shape(op.input), shape(op.result)
    return DYNAMIC not in (*before, *after) and 1 < len(before) < len(after) and before[-1] == after[-1]


def merged(new: Expansion, value: SSAValue, reshape: relay.ReshapeOp) -> SSAValue | None:
    """An operand for the shape before the reshape; None if it does not broadcast so."""
    whole, dims = shape(reshape.result), shape(value)
    if value is reshape.result:
        return reshape.input
    if dims == whole:
        return new.reshape(value, shape(reshape.input))
    if DYNAMIC in dims or prod(dims) != (dims[-1] if dims else 1):
        return None
    return new.reshape(value, dims[-1:]) if len(dims) > 1 else value


def computed_from_product(value: SSAValue) -> bool:
    """Whether only elementwise ops and those on rows lead from a product to the value."""
    while isinstance(op := value.owner, TensorOp) and not isinstance(op, PRODUCTS):
        if not (op.ELEMENTWISE or isinstance(op, ROWS)) or isinstance(op, relay.ConstantOp):
            return False
        inner = [v for v in op.operands if shape(v) == shape(value) and not isinstance(v.owner, relay.ConstantOp)]
        if not inner:
            return False
        value = inner[0]
    return isinstance(value.owner, PRODUCTS)
