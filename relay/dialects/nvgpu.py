"""`nvgpu`, as far as products of a warp need it: copies that go on by themselves, and matrices out of shared memory.

Names, operands and properties are upstream's (MLIR 22).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    i8,
    i32,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from relay.dialects.attributes import dtype_of

INDEX = IndexType()
WIDEST = 16
"""Bytes of a copy, at most."""
MATRICES = 4
"""Matrices of 8 rows of 16 bytes that a warp reads at once."""


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.device.async.token`: copies that may still be under way."""

    name = "nvgpu.device.async.token"


@irdl_op_definition
class DeviceAsyncCopyOp(IRDLOperation):
    """`dst[at] = src[at]` for so many elements, which lands when its group is waited for."""

    name = "nvgpu.device_async_copy"
    dst = operand_def(MemRefType)
    dstIndices = var_operand_def(IndexType)
    src = operand_def(MemRefType)
    srcIndices = var_operand_def(IndexType)
    srcElements = opt_operand_def(IndexType)
    dstElements = prop_def(IntegerAttr[IndexType])
    bypassL1 = opt_prop_def(UnitAttr)
    token = result_def(TokenType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, dst: SSAValue, to: SSAValue, src: SSAValue, start: SSAValue, count: int):
        """A copy of so many numbers between buffers of one dimension: 4, 8 or 16 bytes, 16 past the cache L1."""
        properties: dict[str, Attribute] = {"dstElements": IntegerAttr(count, INDEX)}
        if count * dtype_of(cast(MemRefType[Attribute], src.type).element_type).itemsize == WIDEST:
            properties["bypassL1"] = UnitAttr()
        super().__init__(operands=[dst, [to], src, [start], []], result_types=[TokenType()], properties=properties)


@irdl_op_definition
class DeviceAsyncCreateGroupOp(IRDLOperation):
    """All copies of the thread since the last group are one group."""

    name = "nvgpu.device_async_create_group"
    inputTokens = var_operand_def(TokenType)
    asyncToken = result_def(TokenType)

    def __init__(self):
        super().__init__(operands=[[]], result_types=[TokenType()])


@irdl_op_definition
class DeviceAsyncWaitOp(IRDLOperation):
    """Wait until no more than `numGroups` groups of the thread are under way."""

    name = "nvgpu.device_async_wait"
    asyncDependencies = operand_def(TokenType)
    numGroups = opt_prop_def(IntegerAttr)

    def __init__(self, token: SSAValue, groups: int):
        super().__init__(operands=[token], properties={"numGroups": IntegerAttr(groups, i32)})


@irdl_op_definition
class LdMatrixOp(IRDLOperation):
    """Four matrices of 8 rows of 16 bytes: lane 8 q + r gives the place of row r of matrix q, and gets of each matrix
    the four bytes 4 (lane mod 4) and on of row lane / 4."""

    name = "nvgpu.ldmatrix"
    srcMemref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    transpose = prop_def(BoolAttr)
    numTiles = prop_def(IntegerAttr)
    res = result_def(VectorType)

    def __init__(self, source: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(
            operands=[source, indices],
            result_types=[VectorType(i8, [MATRICES, 4])],
            properties={"transpose": BoolAttr.from_bool(False), "numTiles": IntegerAttr(MATRICES, i32)},
        )

    def verify_(self) -> None:
        kind: Attribute = self.res.type
        if self.numTiles.value.data != MATRICES or kind != VectorType(i8, [MATRICES, 4]):
            raise VerifyException("nvgpu.ldmatrix: only four matrices of bytes are known here")


OPERATIONS = (DeviceAsyncCopyOp, DeviceAsyncCreateGroupOp, DeviceAsyncWaitOp, LdMatrixOp)
Nvgpu = Dialect("nvgpu", [*OPERATIONS], [TokenType])
