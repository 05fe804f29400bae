"""Reads and writes at positions given by index tensors. Indices are integers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, var_operand_def

from relay.dialects.attributes import int_values
from relay.dialects.op import (
    DYNAMIC,
    TENSOR,
    AxisOp,
    OneResultOp,
    Origin,
    Type,
    axis_of,
    broadcast,
    is_integer,
    rank,
    require,
    shape,
    tensor,
)
from relay.dialects.relay.shape import check_filled

ZERO = IntegerAttr(0, i64)


def check_along(what: str, dims: Sequence[int], indices: SSAValue, axis: int) -> None:
    """Require that `indices` is an integer tensor of the shape `dims`, except for its size along `axis`."""
    type = tensor(indices)
    require(is_integer(type.element_type), f"{what}: indices must be integers")
    given = type.get_shape()
    fits = len(given) == len(dims) and all(a == axis or d == given[a] for a, d in enumerate(dims))
    require(fits, f"{what}: indices of shape {list(given)} do not fit {list(dims)} along axis {axis}")


@irdl_op_definition
class GatherOp(AxisOp, OneResultOp):
    """`result[i, j, k] = input[i, indices[i, j, k], k]` for axis 1; indices are clamped.

    Along the other axes, indices has the input's size.
    """

    name = "relay.gather"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("indices",)
    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    indices = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        axis = self.along
        check_along(self.name, shape(self.input), self.indices, axis)
        check_filled(self.name, shape(self.input)[axis : axis + 1], shape(self.indices))
        return [TensorType(tensor(self.input).element_type, shape(self.indices))]


@irdl_op_definition
class AdvIndexOp(OneResultOp):
    """`inputs[0][inputs[1], inputs[2], ...]` as in numpy: the indices broadcast, their axes come first. Indices are
    clamped."""

    name = "relay.adv_index"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    inputs = var_operand_def(TENSOR)

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The index operands: all but the first."""
        return self.inputs[1:]

    def data_operands(self) -> tuple[SSAValue, ...]:
        return (self.inputs[0],)

    def infer(self) -> Sequence[Type]:
        require(len(self.inputs) > 0, f"{self.name}: takes at least one operand")
        count, dims = len(self.indices), shape(self.inputs[0])
        require(1 <= count <= len(dims), f"{self.name}: takes one index tensor for each of the first axes")
        types = {tensor(value).element_type for value in self.indices}
        require(
            len(types) == 1 and all(is_integer(t) for t in types), f"{self.name}: indices must be of one integer type"
        )
        outer = broadcast(self.name, *(shape(value) for value in self.indices))
        result = [*outer, *dims[count:]]
        check_filled(self.name, dims[:count], result)
        return [TensorType(tensor(self.inputs[0]).element_type, result)]


@irdl_op_definition
class ReverseSequenceOp(OneResultOp):
    """Reverse the first `seq_lengths[b]` elements along `seq_axis`, for each index b along `batch_axis`."""

    name = "relay.reverse_sequence"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("seq_lengths",)
    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    seq_lengths = operand_def(TENSOR)
    seq_axis = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    batch_axis = prop_def(IntegerAttr, default_value=ZERO)

    def axes(self) -> tuple[int, int]:
        """The sequence axis and the batch axis, not negative."""
        sequence, batch = (a.value.data for a in (self.seq_axis, self.batch_axis))
        return axis_of(sequence, rank(self.input), self.name), axis_of(batch, rank(self.input), self.name)

    def infer(self) -> Sequence[Type]:
        sequence, batch = self.axes()
        lengths = tensor(self.seq_lengths)
        require(sequence != batch, f"{self.name}: seq_axis and batch_axis are the same")
        require(is_integer(lengths.element_type), f"{self.name}: lengths must be integers")
        fits = lengths.get_shape() == (shape(self.input)[batch],)
        require(fits, f"{self.name}: one length per index of axis {batch} is needed")
        return [tensor(self.input)]

    def independent_along(self, axis: int) -> bool:
        return axis != self.axes()[0]


class ScatterBase(OneResultOp, ABC):
    """`input` with the elements at `indices` changed; updates are applied in their order. Indices outside the input are
    skipped."""

    PARAMETERS: ClassVar[tuple[str, ...]] = ("indices",)
    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    indices = operand_def(TENSOR)
    updates = operand_def(TENSOR)

    def check_types(self) -> Type:
        type, updates = tensor(self.input), tensor(self.updates)
        same = type.element_type == updates.element_type
        require(same, f"{self.name}: element types differ: {type.element_type} and {updates.element_type}")
        require(is_integer(tensor(self.indices).element_type), f"{self.name}: indices must be integers")
        require(DYNAMIC not in (*type.get_shape(), *updates.get_shape()), f"{self.name}: the shape must be known")
        return type


class ScatterAlongOp(ScatterBase, ABC):
    """`input` changed at `(i, indices[i, j, k], k)`, for axis 1, with `updates[i, j, k]`; negative indices count from
    the end."""

    axis = prop_def(IntegerAttr, default_value=ZERO)

    def infer(self) -> Sequence[Type]:
        type = self.check_types()
        axis = axis_of(self.axis.value.data, rank(self.input), self.name)
        check_along(self.name, type.get_shape(), self.indices, axis)
        require(shape(self.updates) == shape(self.indices), f"{self.name}: updates have not the shape of indices")
        return [type]


