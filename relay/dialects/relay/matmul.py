"""Products of two matrices, or of two stacks of matrices."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.element_types import ranked_type
from relay.dialects.op import DYNAMIC, TENSOR, OneResultOp, Type, broadcast, require, shape
from relay.dialects.relay.nn import CentredOp, check_operand_types

FALSE = IntegerAttr.from_bool(False)
TRUE = IntegerAttr.from_bool(True)


class MatmulBase(OneResultOp, ABC):
    """`result[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]`; `transpose_a` says that a is stored as
    [..., k, m], `transpose_b` that b is stored as [..., n, k]."""

    INDEPENDENT: ClassVar[slice] = slice(-2)
    tensor_a = operand_def(TENSOR)
    tensor_b = operand_def(TENSOR)
    transpose_a = prop_def(BoolAttr, default_value=FALSE)
    transpose_b = prop_def(BoolAttr, default_value=FALSE)
    out_dtype = prop_def(Attribute, default_value=i32)

    def matrices(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(rows, inner) of a and (inner, columns) of b."""
        a, b = shape(self.tensor_a)[-2:], shape(self.tensor_b)[-2:]
        if self.transpose_a.value.data:
            a = (a[1], a[0])
        if self.transpose_b.value.data:
            b = (b[1], b[0])
        return (a[0], a[1]), (b[0], b[1])

    def infer(self) -> Sequence[Type]:
        a, b = shape(self.tensor_a), shape(self.tensor_b)
        require(min(len(a), len(b)) >= 2, f"{self.name}: takes rank 2 or more")
        check_operand_types(self.name, self.tensor_a, self.tensor_b, self.out_dtype)
        (rows, inner), (other, columns) = self.matrices()
        require(inner == other or DYNAMIC in (inner, other), f"{self.name}: sums over {inner} and {other} elements")
        return [ranked_type(self.out_dtype, (*broadcast(self.name, a[:-2], b[:-2]), rows, columns))]


@irdl_op_definition
class MatmulOp(CentredOp, MatmulBase):
    """Product of two matrices: `(a - input_zero_point) @ (b - kernel_zero_point)` (integers), or of floats."""

    name = "relay.nn.matmul"

    def infer(self) -> Sequence[Type]:
        require(len(shape(self.tensor_a)) == len(shape(self.tensor_b)) == 2, f"{self.name}: takes rank 2")
        return super().infer()


@irdl_op_definition
class BatchMatmulOp(CentredOp, MatmulBase):
    """Product of two stacks of matrices, whose leading axes broadcast as in numpy: `(a - input_zero_point) @ (b -
    kernel_zero_point)` for integers, or of floats. By default b is [..., n, k]."""

    name = "relay.nn.batch_matmul"
    transpose_b = prop_def(BoolAttr, default_value=TRUE)
