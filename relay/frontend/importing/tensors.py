"""`TensorBuilder`: builds tensor ops from Python numbers and lists, and evaluates values that are known at import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr, f32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, ints, scalar_attr, to_numpy
from relay.dialects.element_types import converted, is_float
from relay.dialects.op import DYNAMIC, TensorOp
from relay.dialects.op import tensor as type_of
from relay.dialects.plain import to_attribute
from relay.frontend.importing.builder import Builder
from relay.interpreters import evaluate

MOST_KNOWN = 1 << 24
"""The maximum number of elements of a result that is computed at import."""
Property = Attribute | int | float | bool | str | Sequence[int] | None


class TensorBuilder(Builder):
    """A `Builder` with methods for tensor ops, which evaluates values that are known at import."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._known: dict[SSAValue, Array | None] = {}

    def known(self, value: SSAValue) -> Array | None:
        """The elements of a value that is computed only from constants and shapes; None for any other."""
        pending = [value]
        while pending:
            at = pending[-1]
            op = at.owner
            if at in self._known:
                pending.pop()
            elif isinstance(op, relay.ConstantOp):
                self._known[at] = to_numpy(op.value)
            elif not isinstance(op, TensorOp) or not _small(op):
                self._known[at] = None
            elif isinstance(op, relay.ShapeOfOp) and DYNAMIC not in self.shape(op.input):
                self._known[at] = np.asarray(self.shape(op.input), dtype_of(op.dtype))
            elif missing := [each for each in op.operands if each not in self._known]:
                pending += missing
            else:
                given = [array for each in op.operands if (array := self._known[each]) is not None]
                found = evaluate(op, given) if len(given) == len(op.operands) else [None] * len(op.results)
                for result, array in zip(op.results, found, strict=True):
                    self._known[result] = None if array is None else np.asarray(array)
        return self._known[value]

    def call(self, op: type[TensorOp], *operands: SSAValue, **properties: Property) -> SSAValue:
        """Append an op with one result, and return the result. Integers and lists become 64-bit integer attributes,
        floats 32-bit float attributes."""
        return self.several(op, *operands, **properties)[0]

    def several(self, op: type[TensorOp], *operands: SSAValue, **properties: Property) -> Sequence[SSAValue]:
        """Append an op with several results, and return them."""
        return self.emit(op, operands, {name: _attribute(each) for name, each in properties.items()}).results

    def like(self, value: float | int, other: SSAValue) -> SSAValue:
        """A scalar constant of another value's element type."""
        dtype = dtype_of(self.element(other))
        return self.unnamed(converted(np.asarray(value), dtype) if dtype.isbuiltin == 2 else np.asarray(value, dtype))

    def element(self, value: SSAValue) -> Attribute:
        return type_of(value).element_type

    def dtype(self, value: SSAValue) -> np.dtype[np.generic]:
        return dtype_of(self.element(value))

    def is_float(self, value: SSAValue) -> bool:
        return is_float(self.element(value))

    def rank(self, value: SSAValue) -> int:
        return len(self.shape(value))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value cast to another element type; the value itself if it has that type."""
        return value if self.element(value) == element else self.call(relay.CastOp, value, dtype=element)

    def real(self, value: SSAValue) -> SSAValue:
        """The value as floats: integers are cast to float32."""
        return value if self.is_float(value) else self.cast(value, f32)

    def add(self, value: SSAValue, bias: SSAValue | None) -> SSAValue:
        """The sum; the value itself if `bias` is None."""
        return value if bias is None else self.call(relay.AddOp, value, bias)

    def static(self, value: SSAValue, axes: Iterable[int] | None = None) -> list[int]:
        """The sizes of a tensor, or those of some axes. Raises Unsupported if one is unknown."""
        dims = self.shape(value)
        found = [*dims] if axes is None else [dims[axis] for axis in axes]
        if DYNAMIC in found:
            raise self.at.unsupported(f"takes {value.type}, of unknown size", "give its shapes")
        return found

    def rows(self, value: SSAValue, rest: int = 1) -> SSAValue:
        """The value reshaped to a matrix: the last `rest` axes, whose sizes must be known, are merged into its columns,
        the others into its rows."""
        count = self.rank(value) - rest
        outer, columns = self.shape(value)[:count], self.static(value, range(count, count + rest))
        return self.reshape(value, [DYNAMIC if DYNAMIC in outer else prod(outer), prod(columns)])

    def clip(self, value: SSAValue, low: float, high: float) -> SSAValue:
        element = self.element(value)
        return self.call(relay.ClipOp, value, a_min=scalar_attr(low, element), a_max=scalar_attr(high, element))

    def transpose(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        if tuple(axes) == tuple(range(len(axes))):
            return value
        return self.call(relay.TransposeOp, value, axes=tuple(axes))

    def reordered(self, value: SSAValue, order: Callable[[Array], Array]) -> SSAValue:
        """The value transposed as `order`, a function such as numpy's moveaxis, transposes an array."""
        rank = self.rank(value)
        array = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), [1] * rank, range(rank))
        return self.transpose(value, order(array).strides)

    def expand_dims(self, value: SSAValue, axes: Iterable[int]) -> SSAValue:
        """The value with axes of size 1 inserted at these positions of the result."""
        for axis in sorted(axes):
            value = self.call(relay.ExpandDimsOp, value, axis=axis)
        return value

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value reshaped; one unknown size is inferred from the others."""
        if shape.count(DYNAMIC) > 1 or {-1, DYNAMIC} <= {*shape}:
            raise self.at.unsupported(f"its result has several sizes that follow from {value.type}", "give its shapes")
        return super().reshape(value, [-1 if size == DYNAMIC else size for size in shape])

    def shaped(self, value: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """The elements in another shape, in which one size may be -1. Raises Malformed if the number of elements
        differs."""
        dims, wanted = self.shape(value), list(sizes)
        right = wanted.count(-1) <= 1 and min(wanted, default=0) >= -1
        if right and DYNAMIC not in dims:
            if -1 in wanted:
                rest = prod(size for size in wanted if size != -1)
                wanted[wanted.index(-1)] = prod(dims) // rest if rest else 0
            right = prod(wanted) == prod(dims)
        if not right:
            raise self.at.malformed(f"gives {value.type} the shape {list(sizes)}")
        return self.reshape(value, wanted)

    def broadcast(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        if self.shape(value) == tuple(shape):
            return value
        return self.call(relay.BroadcastToOp, value, shape=tuple(shape))

    def sizes(self, value: SSAValue) -> SSAValue:
        """The shape of a value as 64-bit integers: a constant if it is known."""
        if DYNAMIC in self.shape(value):
            return self.call(relay.ShapeOfOp, value, dtype=i64)
        return self.unnamed(np.asarray(self.shape(value), np.int64))

    def slice(
        self,
        value: SSAValue,
        bounds: Mapping[int, tuple[int, int]] | Mapping[int, tuple[int, int, int]],
    ) -> SSAValue:
        """The elements between two bounds, optionally with a step, along these axes."""
        dims = self.shape(value)
        if DYNAMIC in dims and bounds:
            open_rows = [(axis, *bound, 1)[:4] for axis, bound in bounds.items()]
            # -1 stands for the position before the first element, not for the last element
            open_rows = [(a, b, -dims[a] - 1 if step < 0 and end < 0 else end, step) for a, b, end, step in open_rows]
            if any(min(row) < DYNAMIC // 2 for row in open_rows):
                raise self.at.unsupported(f"slices an axis of unknown size, of {value.type}", "give its shapes")
            axes, *numbers = (self.unnamed(np.asarray(each, np.int64)) for each in zip(*open_rows, strict=True))
            return self.call(relay.DynStridedSliceOp, value, *numbers, axes)
        rows = [(*bounds.get(axis, (0, size)), 1)[:3] for axis, size in enumerate(dims)]
        if rows == [(0, size, 1) for size in dims]:
            return value
        begin, end, strides = (tuple(each) for each in zip(*rows, strict=True))
        return self.call(relay.StridedSliceOp, value, begin=begin, end=end, strides=strides)

    def parts(self, value: SSAValue, sizes: Sequence[int], axis: int) -> list[SSAValue]:
        """Consecutive slices of these sizes along an axis, which they must cover."""
        (size,) = self.static(value, [axis])
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise self.at.malformed(f"splits {size} elements in parts of {list(sizes)}")
        bounds = [0, *accumulate(sizes)]
        return [self.slice(value, {axis: pair}) for pair in zip(bounds, bounds[1:], strict=False)]

    def concatenate(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        return values[0] if len(values) == 1 else self.call(relay.ConcatenateOp, *values, axis=axis)

    def stack(self, values: Iterable[SSAValue], axis: int) -> SSAValue:
        """Values of one shape stacked along a new axis."""
        return self.concatenate([self.call(relay.ExpandDimsOp, each, axis=axis) for each in values], axis)

    def row(self, value: SSAValue, index: int, axis: int) -> SSAValue:
        """The slice at one index of an axis, which is removed."""
        return self.call(relay.SqueezeOp, self.slice(value, {axis: (index, index + 1)}), axis=[axis])

    def take(self, value: SSAValue, places: Array, axis: int) -> SSAValue:
        """The elements at constant indices along an axis."""
        return self.call(relay.TakeOp, value, self.unnamed(places), axis=axis)

    def gathered(self, value: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """The elements at indices along an axis, as numpy's take_along_axis; along each other axis, `indices` may be
        shorter than the value, of which only the first elements are then used."""
        dims, wanted = self.shape(value), self.shape(indices)
        part = self.slice(value, {a: (0, size) for a, size in enumerate(wanted) if a != axis and size != dims[a]})
        return self.call(relay.GatherOp, part, self.from_start(indices, dims[axis]), axis=axis)

    def taken(self, value: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """The slices at these indices along an axis; negative indices count from the end of the axis."""
        known = self.known(indices)
        mode = "clip" if known is not None and not (known < 0).any() else "wrap"
        return self.call(relay.TakeOp, value, indices, axis=axis, mode=mode)

    def coordinates(self, indices: SSAValue, axis: int) -> SSAValue:
        """Return a tensor with the shape of `indices` and a last axis that has the coordinates of one element: the
        position of an index in `indices`, with the index itself in place of the coordinate along `axis`."""
        shape = self.shape(indices)
        grid = np.indices(shape).astype(np.int64)
        columns = [indices if a == axis else self.unnamed(grid[a]) for a in range(len(shape))]
        return self.concatenate([self.reshape(each, [*shape, 1]) for each in columns], len(shape))

    def from_start(self, indices: SSAValue, size: SSAValue | int) -> SSAValue:
        """The indices, with `size` added to negative ones, which count from the end of an axis of that size."""
        known = self.known(indices)
        if known is not None and not (known < 0).any():
            return indices
        if size == DYNAMIC:
            raise self.at.unsupported("counts from the end of an axis of unknown size", "give its shapes")
        limit = self.like(size, indices) if isinstance(size, int) else self.cast(size, self.element(indices))
        below = self.call(relay.LessOp, indices, self.like(0, indices))
        return self.call(relay.WhereOp, below, self.call(relay.AddOp, indices, limit), indices)


def _small(op: Operation) -> bool:
    """Whether the results of an op are small enough to be computed at import."""
    dims = [type_of(result).get_shape() for result in op.results]
    return all(DYNAMIC not in each and prod(each) <= MOST_KNOWN for each in dims)


def _attribute(value: Property) -> Attribute | None:
    if value is None or isinstance(value, Attribute):
        return value
    if isinstance(value, float):
        return FloatAttr(value, f32)
    if isinstance(value, str):
        return StringAttr(value)
    return to_attribute(value, "property") if isinstance(value, int) else ints(value)
