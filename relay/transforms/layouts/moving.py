"""Converts values to other layouts by reshapes and transposes, at compile time for constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, elements, ints, to_numpy
from relay.dialects.layout import Layout, Step, steps
from relay.dialects.op import DYNAMIC, TensorOp, rank, shape
from relay.errors import Unsupported
from relay.module import is_constant
from relay.transforms.location import place


def moved(array: Array, changes: Sequence[Step]) -> Array:
    """An array after these reshapes and transposes."""
    for kind, numbers in changes:
        array = array.reshape(numbers) if kind == "reshape" else array.transpose(numbers)
    return np.ascontiguousarray(array)


def spread(dims: Sequence[int], axis: int, width: int) -> tuple[int, ...]:
    """The shape `dims` extended to `width` axes by axes of size 1: a vector's axis becomes axis `axis`, other shapes
    get the new axes in front."""
    if len(dims) == 1 and axis >= 0:
        return tuple(dims[0] if i == axis else 1 for i in range(width))
    return (*[1] * (width - len(dims)), *dims)


def narrowed(dims: Sequence[int]) -> tuple[int, ...]:
    """A shape without its leading axes of size 1; at least one axis stays."""
    first = next((i for i, size in enumerate(dims) if size != 1), len(dims) - 1)
    return tuple(dims[first:])


def along(dims: Sequence[int]) -> int | None:
    """The only axis whose size is not 1; None if there are several or none."""
    found = [i for i, size in enumerate(dims) if size != 1]
    return found[0] if len(found) == 1 else None


def needed(dims: Sequence[int], changes: Sequence[Step]) -> list[Step]:
    """Simplify a list of steps: successive reshapes are merged, and steps that change nothing for these sizes are
    dropped."""
    found, shapes = list[Step](), [tuple(dims)]
    for kind, numbers in changes:
        if kind == "reshape" and found and found[-1][0] == "reshape":
            found.pop()
            shapes.pop()
        if kind == "transpose" or shapes[-1] != numbers:
            found.append((kind, numbers))
            shapes.append(numbers if kind == "reshape" else tuple(shapes[-1][axis] for axis in numbers))
    return found


class Mover:
    """Inserts ops, above all the reshapes and transposes that change a value's layout, before the op `before` of a
    block."""

    def __init__(self, block: Block):
        self.block = block
        self.before: Operation | None = block.first_op

    def add(
        self,
        kind: type[TensorOp],
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute | None],
        at: Operation,
    ) -> TensorOp:
        """Insert an op before the current one, with the location of `at`."""
        op = kind.make(operands, properties, like=at)
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        return op

    def move(self, value: SSAValue, changes: Sequence[Step], at: Operation) -> SSAValue:
        """Apply these reshapes and transposes to a value, at compile time for constants."""
        changes = needed(shape(value), changes)
        if not changes:
            return value
        if is_constant(value.owner):
            array = moved(to_numpy(value.owner.value), changes)
            constant = {"value": elements(array, label=_label(value.owner))}
            result = self.add(relay.ConstantOp, [], constant, value.owner).results[0]
            result.name_hint = value.name_hint
            return result
        for kind, numbers in changes:
            if kind == "reshape":
                if numbers.count(DYNAMIC) > 1:
                    what = f"changes the layout of {value.type}, of several unknown sizes"
                    raise Unsupported(place(at), what, "give the shapes of the inputs")
                sizes = [-1 if size == DYNAMIC else size for size in numbers]
                value = self.add(relay.ReshapeOp, [value], {"newshape": ints(sizes)}, at).results[0]
            else:
                value = self.add(relay.TransposeOp, [value], {"axes": ints(numbers)}, at).results[0]
        return value

    def operand(self, value: SSAValue, source: Layout, target: Layout, at: Operation) -> SSAValue:
        """Convert a value that broadcasts against a tensor of the layout `source`, so that it broadcasts against the
        same tensor in the layout `target`."""
        width = len(source.axes)
        if rank(value) == 0 or prod(shape(value)) == 1:
            return self.move(value, [("reshape", ())], at) if rank(value) else value
        wide = spread(shape(value), -1, width)
        result = self.move(value, [("reshape", wide), *steps(wide, source, target)], at)
        return self.move(result, [("reshape", narrowed(shape(result)))], at)


def of_parameter(dims: Sequence[int], axis: int, source: Layout, target: Layout) -> tuple[list[Step], int]:
    """The reshapes and transposes that convert a parameter of a tensor, which has the shape `dims` (a scalar, a vector
    along `axis`, or an array that broadcasts against the tensor), from the layout `source` to `target`; and the axis of
    a vector in `target`, or -1."""
    if not dims:
        return [], -1
    if len(dims) == 1 and not source.split and not target.split:
        return [], target.index(source.axes[axis])
    wide = spread(dims, axis, len(source.axes))
    result, changes = target.dims(source.sizes(wide)), [("reshape", wide), *steps(wide, source, target)]
    if prod(result) == 1:
        return [*changes, ("reshape", ())], -1
    where = along(result)
    return (changes, -1) if where is None else ([*changes, ("reshape", (prod(wide),))], where)


def _label(constant: relay.ConstantOp) -> str:
    return "weight" if constant.label is None else constant.label.data
