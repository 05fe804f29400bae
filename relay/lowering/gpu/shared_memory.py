"""Memory that the threads of a block share, as requested by kernels."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, i8, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects.gpu import AddressSpaceAttr, DynamicSharedMemoryOp, Space
from relay.lowering.builder import LoopBuilder

SHARED_BYTES = "bytes"
"""The attribute of `gpu.dynamic_shared_memory` with the number of bytes that the launch must provide."""
SHARED = MemRefType(i8, [DYNAMIC_INDEX], memory_space=AddressSpaceAttr(Space.WORKGROUP))


def shared_memory(b: LoopBuilder, size: int) -> SSAValue:
    """Return the block's shared memory, of at least `size` bytes."""
    shared = b.add(DynamicSharedMemoryOp.create(result_types=[SHARED]))
    shared.attributes[SHARED_BYTES] = IntegerAttr(size, i64)
    return shared.result


def shared_view(b: LoopBuilder, shared: SSAValue, element: Attribute, count: int) -> SSAValue:
    """Return the first `count` elements of the block's shared memory, as a buffer of this element type."""
    type = MemRefType(element, [count], memory_space=SHARED.memory_space)
    return b.add(memref.ViewOp(shared, b.index(0), [], type)).result
