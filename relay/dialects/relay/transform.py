"""Reshapes, slices, copies and broadcasts: ops that give elements another shape or order."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, var_operand_def, var_result_def

from relay.dialects.attributes import int_values
from relay.dialects.element_types import bits_of
from relay.dialects.layout import Layout
from relay.dialects.op import (
    DYNAMIC,
    TENSOR,
    AxisOp,
    OneResultOp,
    Origin,
    TensorOp,
    Type,
    axis_of,
    broadcast,
    rank,
    require,
    shape,
    tensor,
)
from relay.dialects.relay.nn import parsed_layout
from relay.dialects.relay.shape import TransformOp

ZERO, ONE = IntegerAttr(0, i64), IntegerAttr(1, i64)


class LikeOp(TransformOp, ABC):
    """An op on one tensor. Only the type of its second operand is used."""

    PARAMETERS: ClassVar[tuple[str, ...]] = ("other",)
    input = operand_def(TENSOR)
    other = operand_def(TENSOR)


def known(what: str, dims: Sequence[int]) -> Sequence[int]:
    """The dimensions, all of which must be known; raises VerifyException otherwise."""
    require(DYNAMIC not in dims, f"{what}: the shape must be known")
    return dims


@irdl_op_definition
class ExpandDimsOp(TransformOp):
    """Insert `num_newaxis` axes of size 1 before the input's axis `axis`, or after all axes if `axis` is the rank.
    Negative values count from the end: -1 is after all axes, -2 before the last one."""

    name = "relay.expand_dims"
    axis = prop_def(IntegerAttr)
    num_newaxis = prop_def(IntegerAttr, default_value=ONE)

    def infer(self) -> Sequence[Type]:
        dims, count = shape(self.input), self.num_newaxis.value.data
        require(count >= 0, f"{self.name}: num_newaxis must not be negative")
        axis = axis_of(self.axis.value.data, len(dims) + 1, self.name)
        return self.like([*dims[:axis], *[1] * count, *dims[axis:]])


@irdl_op_definition
class SqueezeOp(TransformOp):
    """Remove the axes `axis`, which have size 1; if none is given, remove all axes of size 1."""

    name = "relay.squeeze"
    axis = opt_prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        dims = shape(self.input)
        given = () if self.axis is None else int_values(self.axis)
        axes = {axis_of(a, len(dims), self.name) for a in given}
        require(all(dims[a] in (1, DYNAMIC) for a in axes), f"{self.name}: an axis is not of size 1")
        gone = axes if self.axis is not None else {a for a, d in enumerate(dims) if d == 1}
        return self.like([d for a, d in enumerate(dims) if a not in gone])


@irdl_op_definition
class StackOp(OneResultOp):
    """Tensors of one type along a new axis: `result[i, ...] = inputs[i]` for axis 0."""

    name = "relay.stack"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    inputs = var_operand_def(TENSOR)
    axis = prop_def(IntegerAttr, default_value=ZERO)

    def infer(self) -> Sequence[Type]:
        require(len(self.inputs) > 0, f"{self.name}: takes at least one operand")
        first = tensor(self.inputs[0])
        require(all(value.type == first for value in self.inputs), f"{self.name}: the operands' types differ")
        dims = list(first.get_shape())
        dims.insert(axis_of(self.axis.value.data, len(dims) + 1, self.name), len(self.inputs))
        return [TensorType(first.element_type, dims)]

    def independent_along(self, axis: int) -> bool:
        return axis < axis_of(self.axis.value.data, rank(self.result), self.name)


@irdl_op_definition
class SplitOp(AxisOp):
    """Split along `axis` into `indices_or_sections` equal parts, or at the given indices, at which each part but the
    first starts."""

    name = "relay.split"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    indices_or_sections = prop_def(IntegerAttr | DenseArrayBase[IntegerType])
    axis = prop_def(IntegerAttr, default_value=ZERO)
    parts = var_result_def(TENSOR)

    def bounds(self) -> list[tuple[int, int]]:
        """(begin, end) of each part along the axis."""
        size = shape(self.input)[self.along]
        require(size != DYNAMIC, f"{self.name}: the axis must be known")
        given = self.indices_or_sections
        if isinstance(given, IntegerAttr):
            count = given.value.data
            require(count > 0 and size % count == 0, f"{self.name}: {size} is not divisible in {count} parts")
            starts = list(range(0, size, size // count)) if size else [0] * count
        else:
            starts = [0, *int_values(given)]
            require(starts == sorted(starts) and starts[-1] <= size, f"{self.name}: indices are not in order")
        return list(zip(starts, [*starts[1:], size], strict=True))

    def infer(self) -> Sequence[Type]:
        type, axis = tensor(self.input), self.along
        dims = type.get_shape()
        return [TensorType(type.element_type, [*dims[:axis], e - b, *dims[axis + 1 :]]) for b, e in self.bounds()]


@irdl_op_definition
class TileOp(TransformOp):
    """Repeat the tensor `reps` times along each axis; the shorter of shape and `reps` is extended with ones in
    front."""

    name = "relay.tile"
    SAME_AXES: ClassVar[bool] = True
    reps = prop_def(DenseArrayBase[IntegerType])

    def aligned(self) -> tuple[list[int], list[int]]:
        """The shape and the repetitions, extended with ones in front to equal length."""
        dims, reps = list(shape(self.input)), list(int_values(self.reps))
        require(min(reps, default=0) >= 0, f"{self.name}: reps must not be negative")
        width = max(len(dims), len(reps))
        return [1] * (width - len(dims)) + dims, [1] * (width - len(reps)) + reps

    def infer(self) -> Sequence[Type]:
        return self.like([DYNAMIC if d == DYNAMIC else d * r for d, r in zip(*self.aligned(), strict=True)])

    def independent_along(self, axis: int) -> bool:
        return rank(self.input) == rank(self.result) and self.aligned()[1][axis] == 1


@irdl_op_definition
class RepeatOp(AxisOp, TransformOp):
    """Repeat each element `repeats` times in a row along `axis`."""

    name = "relay.repeat"
    SAME_AXES: ClassVar[bool] = True
    repeats = prop_def(IntegerAttr)

    def infer(self) -> Sequence[Type]:
        dims, count = list(shape(self.input)), self.repeats.value.data
        require(count >= 1, f"{self.name}: repeats must be positive")
        size = dims[self.along]
        dims[self.along] = DYNAMIC if size == DYNAMIC else size * count
        return self.like(dims)

    def independent_along(self, axis: int) -> bool:
        return axis != self.along or self.repeats.value.data == 1


@irdl_op_definition
class ReverseOp(TransformOp):
    """Reverse the order of the elements along each of the axes `axis`."""

    name = "relay.reverse"
    SAME_AXES: ClassVar[bool] = True
    axis = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        for axis in int_values(self.axis):
            axis_of(axis, rank(self.input), self.name)
        return [tensor(self.input)]

    def independent_along(self, axis: int) -> bool:
        return all(axis != axis_of(a, rank(self.input), self.name) for a in int_values(self.axis))


@irdl_op_definition
class MeshgridOp(TensorOp):
    """Vectors and scalars as coordinate grids: result i holds operand i along axis i, and is constant along the others.

    `indexing` is `ij`, or `xy`: then the first two axes change places.
    """

    name = "relay.meshgrid"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    inputs = var_operand_def(TENSOR)
    indexing = prop_def(StringAttr, default_value=StringAttr("ij"))
    grids = var_result_def(TENSOR)

    def order(self) -> list[int]:
        """The axis along which each operand varies."""
        axes = list(range(len(self.inputs)))
        return [1, 0, *axes[2:]] if self.indexing.data == "xy" and len(axes) > 1 else axes

    def infer(self) -> Sequence[Type]:
        require(self.indexing.data in ("ij", "xy"), f"{self.name}: indexing must be ij or xy")
        require(all(rank(value) <= 1 for value in self.inputs), f"{self.name}: takes vectors and scalars")
        sizes = [prod(known(self.name, shape(value))) for value in self.inputs]
        dims = [sizes[axis] for axis in self.order()]
        return [TensorType(tensor(value).element_type, dims) for value in self.inputs]


@irdl_op_definition
class CastLikeOp(LikeOp):
    """`relay.cast` to the other tensor's element type."""

    name = "relay.cast_like"
    ORIGIN: ClassVar[Origin] = Origin.COMPUTED

    def infer(self) -> Sequence[Type]:
        return [TensorType(tensor(self.other).element_type, shape(self.input))]


