"""The `machine` dialect: what processors do in one instruction, before it is spelled for one of them."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IntegerType, UnitAttr, VectorType, i32
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

Vector = VectorType[Attribute]


def _vector(value: SSAValue) -> Vector:
    """The type of an operand, which its definition says is a vector."""
    return cast(Vector, value.type)


@irdl_op_definition
class DotProductOp(IRDLOperation):
    """`result[i] = accumulator[i] + sum over k < g of data[g*i + k] * weights[g*i + k]`, i32, wrapping.

    `accumulator`: `vector<n x i32>`; `data`, `weights`: `vector<(g*n) x i8>` or `<(g*n) x i16>`, g = 2 or 4. `weights`
    are signed, and `data` unless `unsigned` is given. `select-target-ops` spells it for the target.
    """

    name = "machine.dot_product"
    accumulator = operand_def(Vector)
    data = operand_def(Vector)
    weights = operand_def(Vector)
    unsigned = opt_prop_def(UnitAttr)
    result = result_def(Vector)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = (
        "$accumulator `,` $data `,` $weights attr-dict `:` type($accumulator) `,` type($data) `,` type($weights) `->`"
        " type($result)"
    )

    def verify_(self) -> None:
        sums, codes = _vector(self.accumulator), _vector(self.data)
        if self.result.type != sums or sums.element_type != i32 or len(sums.get_shape()) != 1:
            raise VerifyException(f"{self.name}: accumulator and result are one vector of i32 with one dimension")
        if self.weights.type != codes or codes.element_type not in (IntegerType(8), IntegerType(16)):
            raise VerifyException(f"{self.name}: data and weights are vectors of one type, of i8 or i16")
        lanes = sums.get_shape()[0]
        if len(codes.get_shape()) != 1 or codes.get_shape()[0] not in (2 * lanes, 4 * lanes):
            raise VerifyException(f"{self.name}: data and weights have 2 or 4 codes for each sum")


Machine = Dialect("machine", [DotProductOp])
