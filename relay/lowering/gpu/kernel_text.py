"""Writes the LLVM IR text of a `gpu.module`: kernels whose buffers are pointers to device memory, and operations on
shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import llvm, memref, vector
from xdsl.dialects.builtin import IntegerAttr, NoneAttr
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects import nvgpu
from relay.dialects.attributes import dtype_of
from relay.dialects.gpu import AddressSpaceAttr, DynamicSharedMemoryOp, FuncOp, ModuleOp, Space
from relay.dialects.source import words
from relay.errors import Unsupported
from relay.lowering.llvm.control import CONTROL
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.memory import MEMORY
from relay.lowering.llvm.scalar import SCALAR
from relay.lowering.llvm.types import type_name
from relay.lowering.program import with_metadata
from relay.lowering.shaped import Buffer, buffer_of, is_buffer, is_vector, root, size_of

WORDS = "{ i32, i32, i32, i32 }"
COPY = "llvm.nvvm.cp.async.{past}.shared.global.{size}"
COMMIT, WAIT = "llvm.nvvm.cp.async.commit.group", "llvm.nvvm.cp.async.wait.group"
MATRICES = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
BLOCK_NUMBER = "llvm.nvvm.read.ptx.sreg.ctaid.x"
FEWEST = 1 << 17
"""The smallest upper bound of a block's number that is written into LLVM IR. With a smaller one, LLVM divides in 16
bits, which takes NVIDIA GPUs more instructions than a division in 32 bits."""
SHARED_NAME = "@shared"
SHARED_ALIGNMENT = 1024
"""The alignment of shared memory in bytes: eight rows of a factor that matrix units read."""
ALIGNMENT = 16
"""The minimum alignment of a kernel's buffers in bytes."""
SPACES = {Space.GLOBAL: 1, Space.WORKGROUP: 3, Space.PRIVATE: 5}


def write_shared(w: FunctionWriter, op: Operation) -> None:
    """Declare the shared memory of a block, whose size the kernel's launch gives, and name the op's result after it. If
    shared memory is an argument of the kernel, only name the result."""
    assert isinstance(op, DynamicSharedMemoryOp) and isinstance(w, KernelWriter)
    if w.convention.shared_argument:
        w.names[op.result] = w.convention.shared_argument
        return
    w.declarations[SHARED_NAME] = f"{SHARED_NAME} = external addrspace(3) global [0 x i8], align {SHARED_ALIGNMENT}"
    w.names[op.result] = SHARED_NAME


def write_copy(w: FunctionWriter, op: Operation) -> None:
    """Write an asynchronous copy of 4, 8 or 16 bytes."""
    assert isinstance(op, nvgpu.DeviceAsyncCopyOp)
    to, start = w.address(op.dst, op.dstIndices), w.address(op.src, op.srcIndices)
    size = op.dstElements.value.data * dtype_of(buffer_of(op.src).element_type).itemsize
    name = COPY.format(past="ca" if op.bypassL1 is None else "cg", size=size)
    w.declare(name, "void", f"{w.pointer(op.dst)}, {w.pointer(op.src)}")
    w.line(f"call void @{name}({w.pointer(op.dst)} {to}, {w.pointer(op.src)} {start})")


def write_group(w: FunctionWriter, op: Operation) -> None:
    """Write the end of a group of asynchronous copies."""
    w.declare(COMMIT, "void", "")
    w.line(f"call void @{COMMIT}()")


def write_wait(w: FunctionWriter, op: Operation) -> None:
    """Write a wait for groups of asynchronous copies."""
    assert isinstance(op, nvgpu.DeviceAsyncWaitOp)
    left = 0 if op.numGroups is None else op.numGroups.value.data
    w.declare(WAIT, "void", "i32")
    w.line(f"call void @{WAIT}(i32 {left})")


def write_matrices(w: FunctionWriter, op: Operation) -> None:
    """Write a load of four matrices at once."""
    assert isinstance(op, nvgpu.LdMatrixOp)
    at = w.address(op.srcMemref, op.indices)
    w.declare(MATRICES, WORDS, w.pointer(op.srcMemref))
    w.define(op.res, f"call {WORDS} @{MATRICES}({w.pointer(op.srcMemref)} {at})")


def write_insert(w: FunctionWriter, op: Operation) -> None:
    """Write the replacement of one lane of a vector."""
    assert isinstance(op, vector.InsertOp)
    (lane,) = op.static_position.get_values()
    w.define(op.result, f"insertelement {w.typed(op.dest)}, {w.typed(op.source)}, i64 {lane}")