@irdl_op_definition
class ScatterOp(ScatterAlongOp):
    """Replace elements at indices along an axis."""

    name = "relay.scatter"
    ORIGIN: ClassVar[Origin] = Origin.MOVED


@irdl_op_definition
class ScatterAddOp(ScatterAlongOp):
    """Add each element of `updates` to the element of `input` at its index along an axis; see `ScatterAlongOp`."""

    name = "relay.scatter_add"


@irdl_op_definition
class ScatterNdOp(ScatterBase):
    """`input[indices[i..., :], j...]` replaced by `updates[i..., j...]` if `mode` is `update`; in the other modes by
    the sum (`add`), product (`mul`), minimum (`min`) or maximum (`max`) of both. Updates are applied one after the
    other.

    Indices are as in TensorFlow: the last axis holds coordinates.
    """

    name = "relay.scatter_nd"
    MODES: ClassVar[tuple[str, ...]] = ("update", "add", "mul", "min", "max")
    mode = prop_def(StringAttr, default_value=StringAttr("update"))

    def infer(self) -> Sequence[Type]:
        type, index = self.check_types(), shape(self.indices)
        dims = type.get_shape()
        require(self.mode.data in self.MODES, f"{self.name}: mode must be one of {', '.join(self.MODES)}")
        require(1 <= len(index) and index[-1] <= len(dims), f"{self.name}: indices have too many coordinates")
        wanted = (*index[:-1], *dims[index[-1] :])
        require(shape(self.updates) == wanted, f"{self.name}: updates must have shape {list(wanted)}")
        return [type]

    @property
    def origin(self) -> Origin:
        return Origin.MOVED if self.mode.data == "update" else Origin.COMPUTED


@irdl_op_definition
class StridedSetOp(OneResultOp):
    """`input` with `input[begin:end:strides]` replaced by `value`; bounds as in `relay.strided_slice`, all strides
    positive."""

    name = "relay.strided_set"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    value = operand_def(TENSOR)
    begin = prop_def(DenseArrayBase[IntegerType])
    end = prop_def(DenseArrayBase[IntegerType])
    strides = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        type, value = tensor(self.input), tensor(self.value)
        dims = type.get_shape()
        begin, end, strides = int_values(self.begin), int_values(self.end), int_values(self.strides)
        require(len(begin) == len(end) == len(strides) == len(dims), f"{self.name}: one number per axis is needed")
        inside = all(
            0 <= b <= d and 0 <= e <= d and s > 0 for b, e, s, d in zip(begin, end, strides, dims, strict=True)
        )
        require(inside, f"{self.name}: a slice is outside its axis or not forward")
        wanted = tuple(len(range(*bounds)) for bounds in zip(begin, end, strides, strict=True))
        expected = TensorType(type.element_type, wanted)
        require(value == expected, f"{self.name}: the value must be {expected}, not {value}")
        return [type]


@irdl_op_definition
class DynamicUpdateSliceOp(OneResultOp):
    """`result[s + i, ...] = update[i, ...]`, elsewhere the input; `s` is `start`, clamped so that the update fits.

    `start` has a number for each axis. This op writes new rows into a key-value cache. Source: StableHLO
    dynamic_update_slice.
    """

    name = "relay.dynamic_update_slice"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("start",)
    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    update = operand_def(TENSOR)
    start = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        type, update, start = (tensor(value) for value in self.operands)
        dims, part = type.get_shape(), update.get_shape()
        same = type.element_type == update.element_type
        require(same, f"{self.name}: element types differ: {type.element_type} and {update.element_type}")
        require(is_integer(start.element_type), f"{self.name}: start must be integers")
        require(start.get_shape() == (len(dims),), f"{self.name}: start must be a vector of {len(dims)} numbers")
        require(DYNAMIC not in (*dims, *part), f"{self.name}: the shape must be known")
        fits = len(part) == len(dims) and all(p <= d for p, d in zip(part, dims, strict=True))
        require(fits, f"{self.name}: an update of shape {list(part)} does not fit {list(dims)}")
        return [type]


@irdl_op_definition
class InvertPermutationOp(OneResultOp):
    """`result[input[i]] = i`, for a vector that holds each of 0 to size - 1 once."""

    name = "relay.invert_permutation"
    input = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input)
        fits = rank(self.input) == 1 and is_integer(type.element_type)
        require(fits, f"{self.name}: takes a vector of integers")
        return [type]


@irdl_op_definition
class UnravelIndexOp(OneResultOp):
    """The coordinates, along a new first axis, of elements of a tensor of this `shape` numbered in row-major order."""

    name = "relay.unravel_index"
    indices = operand_def(TENSOR)
    shape = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        type, dims = tensor(self.indices), int_values(self.shape)
        require(is_integer(type.element_type), f"{self.name}: indices must be integers")
        require(len(dims) > 0 and min(dims) > 0, f"{self.name}: the shape must be positive")
        require(prod(dims) < 1 << 31, f"{self.name}: the shape has too many elements")
        return [TensorType(type.element_type, [len(dims), *type.get_shape()])]
