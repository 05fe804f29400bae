"""LLVM IR text of what threads do with memory that they share."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import llvm, memref, vector
from xdsl.ir import Attribute, Operation

from relay.dialects import nvgpu
from relay.dialects.attributes import dtype_of
from relay.dialects.gpu import DynamicSharedMemoryOp
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.types import type_name
from relay.lowering.shaped import buffer_of

WORDS = "{ i32, i32, i32, i32 }"
COPY = "llvm.nvvm.cp.async.{past}.shared.global.{size}"
COMMIT, WAIT = "llvm.nvvm.cp.async.commit.group", "llvm.nvvm.cp.async.wait.group"
MATRICES = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
SHARED_NAME = "@shared"
ALIGNMENT = 1024
"""What shared memory starts at a multiple of: eight rows of a factor that matrix units read."""


def write_shared(w: FunctionWriter, op: Operation) -> None:
    """The memory of the block, whose size the launch gives."""
    assert isinstance(op, DynamicSharedMemoryOp)
    w.declarations[SHARED_NAME] = f"{SHARED_NAME} = external addrspace(3) global [0 x i8], align {ALIGNMENT}"
    w.names[op.result] = SHARED_NAME


def write_copy(w: FunctionWriter, op: Operation) -> None:
    """4, 8 or 16 bytes."""
    assert isinstance(op, nvgpu.DeviceAsyncCopyOp)
    to, start = w.address(op.dst, op.dstIndices), w.address(op.src, op.srcIndices)
    size = op.dstElements.value.data * dtype_of(buffer_of(op.src).element_type).itemsize
    name = COPY.format(past="ca" if op.bypassL1 is None else "cg", size=size)
    w.declare(name, "void", f"{w.pointer(op.dst)}, {w.pointer(op.src)}")
    w.line(f"call void @{name}({w.pointer(op.dst)} {to}, {w.pointer(op.src)} {start})")


def write_group(w: FunctionWriter, op: Operation) -> None:
    """The end of a group of copies."""
    w.declare(COMMIT, "void", "")
    w.line(f"call void @{COMMIT}()")


def write_wait(w: FunctionWriter, op: Operation) -> None:
    """Wait for groups of copies."""
    assert isinstance(op, nvgpu.DeviceAsyncWaitOp)
    left = 0 if op.numGroups is None else op.numGroups.value.data
    w.declare(WAIT, "void", "i32")
    w.line(f"call void @{WAIT}(i32 {left})")


def write_matrices(w: FunctionWriter, op: Operation) -> None:
    """Four matrices at once."""
    assert isinstance(op, nvgpu.LdMatrixOp)
    at = w.address(op.srcMemref, op.indices)
    w.declare(MATRICES, WORDS, w.pointer(op.srcMemref))
    w.define(op.res, f"call {WORDS} @{MATRICES}({w.pointer(op.srcMemref)} {at})")


def write_insert(w: FunctionWriter, op: Operation) -> None:
    """A vector with another number in a lane."""
    assert isinstance(op, vector.InsertOp)
    (lane,) = op.static_position.get_values()
    w.define(op.result, f"insertelement {w.typed(op.dest)}, {w.typed(op.source)}, i64 {lane}")


def write_pointer(w: FunctionWriter, op: Operation) -> None:
    """The address of a buffer, in its kind of memory."""
    assert isinstance(op, memref.ExtractAlignedPointerAsIndexOp)
    w.define(op.aligned_pointer, f"ptrtoint {w.pointer(op.source)} {w.of(op.source)} to i64")


def write_inline_asm(w: FunctionWriter, op: Operation) -> None:
    """Instructions of PTX that LLVM has no intrinsics for."""
    assert isinstance(op, llvm.InlineAsmOp)
    result = "void" if op.res is None else structure(op.res.type)
    text = f'call {result} asm sideeffect "{op.asm_string.data}", "{op.constraints.data}"({w.list(op.operands_)})'
    if op.res is None:
        w.line(text)
    else:
        w.define(op.res, text)


def structure(type: Attribute) -> str:
    """The name of a type that may be a structure."""
    if isinstance(type, llvm.LLVMStructType):
        return f"{{ {', '.join(map(type_name, type.types))} }}"
    return type_name(type)


SHARED: Mapping[str, Writer] = {
    "gpu.dynamic_shared_memory": write_shared,
    "nvgpu.device_async_copy": write_copy,
    "nvgpu.device_async_create_group": write_group,
    "nvgpu.device_async_wait": write_wait,
    "nvgpu.ldmatrix": write_matrices,
    "vector.insert": write_insert,
    "memref.extract_aligned_pointer_as_index": write_pointer,
    "llvm.inline_asm": write_inline_asm,
}
