"""Memory that the threads of a block share, as kernels ask for it."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, i8, i64
from xdsl.ir import SSAValue

from relay.dialects.gpu import AddressSpaceAttr, DynamicSharedMemoryOp, Space
from relay.lowering.builder import LoopBuilder

SHARED_BYTES = "bytes"
"""The attribute of `gpu.dynamic_shared_memory` that says how much of it the launch must give."""
SHARED = MemRefType(i8, [DYNAMIC_INDEX], memory_space=AddressSpaceAttr(Space.WORKGROUP))


def shared_memory(b: LoopBuilder, size: int) -> SSAValue:
    """The block's memory, of so many bytes at least."""
    shared = b.add(DynamicSharedMemoryOp.create(result_types=[SHARED]))
    shared.attributes[SHARED_BYTES] = IntegerAttr(size, i64)
    return shared.result


def align(op: object, size: int = 16) -> None:
    """Say that what is read or written lies at a multiple of its size."""
    assert isinstance(op, vector.LoadOp | vector.StoreOp)
    op.attributes["alignment"] = IntegerAttr(size, i64)