def write_inline_asm(w: FunctionWriter, op: Operation) -> None:
    """Write PTX instructions for which LLVM has no intrinsics as inline assembly."""
    assert isinstance(op, llvm.InlineAsmOp)
    asm = "asm" if op.has_side_effects is None else "asm sideeffect"
    text = f'{asm} "{op.asm_string.data}", "{op.constraints.data}"({w.list(op.operands_)})'
    finish_call(w, op, f"call {result_type(op)} {text}")


def result_type(op: Operation) -> str:
    """Return the LLVM name of the type of an op's result: `void` if it has none; several results of a call form one
    structure."""
    return structure(op.results[0].type) if op.results else "void"


def structure(type: Attribute) -> str:
    """Return the LLVM name of a type, which may be a structure."""
    if isinstance(type, llvm.LLVMStructType):
        return f"{{ {', '.join(map(type_name, type.types))} }}"
    return type_name(type)


def finish_call(w: FunctionWriter, op: Operation, text: str) -> None:
    """Write the call `text`, which defines the op's result if it has one."""
    if op.results:
        w.define(op.results[0], text)
    else:
        w.line(text)


@dataclass(frozen=True)
class Convention:
    """The keywords and attributes of kernels and functions for one kind of device."""

    kernel: str
    function: str
    attributes: str
    shared: str = ""
    """Additional attributes of kernels that use shared memory."""
    shared_argument: str = ""
    """The name of the last argument of kernels that use shared memory, if it is passed as an argument; else empty."""


NVPTX = Convention("ptx_kernel", "", 'nounwind "nvvm.reqntid"="{block}"', ' "nvvm.minctasm"="1"')
"""The convention of PTX. `minctasm` asks for one block per processor: without it, the assembler limits kernels that
need a few more than 64 registers to 64, so that more blocks fit."""
SPIRV = Convention("spir_kernel", "spir_func ", "nounwind", shared_argument="%shared")
"""The convention of SPIR-V, in which the launch determines the size of blocks and of shared memory."""


def space_of(type: Buffer) -> int:
    """Return the number of a buffer's address space; that of global memory if the type has none. Raises Unsupported."""
    match type.memory_space:
        case NoneAttr():
            return SPACES[Space.GLOBAL]
        case AddressSpaceAttr(data=space):
            return SPACES[space]
        case IntegerAttr(value=number):
            return number.data
        case other:
            raise Unsupported(f"gpu: memory space {other}", "is not known")


class KernelWriter(FunctionWriter):
    """Writes one kernel. Each memory access has its source location as a comment."""

    def __init__(self, kernel: FuncOp, declarations: dict[str, str], convention: Convention):
        super().__init__(kernel, WRITERS, declarations)
        self.kernel = kernel
        self.convention = convention
        self.source = ""

    def text(self) -> str:
        """Return the text of the kernel."""
        block = self.kernel.body.block
        written = {root(buffer) for op in block.walk() if (buffer := stored_to(op)) is not None}
        arguments: list[str] = []
        for number, argument in enumerate(block.args):
            self.names[argument] = f"%arg{number}"
            if not is_buffer(argument.type):
                arguments.append(f"{type_name(argument.type)} %arg{number}")
                continue
            size = max(size_of(argument.type), 1)
            kind = f"noalias nocapture align {ALIGNMENT} dereferenceable({size})"
            if argument not in written:
                kind += " readonly"
            arguments.append(f"{self.pointer(argument)} {kind} %arg{number}")
        self.body(block)
        attributes = self.convention.attributes.format(block=self.kernel.block_size)
        if any(isinstance(op, DynamicSharedMemoryOp) for op in block.ops):
            attributes += self.convention.shared
            if self.convention.shared_argument:
                arguments.append(f"ptr addrspace(3) align {ALIGNMENT} {self.convention.shared_argument}")
        head = f"define {self.convention.kernel} void @{self.kernel.sym_name.data}({', '.join(arguments)}) {attributes}"
        return "\n".join([f"{head} {{", "entry:", *self.start, *self.lines, "}"])

    def operation(self, op: Operation) -> None:
        self.source = words(op.location) or op.name
        super().operation(op)

    def line(self, text: str) -> None:
        if "load " in text or "store " in text:
            text = f"{text} ; {self.source}".replace("\n", " ")
        super().line(text)

    def range_of(self, name: str) -> str:
        """If the intrinsic `name` returns the block's number and the size of the grid is known, return the LLVM
        attribute `range` for its result, followed by a space; else return an empty string. With this attribute, LLVM
        divides the number in 32 bits instead of 64."""
        if name != BLOCK_NUMBER or self.kernel.known_grid_size is None:
            return ""
        blocks, *_ = self.kernel.known_grid_size.iter_values()
        return f"range(i32 0, {max(blocks, FEWEST)}) "

    def pointer(self, buffer: SSAValue) -> str:
        return f"ptr addrspace({space_of(buffer_of(buffer))})"


