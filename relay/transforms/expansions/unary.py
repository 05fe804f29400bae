"""Expansions of functions of one tensor to comparisons, constants or other functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import dtype_of
from relay.dialects.op import TensorOp, shape
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions


def everywhere(number: int) -> Callable[[Expansion, relay.UnaryOp], Sequence[SSAValue]]:
    """Return an expansion that fills a tensor of the operand's type and shape with `number`."""
    return lambda new, op: [new.broadcast(new.constant_like(number, op.input), shape(op.input))]


def other(kind: type[TensorOp]) -> Callable[[Expansion, relay.UnaryOp], Sequence[SSAValue]]:
    """Return an expansion that applies the op class `kind` to the operand."""
    return lambda new, op: [new.value(kind, op.input)]


def magnitude(kind: type[relay.CompareOp]) -> Callable[[Expansion, relay.PredicateOp], Sequence[SSAValue]]:
    """Return an expansion that compares `|x|` with infinity by the op class `kind`."""

    def compare(new: Expansion, op: relay.PredicateOp) -> Sequence[SSAValue]:
        return [new.value(kind, new.value(relay.AbsOp, op.input), new.constant_like(np.inf, op.input))]

    return compare


def isnan(new: Expansion, op: relay.IsnanOp) -> Sequence[SSAValue]:
    """`x != x`: only NaN differs from itself."""
    return [new.value(relay.NotEqualOp, op.input, op.input)]


def shape_of(new: Expansion, op: relay.ShapeOfOp) -> Sequence[SSAValue]:
    return [new.constant(shape(op.input), dtype_of(op.dtype))]


def ndarray_size(new: Expansion, op: relay.NdarraySizeOp) -> Sequence[SSAValue]:
    return [new.constant(prod(shape(op.input)), dtype_of(op.dtype))]


EXPANSIONS: Expansions = {
    relay.FastErfOp: other(relay.ErfOp),
    relay.FastExpOp: other(relay.ExpOp),
    relay.FastTanhOp: other(relay.TanhOp),
    relay.ZerosLikeOp: everywhere(0),
    relay.OnesLikeOp: everywhere(1),
    relay.IsnanOp: isnan,
    relay.IsinfOp: magnitude(relay.EqualOp),
    relay.IsfiniteOp: magnitude(relay.LessOp),
    relay.ShapeOfOp: shape_of,
    relay.NdarraySizeOp: ndarray_size,
}
