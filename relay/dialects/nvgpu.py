"""MLIR's `nvgpu`, as far as matrix products of a warp need it: asynchronous copies, and loads of matrices from shared
memory. Names, operands and properties are upstream's (MLIR 22)."""

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
"""The largest size of one asynchronous copy in bytes."""
MATRICES = 4
"""The number of matrices (8 rows of 16 bytes each) that a warp loads at once."""


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.device.async.token`: stands for asynchronous copies that may not be complete."""

    name = "nvgpu.device.async.token"


@irdl_op_definition
class DeviceAsyncCopyOp(IRDLOperation):
    """Copy `dstElements` elements from `src` to `dst` asynchronously; complete once the copy's group has been waited
    for."""

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
        """Build a copy of `count` elements (4, 8 or 16 bytes) between one-dimensional buffers; 16 bytes bypass the L1
        cache."""
        properties: dict[str, Attribute] = {"dstElements": IntegerAttr(count, INDEX)}
        if count * dtype_of(cast(MemRefType[Attribute], src.type).element_type).itemsize == WIDEST:
            properties["bypassL1"] = UnitAttr()
        super().__init__(operands=[dst, [to], src, [start], []], result_types=[TokenType()], properties=properties)


@irdl_op_definition
class DeviceAsyncCreateGroupOp(IRDLOperation):
    """Join all asynchronous copies that the thread started since the last group into one group."""

    name = "nvgpu.device_async_create_group"
    inputTokens = var_operand_def(TokenType)
    asyncToken = result_def(TokenType)

    def __init__(self):
        super().__init__(operands=[[]], result_types=[TokenType()])


@irdl_op_definition
class DeviceAsyncWaitOp(IRDLOperation):
    """Wait until at most `numGroups` groups of the thread's copies are incomplete."""

    name = "nvgpu.device_async_wait"
    asyncDependencies = operand_def(TokenType)
    numGroups = opt_prop_def(IntegerAttr)

    def __init__(self, token: SSAValue, groups: int):
        super().__init__(operands=[token], properties={"numGroups": IntegerAttr(groups, i32)})


@irdl_op_definition
class LdMatrixOp(IRDLOperation):
    """Load four matrices of 8 rows of 16 bytes. Lane 8 q + r gives the address of row r of matrix q. From each matrix,
    lane n receives bytes 4 (n mod 4) to 4 (n mod 4) + 3 of row n / 4 (rounded down)."""

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