@irdl_op_definition
class ReshapeLikeOp(LikeOp):
    """The same elements under the other tensor's shape."""

    name = "relay.reshape_like"

    def infer(self) -> Sequence[Type]:
        dims, given = known(self.name, shape(self.other)), shape(self.input)
        fits = DYNAMIC in given or prod(given) == prod(dims)
        require(fits, f"{self.name}: {list(given)} has not the elements of {list(dims)}")
        return self.like(dims)


@irdl_op_definition
class BroadcastToLikeOp(LikeOp):
    """numpy's broadcast to the other tensor's shape."""

    name = "relay.broadcast_to_like"

    def infer(self) -> Sequence[Type]:
        dims = tuple(known(self.name, shape(self.other)))
        reached = broadcast(self.name, shape(self.input), dims) == dims
        require(reached, f"{self.name}: cannot reach {list(dims)}")
        return self.like(dims)


@irdl_op_definition
class CollapseSumToOp(TransformOp):
    """Sum over the axes that a broadcast from `shape` would repeat: the transpose of that broadcast."""

    name = "relay.collapse_sum_to"
    ORIGIN: ClassVar[Origin] = Origin.COMPUTED
    shape = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        wanted, given = int_values(self.shape), shape(self.input)
        require(broadcast(self.name, wanted, given) == given, f"{self.name}: {list(wanted)} does not broadcast to it")
        return self.like(wanted)


