"""Reductions over axes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, BoolAttr, DenseArrayBase, IntegerAttr, IntegerType, TensorType, i1, i32, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.attributes import int_values
from relay.dialects.op import TENSOR, OneResultOp, Origin, Type, axis_of, broadcast, rank, require, shape, tensor

FALSE = IntegerAttr.from_bool(False)


class ReducingOp(OneResultOp, ABC):
    """Reduce over `axis` (all axes if empty), or over the others if `exclude`; reduced axes stay with size 1 if
    `keepdims`."""

    input = operand_def(TENSOR)
    axis = prop_def(DenseArrayBase[IntegerType])
    keepdims = prop_def(BoolAttr, default_value=FALSE)
    exclude = prop_def(BoolAttr, default_value=FALSE)

    def axes(self) -> tuple[int, ...]:
        """The reduced axes: sorted, distinct, not negative."""
        width, named = rank(self.input), int_values(self.axis)
        given = {axis_of(a, width, self.name) for a in named}
        if not named or self.exclude.value.data:
            given = set(range(width)) - given
        return tuple(sorted(given))

    def infer(self) -> Sequence[Type]:
        return [TensorType(tensor(self.input).element_type, self.reduced_shape())]

    def reduced_shape(self) -> list[int]:
        axes, keep = self.axes(), bool(self.keepdims.value.data)
        return [1 if i in axes else d for i, d in enumerate(shape(self.input)) if keep or i not in axes]

    def independent_along(self, axis: int) -> bool:
        return axis not in self.axes() and (bool(self.keepdims.value.data) or axis < min(self.axes(), default=axis + 1))


class ReduceOp(ReducingOp, ABC):
    """A reduction that combines the elements one by one."""


class BooleanReduceOp(ReduceOp, ABC):
    """A reduction of booleans (`i1`)."""

    def infer(self) -> Sequence[Type]:
        type = tensor(self.input).element_type
        require(type == i1, f"{self.name}: takes i1, not {type}")
        return super().infer()


@irdl_op_definition
class SumOp(ReduceOp):
    """`result[i] = sum over j of input[i, j]`, j over the reduced axes; integers wrap in their own type."""

    name = "relay.sum"


@irdl_op_definition
class MaxOp(ReduceOp):
    """`result[i] = max over j of input[i, j]`, j over the reduced axes; NaN if one of them is NaN."""

    name = "relay.max"
    ORIGIN: ClassVar[Origin] = Origin.SELECTED


@irdl_op_definition
class MinOp(ReduceOp):
    """`result[i] = min over j of input[i, j]`, j over the reduced axes; NaN if one of them is NaN."""

    name = "relay.min"
    ORIGIN: ClassVar[Origin] = Origin.SELECTED


@irdl_op_definition
class ProdOp(ReduceOp):
    """Product over the reduced axes; integers wrap in their own type."""

    name = "relay.prod"


@irdl_op_definition
class AllOp(BooleanReduceOp):
    """Whether all elements are true."""

    name = "relay.all"


@irdl_op_definition
class AnyOp(BooleanReduceOp):
    """Whether any element is true."""

    name = "relay.any"


@irdl_op_definition
class MeanOp(ReducingOp):
    """The sum divided by the number of elements; integers are summed in at least 32 bits and truncate towards zero."""

    name = "relay.mean"
    ORIGIN: ClassVar[Origin] = Origin.AVERAGED


@irdl_op_definition
class VarianceOp(ReducingOp):
    """The sum of `(input - mean)**2` divided by the number of elements, or by one less if `unbiased`.

    `mean` is the mean over these axes with `keepdims`, so that it broadcasts against `input`."""

    name = "relay.variance"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("mean",)
    input = operand_def(TENSOR)
    mean = operand_def(TENSOR)
    unbiased = prop_def(BoolAttr, default_value=FALSE)

    def infer(self) -> Sequence[Type]:
        type, mean = tensor(self.input).element_type, tensor(self.mean).element_type
        require(isinstance(type, AnyFloat), f"{self.name}: takes floats, not {type}")
        require(type == mean, f"{self.name}: element types differ: {type} and {mean}")
        whole = broadcast(self.name, shape(self.input), shape(self.mean))
        require(len(whole) == rank(self.input), f"{self.name}: the mean has more axes than the input")
        return super().infer()


class ArgOp(ReduceOp, ABC):
    """The index (in `dtype`: i32 or i64) of the first extreme element along one axis."""

    dtype = prop_def(IntegerType, default_value=i32)

    def infer(self) -> Sequence[Type]:
        require(len(self.axes()) == 1, f"{self.name}: takes one axis")
        require(self.dtype in (i32, i64), f"{self.name}: dtype must be i32 or i64")
        return [TensorType(self.dtype, self.reduced_shape())]


@irdl_op_definition
class ArgmaxOp(ArgOp):
    """`result[i] = the smallest j with input[i, j] = max over k of input[i, k]`."""

    name = "relay.argmax"


@irdl_op_definition
class ArgminOp(ArgOp):
    """`result[i] = the smallest j with input[i, j] = min over k of input[i, k]`."""

    name = "relay.argmin"