def stored_to(op: Operation) -> SSAValue | None:
    """Return the buffer that the operation writes, else None."""
    if isinstance(op, memref.StoreOp):
        return op.memref
    return op.base if isinstance(op, vector.StoreOp | vector.MaskedStoreOp) else None


def write_call(w: FunctionWriter, op: Operation) -> None:
    """Write a call of a function of the target's library. A function without result is a barrier for all threads: it is
    marked convergent, so that LLVM neither puts a branch around it nor copies it into branches."""
    assert isinstance(op, llvm.CallOp) and op.callee is not None and isinstance(w, KernelWriter)
    name = op.callee.string_value()
    function = f"{w.convention.function}{result_type(op)} @{name}"
    attributes = "nounwind" if op.results else "convergent nounwind"
    w.declarations[name] = f"declare {function}({', '.join(type_name(a.type) for a in op.args)}) {attributes}"
    finish_call(w, op, f"call {function}({w.list(op.args)})")


def write_return(w: FunctionWriter, op: Operation) -> None:
    """Write the end of the kernel."""
    w.line("ret void")


def write_fptosi(w: FunctionWriter, op: Operation) -> None:
    """Write a conversion of a float to an integer, truncated towards zero. Floats that were just rounded are converted
    like this, too: NVPTX and SPIR-V have no `lrint`, which CPUs use there, but their compilers join rounding and
    truncation to one instruction."""
    w.define(op.results[0], f"fptosi {w.typed(op.operands[0])} to {type_name(op.results[0].type)}")


def write_extract(w: FunctionWriter, op: Operation) -> None:
    """Write the extraction of a lane with a constant number, or of one of the matrices of `ldmatrix`."""
    assert isinstance(op, vector.ExtractOp)
    (lane,) = op.static_position.get_values()
    if is_vector(op.result.type):
        word = w.emit(f"extractvalue {WORDS} {w.of(op.vector)}, {lane}")
        w.define(op.result, f"bitcast i32 {word} to {type_name(op.result.type)}")
        return
    w.define(op.results[0], f"extractelement {w.typed(op.vector)}, i64 {lane}")


def write_call_intrinsic(w: FunctionWriter, op: Operation) -> None:
    """Write a call of an intrinsic by its full name; several results form one structure."""
    assert isinstance(op, llvm.CallIntrinsicOp) and isinstance(w, KernelWriter)
    name, result = op.intrin.data, result_type(op)
    w.declare(name, result, ", ".join(type_name(value.type) for value in op.args))
    finish_call(w, op, f"call {w.range_of(name)}{result} @{name}({w.list(op.args)})")


def write_extract_value(w: FunctionWriter, op: Operation) -> None:
    """Write the extraction of one result of an intrinsic that returns several, as a structure."""
    assert isinstance(op, llvm.ExtractValueOp)
    (number,) = op.position.get_values()
    w.define(op.res, f"extractvalue {structure(op.container.type)} {w.of(op.container)}, {number}")


OWN: Mapping[str, Writer] = {
    "gpu.dynamic_shared_memory": write_shared,
    "nvgpu.device_async_copy": write_copy,
    "nvgpu.device_async_create_group": write_group,
    "nvgpu.device_async_wait": write_wait,
    "nvgpu.ldmatrix": write_matrices,
    "vector.insert": write_insert,
    "llvm.inline_asm": write_inline_asm,
    "llvm.call_intrinsic": write_call_intrinsic,
    "llvm.extractvalue": write_extract_value,
    "arith.fptosi": write_fptosi,
    "gpu.return": write_return,
    "llvm.call": write_call,
    "vector.extract": write_extract,
}
WRITERS: Mapping[str, Writer] = {**SCALAR, **MEMORY, **CONTROL, **OWN}


def kernels_text(module: ModuleOp, convention: Convention) -> str:
    """Return the text of all kernels of a module. Raises Unsupported for an operation that the device cannot
    execute."""
    declarations: dict[str, str] = {}
    kernels: list[str] = []
    for op in module.body.block.ops:
        if isinstance(op, FuncOp):
            kernels.append(KernelWriter(op, declarations, convention).text())
        elif not isinstance(op, llvm.FuncOp):
            raise Unsupported(f"gpu: {op.name}", "is no kernel")
    return with_metadata("\n".join([*kernels, *declarations.values()])) + "\n"