@irdl_op_definition
class CollapseSumLikeOp(LikeOp):
    """`relay.collapse_sum_to` with the other tensor's shape."""

    name = "relay.collapse_sum_like"
    ORIGIN: ClassVar[Origin] = Origin.COMPUTED

    def infer(self) -> Sequence[Type]:
        wanted, given = tuple(known(self.name, shape(self.other))), shape(self.input)
        require(broadcast(self.name, wanted, given) == given, f"{self.name}: {list(wanted)} does not broadcast to it")
        return self.like(wanted)


@irdl_op_definition
class SliceLikeOp(LikeOp):
    """The first elements along the axes `axes` (all if empty), as many as the other tensor has there."""

    name = "relay.slice_like"
    SAME_AXES: ClassVar[bool] = True
    axes = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        dims, other = list(shape(self.input)), known(self.name, shape(self.other))
        for axis in int_values(self.axes) or range(len(dims)):
            axis = axis_of(axis, len(dims), self.name)
            fits = axis < len(other) and (dims[axis] == DYNAMIC or other[axis] <= dims[axis])
            require(fits, f"{self.name}: axis {axis} is longer in the other tensor, or not there")
            dims[axis] = other[axis]
        return self.like(dims)


@irdl_op_definition
class LayoutTransformOp(TransformOp):
    """Convert a tensor from the layout `src_layout` to `dst_layout`, such as `NHWC`, `NCHW`, `NCHW4c`."""

    name = "relay.layout_transform"
    src_layout = prop_def(StringAttr)
    dst_layout = prop_def(StringAttr)

    def layouts(self) -> tuple[Layout, Layout]:
        source, target = (parsed_layout(self.name, each.data) for each in (self.src_layout, self.dst_layout))
        require(source.letters == target.letters, f"{self.name}: {source} and {target} have other axes")
        require(len(source.axes) == rank(self.input), f"{self.name}: {source} has not the input's rank")
        return source, target

    def infer(self) -> Sequence[Type]:
        source, target = self.layouts()
        sizes = source.sizes(known(self.name, shape(self.input)))
        split = target.split
        require(not split or sizes[split] % target.factor == 0, f"{self.name}: {split} is no multiple of the split")
        return self.like(target.dims(sizes))


@irdl_op_definition
class ReinterpretOp(TransformOp):
    """The bits of each element read as a `dtype` of the same width."""

    name = "relay.reinterpret"
    ELEMENTWISE: ClassVar[bool] = True
    ORIGIN: ClassVar[Origin] = Origin.COMPUTED
    dtype = prop_def(Attribute)

    def infer(self) -> Sequence[Type]:
        given = tensor(self.input).element_type
        same = bits_of(given) == bits_of(self.dtype)
        require(same, f"{self.name}: {given} and {self.dtype} differ in width")
        return [TensorType(self.dtype, shape(self.input))]
