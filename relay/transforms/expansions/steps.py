"""What a row of `EXPANSIONS` is, and the steps that rows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.layout import Layout, steps
from relay.dialects.op import rank, shape
from relay.transforms.expansion import Expansion

Row = Callable[[Expansion, Any], SSAValue | Sequence[SSAValue] | None]
"""Adds the ops that an op is written as, and returns the values of its results (or the one value); None leaves the op
as it is."""
Expansions = Mapping[type[Operation], Row]


def transpose(new: Expansion, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """x with its axes in this order."""
    if list(axes) == list(range(rank(x))):
        return x
    return new.value(relay.TransposeOp, x, properties={"axes": ints(axes)})


def relaid(new: Expansion, x: SSAValue, source: Layout, target: Layout) -> SSAValue:
    """A tensor of one layout in another of the same letters."""
    for kind, numbers in steps(shape(x), source, target):
        x = new.reshape(x, numbers) if kind == "reshape" else transpose(new, x, numbers)
    return x


def sliced(new: Expansion, x: SSAValue, axis: int, begin: int, end: int, stride: int = 1) -> SSAValue:
    """`x[begin:end:stride]` along an axis; backwards, `end` may be -1, which is before the first element."""
    dims = list(shape(x))
    if (begin, end, stride) == (0, dims[axis], 1):
        return x
    first, last, by = [0] * len(dims), dims, [1] * len(dims)
    first[axis], last[axis], by[axis] = begin, end, stride
    return new.value(relay.StridedSliceOp, x, properties={"begin": ints(first), "end": ints(last), "strides": ints(by)})


def cropped(new: Expansion, x: SSAValue, dims: Sequence[int], begin: Sequence[int] | None = None) -> SSAValue:
    """So many elements of each axis, from the first on, or from `begin`."""
    if shape(x) == tuple(dims):
        return x
    first = [0] * len(dims) if begin is None else begin
    end = [start + size for start, size in zip(first, dims, strict=True)]
    bounds = {"begin": ints(first), "end": ints(end), "strides": ints([1] * len(dims))}
    return new.value(relay.StridedSliceOp, x, properties=bounds)


def reduced(new: Expansion, kind: type[relay.ReduceOp], x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """A reduction whose axes stay as ones."""
    return new.value(kind, x, properties={"axis": ints(axes), "keepdims": IntegerAttr.from_bool(True)})
