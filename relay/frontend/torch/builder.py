"""`Importer`: builds the ops of a program, with PyTorch's rules of element types and sizes.

The functions of the table get it as their first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, Block, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import dtype_of, element_type
from relay.dialects.element_types import is_float
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.tensors import TensorBuilder
from relay.frontend.torch.node import Node, Size, Subgraph

Call = Callable[[Node, Subgraph, Block, Sequence[SSAValue]], list[SSAValue]]
"""Builds a subgraph of a node at the end of a block, with these values as its inputs; returns its outputs."""
F32 = element_type(np.float32)


def category(element: Attribute) -> int:
    """PyTorch's category of an element type: 0 for booleans, 1 for integers, 2 for floats."""
    return 2 if is_float(element) else int(element != element_type(np.bool_))


class Importer(TensorBuilder):
    """The block under construction, with the methods that operator functions use."""

    subgraph: Call

    def promoted(self, *operands: SSAValue | float) -> Attribute:
        """The element type in which PyTorch computes: that of the tensors, unless one of rank 0, or a Python number,
        has a higher category (boolean, integer, float)."""
        found: Attribute | None = None
        tensors = [each for each in operands if isinstance(each, SSAValue)]
        for group in ([v for v in tensors if self.rank(v)], [v for v in tensors if not self.rank(v)]):
            given: Attribute | None = None
            for value in group:
                given = self.element(value) if given is None else _wider(given, self.element(value))
            if given is not None and (found is None or category(given) > category(found)):
                found = given if found is None or category(found) == 1 else _wider(found, given)
        for number in operands:
            if isinstance(number, SSAValue):
                continue
            own = element_type(
                np.bool_ if isinstance(number, bool) else np.int64 if isinstance(number, int) else np.float32
            )
            if found is None or category(own) > category(found):
                found = own
        assert found is not None
        return found

    def operand(self, given: SSAValue | float, element: Attribute) -> SSAValue:
        """A tensor cast to this element type, or a number as a constant of it."""
        if isinstance(given, SSAValue):
            return self.cast(given, element)
        anything = Block(arg_types=[TensorType(element, [])]).args[0]
        return self.like(given, anything)

    def typed(self, value: SSAValue, dtype: np.dtype[Any] | None) -> SSAValue:
        """The value cast to a dtype; the value itself if that is None."""
        return value if dtype is None else self.cast(value, element_type(dtype))

    def vector(self, sizes: Sequence[Size]) -> SSAValue:
        """Sizes as a vector of 64-bit integers."""
        if numbers := [each for each in sizes if isinstance(each, int)]:
            if len(numbers) == len(sizes):
                return self.unnamed(np.asarray(numbers, np.int64))
        parts: list[SSAValue] = []
        for each in sizes:
            value = self.unnamed(np.asarray(each, np.int64)) if isinstance(each, int) else self.cast(each, i64)
            parts.append(self.reshape(value, [1]))
        return self.concatenate(parts, 0) if parts else self.unnamed(np.zeros(0, np.int64))

    def size(self, value: SSAValue, axis: int) -> Size:
        """A size of a tensor: an int if it is known, else a value."""
        known = self.shape(value)[axis]
        if known != DYNAMIC:
            return known
        return self.reshape(self.slice(self.sizes(value), {0: (axis, axis + 1)}), [])

    def lengths(self, value: SSAValue) -> list[Size]:
        """All sizes of a tensor."""
        return [self.size(value, axis) for axis in range(self.rank(value))]

    def viewed(self, value: SSAValue, sizes: Sequence[Size]) -> SSAValue:
        """The elements in another shape; one size may be -1."""
        dims = self.shape(value)
        numbers = [each for each in sizes if isinstance(each, int)]
        if len(numbers) == len(sizes):
            if DYNAMIC in dims and {-1, 0} <= {*numbers}:
                raise self.at.unsupported(f"the shape {numbers} does not follow from {value.type}", "give its shapes")
            return self.shaped(value, numbers)
        unknown = [axis for axis, each in enumerate(sizes) if not isinstance(each, int)]
        if len(unknown) == 1 and -1 not in numbers and 0 not in numbers:
            return self.reshape(value, [each if isinstance(each, int) else -1 for each in sizes])
        return self.call(relay.DynReshapeOp, value, self.vector(sizes))

    def expanded(self, value: SSAValue, sizes: Sequence[Size]) -> SSAValue:
        """The value with axes of size 1 expanded to these sizes; -1 keeps an axis."""
        dims = self.shape(value)
        kept = [1] * (len(sizes) - len(dims)) + list(dims)
        wanted = [own if each == -1 else each for own, each in zip(kept, sizes, strict=True)]
        if DYNAMIC not in wanted and DYNAMIC not in dims and all(isinstance(each, int) for each in wanted):
            return self.broadcast(value, [each for each in wanted if isinstance(each, int)])
        given = [1 if own == each else each for own, each in zip(kept, wanted, strict=True)]
        return self.call(relay.DynBroadcastToOp, value, self.vector(given))

    def filled(self, number: SSAValue, sizes: Sequence[Size]) -> SSAValue:
        """A tensor of these sizes filled with one scalar."""
        known = [each for each in sizes if isinstance(each, int)]
        if len(known) == len(sizes):
            return self.call(relay.FullOp, number, shape=known)
        return self.call(relay.DynFullOp, number, self.vector(sizes))


def _wider(a: Attribute, b: Attribute) -> Attribute:
    """The type to which the types of two tensors are promoted."""
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if a == b or category(a) == 0:
        return a
    left, right = dtype_of(a), dtype_of(b)
    if category(a) == 2:
        if left.itemsize == right.itemsize:
            return F32
        return a if left.itemsize > right.itemsize else b
    return element_type(np.result_type(left, right))
