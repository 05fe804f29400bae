"""Sorting along an axis. Equal elements keep their order; NaN counts as the largest number."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, StringAttr, TensorType, i32, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_result_def

from relay.dialects.op import DYNAMIC, TENSOR, AxisOp, Origin, Type, require, shape, tensor

LAST = IntegerAttr(-1, i64)


class SortingOp(AxisOp, ABC):
    """An op that orders the elements along `axis`: the smallest first if `is_ascend`, else the largest."""

    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    axis = prop_def(IntegerAttr, default_value=LAST)

    def check(self) -> Type:
        size = shape(self.input)[self.along]
        require(size != DYNAMIC, f"{self.name}: the axis must be known")
        require(size < 1 << 31, f"{self.name}: the axis is too long")
        return tensor(self.input)


@irdl_op_definition
class SortOp(SortingOp):
    """The elements in sorted order."""

    name = "relay.sort"
    ORIGIN: ClassVar[Origin] = Origin.SELECTED
    is_ascend = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    result = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        return [self.check()]


@irdl_op_definition
class ArgsortOp(SortingOp):
    """The indices (in `dtype`: i32 or i64) of the elements in sorted order."""

    name = "relay.argsort"
    is_ascend = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    dtype = prop_def(IntegerType, default_value=i32)
    result = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        require(self.dtype in (i32, i64), f"{self.name}: dtype must be i32 or i64")
        return [TensorType(self.dtype, self.check().get_shape())]


@irdl_op_definition
class TopkOp(SortingOp):
    """The first `k` elements in sorted order and their indices; only one of the two results if `ret_type` is `values`
    or `indices`."""

    name = "relay.topk"
    k = prop_def(IntegerAttr)
    is_ascend = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    ret_type = prop_def(StringAttr, default_value=StringAttr("both"))
    dtype = prop_def(IntegerType, default_value=i32)
    found = var_result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        type, kind = self.check(), self.ret_type.data
        dims, axis = list(type.get_shape()), self.along
        require(0 <= self.k.value.data <= dims[axis], f"{self.name}: k must be 0 to {dims[axis]}")
        require(self.dtype in (i32, i64), f"{self.name}: dtype must be i32 or i64")
        require(kind in ("both", "values", "indices"), f"{self.name}: ret_type must be both, values or indices")
        dims[axis] = self.k.value.data
        values, indices = TensorType(type.element_type, dims), TensorType(self.dtype, dims)
        return [*([values] if kind != "indices" else []), *([indices] if kind != "values" else [])]
