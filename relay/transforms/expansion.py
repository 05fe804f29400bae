"""Builds the ops that replace one op. They get its location; a step that would change nothing adds no op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, elements, ints, scalar_attr, to_numpy
from relay.dialects.op import TensorOp, rank, shape, tensor
from relay.errors import Unsupported
from relay.interpreters.arithmetic import code_range
from relay.mapping import spilled
from relay.module import is_constant
from relay.target import Target
from relay.target.record import UNKNOWN
from relay.transforms.location import place

Op = TypeVar("Op", bound=TensorOp)


class Expansion:
    """Collects the ops that replace `source`. Each method adds ops and returns the resulting value; a step that would
    change nothing adds none. `replace` inserts them in place of the source."""

    def __init__(self, source: Operation, target: Target = UNKNOWN):
        """Start an empty replacement of `source`; `target` is the machine, for steps that depend on it."""
        self.source, self.target = source, target
        self.ops: list[Operation] = []

    def add(
        self, kind: type[Op], operands: Sequence[SSAValue], properties: Mapping[str, Attribute | None] | None = None
    ) -> Op:
        """Add an op with inferred result types. Raises Unsupported, with the source's location, if the op does not
        accept its operands' types."""
        try:
            op = kind.make(operands, properties, like=self.source)
        except VerifyException as error:
            raise Unsupported(place(self.source), f"{self.source.name} becomes ops that do not fit: {error}") from error
        self.ops.append(op)
        return op

    def value(
        self, kind: type[TensorOp], *operands: SSAValue, properties: Mapping[str, Attribute | None] | None = None
    ) -> SSAValue:
        """Add an op, and return its first result."""
        return self.add(kind, operands, properties).results[0]

    def constant(self, numbers: npt.ArrayLike, dtype: npt.DTypeLike) -> SSAValue:
        """Add a constant, scalar or not, and return its value."""
        return self.add(relay.ConstantOp, [], {"value": elements(spilled(np.asarray(numbers, dtype)))}).result

    def constant_like(self, numbers: npt.ArrayLike, like: SSAValue) -> SSAValue:
        """Add a constant with the element type of `like`."""
        return self.constant(numbers, dtype_of(tensor(like).element_type))

    def parameter(self, attr: Attribute, dtype: npt.DTypeLike) -> SSAValue:
        """Add the elements of an attribute, a scalar or one element per index of an axis, as a constant of the element
        type `dtype`."""
        return self.constant(to_numpy(attr), dtype)

    def cast(self, x: SSAValue, type: Attribute) -> SSAValue:
        """Cast x to `type`."""
        if tensor(x).element_type == type:
            return x
        return self.value(relay.CastOp, x, properties={"dtype": type})

    def subtract(self, x: SSAValue, numbers: npt.ArrayLike) -> SSAValue:
        """x - numbers."""
        return x if not np.any(numbers) else self.value(relay.SubtractOp, x, self.constant_like(numbers, x))

    def plus(self, x: SSAValue, numbers: npt.ArrayLike) -> SSAValue:
        """x + numbers."""
        return x if not np.any(numbers) else self.value(relay.AddOp, x, self.constant_like(numbers, x))

    def times(self, x: SSAValue, numbers: npt.ArrayLike) -> SSAValue:
        """x * numbers."""
        return self.value(relay.MultiplyOp, x, self.constant_like(numbers, x))

    def left_shift(self, x: SSAValue, numbers: npt.ArrayLike) -> SSAValue:
        """x << numbers, wrapping."""
        return x if not np.any(numbers) else self.value(relay.LeftShiftOp, x, self.constant_like(numbers, x))

    def clip(self, x: SSAValue, low: float, high: float) -> SSAValue:
        """min(max(x, low), high); left out where the bounds are those of x's own integer type or wider."""
        type = tensor(x).element_type
        if dtype_of(type).kind in "iu":
            least, most = limits(type)
            if low <= least and high >= most:
                return x
            low, high = min(max(low, least), most), min(max(high, least), most)
        bounds = {"a_min": scalar_attr(low, type), "a_max": scalar_attr(high, type)}
        return self.value(relay.ClipOp, x, properties=bounds)

    def lookup(self, x: SSAValue, table: npt.ArrayLike, dtype: npt.DTypeLike) -> SSAValue:
        """table[x - lowest code]."""
        return self.value(relay.LookupOp, x, self.constant(table, dtype))

    def total(self, parts: Iterable[SSAValue]) -> SSAValue:
        """The sum of one or more tensors, added in order."""
        return reduce(lambda a, b: self.value(relay.AddOp, a, b), parts)

    def reshape(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        """Reshape x to `dims`."""
        return x if shape(x) == tuple(dims) else self.value(relay.ReshapeOp, x, properties={"newshape": ints(dims)})

    def transpose(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Transpose x so that its axes are in this order."""
        if list(axes) == list(range(rank(x))):
            return x
        return self.value(relay.TransposeOp, x, properties={"axes": ints(axes)})

    def broadcast(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        """Repeat x along axes that are missing or have size 1, to the shape `dims`."""
        return x if shape(x) == tuple(dims) else self.value(relay.BroadcastToOp, x, properties={"shape": ints(dims)})

    def slice(
        self, x: SSAValue, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
    ) -> SSAValue:
        """`x[begin:end:strides]` along all axes; with a negative stride, -1 as an end means before the first
        element."""
        by = strides or [1] * len(begin)
        if not any(begin) and tuple(end) == shape(x) and {*by} <= {1}:
            return x
        return self.value(
            relay.StridedSliceOp, x, properties={"begin": ints(begin), "end": ints(end), "strides": ints(by)}
        )

    def sliced(self, x: SSAValue, axis: int, begin: int, end: int, stride: int = 1) -> SSAValue:
        """`x[begin:end:stride]` along an axis."""
        first, last, by = [0] * rank(x), list(shape(x)), [1] * rank(x)
        first[axis], last[axis], by[axis] = begin, end, stride
        return self.slice(x, first, last, by)

    def joined(self, parts: Sequence[SSAValue], axis: int) -> SSAValue:
        """Concatenate the parts along an axis."""
        if len(parts) == 1:
            return parts[0]
        return self.value(relay.ConcatenateOp, *parts, properties={"axis": IntegerAttr(axis, i64)})

    def replace(self, rewriter: PatternRewriter, *values: SSAValue) -> None:
        """Insert the ops in place of the source; `values` take over the uses and the names of the source's results."""
        rewriter.insert(self.ops, InsertPoint.before(self.source))
        rewriter.replace(self.source, [], values)


def inserted(
    before: Operation, kind: type[TensorOp], operands: Sequence[SSAValue], properties: Mapping[str, Attribute]
) -> SSAValue:
    """Insert an op before another one, and return its result."""
    op = kind.make(operands, properties, like=before)
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


def constant_before(before: Operation, numbers: npt.ArrayLike) -> SSAValue:
    """Insert a constant before an op, and return its value."""
    return inserted(before, relay.ConstantOp, [], {"value": elements(numbers)})


def known_numbers(value: SSAValue) -> Array | None:
    """The elements of a constant; None if the value is not constant, or if its elements are missing, because they were
    only named in the text from which the module was parsed (`dense_resource`)."""
    return to_numpy(value.owner.value) if is_constant(value.owner) else None


def limits(type: Attribute) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    return code_range(dtype_of(type))


def along(numbers: npt.ArrayLike, axis: int, x: SSAValue) -> npt.NDArray[np.generic]:
    """A scalar unchanged, a vector along `axis` of x reshaped so that it broadcasts against x; an array of another rank
    unchanged."""
    array = np.asarray(numbers)
    if array.ndim != 1:
        return array
    return array.reshape([-1] + [1] * (rank(x) - 1 - axis % rank(x)))
