"""Reductions over axes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, IntegerType, TensorType, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from relay.dialects.attributes import int_values
from relay.dialects.op import TensorOp, Type, axis_of, rank, require, shape, tensor

FALSE = IntegerAttr.from_bool(False)


class ReduceOp(TensorOp, ABC):
    """Reduce over `axis` (all axes if empty); reduced axes stay with size 1 if `keepdims`."""

    input = operand_def(TensorType[Attribute])
    axis = prop_def(DenseArrayBase[IntegerType])
    keepdims = prop_def(BoolAttr, default_value=FALSE)
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def axes(self) -> tuple[int, ...]:
        """The reduced axes: sorted, distinct, not negative."""
        given = int_values(self.axis) or range(rank(self.input))
        return tuple(sorted({axis_of(a, rank(self.input), self.name) for a in given}))

    def infer(self) -> Sequence[Type]:
        return [TensorType(tensor(self.input).element_type, self.reduced_shape())]

    def reduced_shape(self) -> list[int]:
        axes, keep = self.axes(), bool(self.keepdims.value.data)
        return [1 if i in axes else d for i, d in enumerate(shape(self.input)) if keep or i not in axes]


@irdl_op_definition
class SumOp(ReduceOp):
    """`result[i] = sum over j of input[i, j]`, j over the reduced axes; integers wrap in their own type."""

    name = "relay.sum"


@irdl_op_definition
class MaxOp(ReduceOp):
    """`result[i] = max over j of input[i, j]`, j over the reduced axes; NaN where one of them is."""

    name = "relay.max"


@irdl_op_definition
class MinOp(ReduceOp):
    """`result[i] = min over j of input[i, j]`, j over the reduced axes; NaN where one of them is."""

    name = "relay.min"


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


OPERATIONS: list[type[Operation]] = [SumOp, MaxOp, MinOp, ArgmaxOp, ArgminOp]
