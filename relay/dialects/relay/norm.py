"""Normalizations at inference, on floats; `simplify-inference` expands them. Every step is computed in the operands'
type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.attributes import int_values
from relay.dialects.op import (
    DYNAMIC,
    TENSOR,
    AxisOp,
    OneResultOp,
    Origin,
    TensorOp,
    Type,
    axis_of,
    rank,
    require,
    shape,
    tensor,
)

TRUE = IntegerAttr.from_bool(True)


def check_vectors(op: TensorOp, axis: int, *vectors: SSAValue) -> None:
    """Check that the op's data (its first operand) has a float type, and that each of `vectors` has the same element
    type and as its only dimension the size of the data's axis `axis`."""
    data = op.operands[0]
    require(isinstance(tensor(data).element_type, AnyFloat), f"{op.name}: takes floats")
    size = shape(data)[axis_of(axis, rank(data), op.name)]
    for value in vectors:
        dims = shape(value)
        require(tensor(value).element_type == tensor(data).element_type, f"{op.name}: element types differ")
        fits = len(dims) == 1 and (dims[0] == size or DYNAMIC in (dims[0], size))
        require(fits, f"{op.name}: a vector of {list(dims)} for axis of {size}")


class PerAxisOp(AxisOp, OneResultOp, ABC):
    """A normalization whose operands after the data are vectors with an element per index of `axis`."""

    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))
    epsilon = prop_def(FloatAttr)
    center = prop_def(BoolAttr, default_value=TRUE)
    scale = prop_def(BoolAttr, default_value=TRUE)

    def infer(self) -> Sequence[Type]:
        check_vectors(self, self.axis.value.data, *self.operands[1:])
        return [tensor(self.operands[0])]


@irdl_op_definition
class BatchNormOp(PerAxisOp):
    """`data * s + (beta - moving_mean * s)` per index of `axis`, with `s = gamma / sqrt(moving_var + epsilon)`; without
    `scale`, gamma counts as 1; without `center`, beta as 0. The mean and variance are constants from training."""

    name = "relay.nn.batch_norm"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("gamma", "beta", "moving_mean", "moving_var")
    INDEPENDENT: ClassVar[slice] = slice(None)
    data = operand_def(TENSOR)
    gamma = operand_def(TENSOR)
    beta = operand_def(TENSOR)
    moving_mean = operand_def(TENSOR)
    moving_var = operand_def(TENSOR)


class NormOp(PerAxisOp, ABC):
    """`(data - mean) / sqrt(var + epsilon) * gamma + beta`, gamma and beta per index of `axis`; `mean` is a sum divided
    by the count, `var` the mean of the squares of `data - mean`. Without `scale` gamma counts as 1, without `center`
    beta as 0."""

    PARAMETERS: ClassVar[tuple[str, ...]] = ("gamma", "beta")
    data = operand_def(TENSOR)
    gamma = operand_def(TENSOR)
    beta = operand_def(TENSOR)

    def shape_of_groups(self) -> tuple[int, ...]:
        """The shape to which the data is reshaped for normalization; group normalization splits the channels."""
        return shape(self.data)

    @abstractmethod
    def reduced(self) -> tuple[int, ...]:
        """The axes over which mean and variance are taken. They count in the shape that `shape_of_groups` returns, in
        which group normalization has an additional axis."""

    def independent_along(self, axis: int) -> bool:
        return axis == 0 and self.along > 0 or isinstance(self, LayerNormOp) and axis != self.along


@irdl_op_definition
class LayerNormOp(NormOp):
    """Normalize with mean and variance over `axis`: each position separately."""

    name = "relay.nn.layer_norm"

    @property
    def along_last(self) -> bool:
        """Whether the normalized axis is the last of at least two axes, so that contiguous rows are normalized."""
        return self.along == rank(self.data) - 1 > 0

    def reduced(self) -> tuple[int, ...]:
        return (self.along,)


@irdl_op_definition
class RmsNormOp(OneResultOp):
    """`data * (1 / sqrt(mean(data^2) + epsilon)) * gamma` along the last axis; `mean` is a sum divided by the count."""

    name = "relay.nn.rms_norm"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("gamma",)
    SAME_AXES: ClassVar[bool] = True
    INDEPENDENT: ClassVar[slice] = slice(-1)
    data = operand_def(TENSOR)
    gamma = operand_def(TENSOR)
    epsilon = prop_def(FloatAttr)

    @property
    def along_last(self) -> bool:
        """Whether the data has at least two axes, so that contiguous rows are normalized: this op always normalizes
        along the last axis."""
        return rank(self.data) > 1

    def infer(self) -> Sequence[Type]:
        check_vectors(self, -1, self.gamma)
        return [tensor(self.data)]


@irdl_op_definition
class InstanceNormOp(NormOp):
    """Normalize with mean and variance over all but the first axis and `axis`: each channel of each image
    separately."""

    name = "relay.nn.instance_norm"

    def reduced(self) -> tuple[int, ...]:
        return tuple(i for i in range(1, rank(self.data)) if i != self.along)


@irdl_op_definition
class GroupNormOp(NormOp):
    """Normalize with mean and variance over all but the first axis, for each of `num_groups` groups of neighbouring
    channels along `axis`."""

    name = "relay.nn.group_norm"
    num_groups = prop_def(IntegerAttr)

    def shape_of_groups(self) -> tuple[int, ...]:
        dims, axis, groups = shape(self.data), self.along, self.num_groups.value.data
        return (*dims[:axis], groups, dims[axis] // groups, *dims[axis + 1 :])

    def reduced(self) -> tuple[int, ...]:
        return tuple(i for i in range(1, rank(self.data) + 1) if i != self.along)

    def infer(self) -> Sequence[Type]:
        size, groups = shape(self.data)[self.along], self.num_groups.value.data
        require(groups > 0 and size % groups == 0, f"{self.name}: {size} channels in {groups} groups")
        require(self.along > 0, f"{self.name}: axis 0 is that of the images")
        return super().infer()


@irdl_op_definition
class L2NormalizeOp(OneResultOp):
    """`data / sqrt(max(sum of squares over axis, eps))`."""

    name = "relay.nn.l2_normalize"
    data = operand_def(TENSOR)
    axis = prop_def(DenseArrayBase[IntegerType])
    eps = prop_def(FloatAttr)

    def axes(self) -> tuple[int, ...]:
        """The axes of the sum, sorted and not negative; all axes if none is named."""
        given = int_values(self.axis) or range(rank(self.data))
        return tuple(sorted({axis_of(a, rank(self.data), self.name) for a in given}))

    def infer(self) -> Sequence[Type]:
        require(isinstance(tensor(self.data).element_type, AnyFloat), f"{self.name}: takes floats")
        self.axes()
        return [tensor(self.data)]

    def independent_along(self, axis: int) -> bool:
        return axis not in self.axes()


@irdl_op_definition
class DropoutOp(OneResultOp):
    """`data`: nothing is dropped at inference."""

    name = "relay.nn.dropout"
    ELEMENTWISE: ClassVar[bool] = True
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    data = operand_def(TENSOR)
    rate = prop_def(FloatAttr)

    def infer(self) -> Sequence[Type]:
        return [tensor(self.data)]
