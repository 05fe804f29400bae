"""Moves reshapes after ops that are computed from products elementwise or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from relay.dialects import qnn, relay
from relay.dialects.attributes import ints
from relay.dialects.op import DYNAMIC, TensorOp, axis_of, rank, shape, tensor
from relay.transforms.expansion import Expansion, known_numbers

PRODUCTS = (relay.MatmulOp, relay.DenseOp, relay.BatchMatmulOp, qnn.DenseOp, qnn.BatchMatmulOp)
ROWS = (relay.LayerNormOp, relay.RmsNormOp, relay.SoftmaxOp)


class LaterReshape(RewritePattern):
    """op (relay.reshape %x), %v  =>  relay.reshape (op %x, (relay.reshape %v)), of elementwise ops, layer
    normalizations and softmaxes, where the reshape splits axes before the last one, and %x is computed from a product.

    Then the op can join the product's kernel. An operand that broadcasts along only some of the split axes is repeated
    along them, unless it would be as large as the result.
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
    """Whether the reshape splits axes before the last one, and keeps the last one."""
    before, after = shape(op.input), shape(op.result)
    return DYNAMIC not in (*before, *after) and 1 < len(before) < len(after) and before[-1] == after[-1]


def merged(new: Expansion, value: SSAValue, reshape: relay.ReshapeOp) -> SSAValue | None:
    """Reshape an operand so that it broadcasts against the tensor before `reshape`; None if no reshape does that."""
    before, whole, dims = shape(reshape.input), shape(reshape.result), shape(value)
    if value is reshape.result:
        return reshape.input
    if dims == whole:
        return new.reshape(value, before)
    if DYNAMIC in dims:
        return None
    if prod(dims) == (dims[-1] if dims else 1):
        return in_one_row(new, value) if len(dims) > 1 else value
    if (factors := common_factors(before, whole)) is None:
        return None
    own = [1] * (len(whole) - len(dims)) + list(dims)
    here = [size if own[later] > 1 else 1 for size, _, later in factors]
    varied = {first for (_, first, _), size in zip(factors, here, strict=True) if size > 1}
    repeated = [size if first in varied else 1 for size, first, _ in factors]
    if repeated != here and prod(repeated) >= prod(whole) and tensor(value).element_type != i1:
        return None  # as large as what it is for
    found = new.reshape(value, here)
    if repeated != here:
        found = new.value(relay.BroadcastToOp, found, properties={"shape": ints(repeated)})
    sizes = [size if axis in varied else 1 for axis, size in enumerate(before)]
    return new.reshape(found, sizes)


def in_one_row(new: Expansion, value: SSAValue) -> SSAValue:
    """Return a value of shape [1, ..., 1, n] as a vector of n elements. If an elementwise op computes the value from
    constants and scalars, as in a comparison of keys with a position, the op is built again on vectors; any other value
    is reshaped."""
    op, row = value.owner, shape(value)[-1:]
    if not isinstance(op, TensorOp) or not op.ELEMENTWISE or len(op.results) != 1:
        return new.reshape(value, row)
    given = list[SSAValue]()
    for each in op.operands:
        if shape(each) == shape(value) and (numbers := known_numbers(each)) is not None:
            given.append(new.constant(numbers.reshape(row), numbers.dtype))
        elif prod(shape(each)) == 1:
            given.append(new.reshape(each, (1,)) if rank(each) > 1 else each)
        else:
            return new.reshape(value, row)
    return new.value(type(op), *given, properties=op.properties)


def common_factors(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """The sizes of the fewest axes from which both shapes result by merging neighbours, each with the index of the axis
    of `before` and of `after` that it is a part of: (size, axis before, axis after). None if there are no such axes, or
    a size is 0 or unknown."""
    if min((*before, *after), default=1) < 1:
        return None
    found: list[tuple[int, int, int]] = []
    left, right = [*before], [*after]
    first = later = 0
    while first < len(left) and later < len(right):
        size = min(left[first], right[later])
        if left[first] % size or right[later] % size:
            return None
        found.append((size, first, later))
        left[first], right[later] = left[first] // size, right[later] // size
        first, later = first + (left[first] == 1), later + (right[later] == 1)
    return found


def computed_from_product(value: SSAValue) -> bool:
    """Whether the value is the result of a matrix product, or is computed from one by elementwise ops, layer
    normalizations and softmaxes only, through values of its own shape."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if isinstance(op := value.owner, PRODUCTS):
            return True
        if value in seen or not isinstance(op, TensorOp) or isinstance(op, relay.ConstantOp):
            continue
        seen.add(value)
        if op.ELEMENTWISE or isinstance(op, ROWS):
            waiting += [v for v in op.operands if shape(v) == shape(value)]
    return False
