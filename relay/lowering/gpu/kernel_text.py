"""LLVM IR text of a `gpu.module`: kernels whose buffers are pointers into the memory of the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import llvm, memref, vector
from xdsl.dialects.builtin import IntegerAttr, NoneAttr
from xdsl.ir import Operation, SSAValue

from relay.dialects.gpu import AddressSpaceAttr, DynamicSharedMemoryOp, FuncOp, ModuleOp, Space
from relay.dialects.source import words
from relay.errors import Unsupported
from relay.lowering.gpu.shared_text import SHARED, WORDS, structure
from relay.lowering.llvm.control import CONTROL
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.memory import MEMORY
from relay.lowering.llvm.scalar import SCALAR
from relay.lowering.llvm.types import type_name
from relay.lowering.plan_memory import root, size_of
from relay.lowering.shaped import Buffer, buffer_of, is_buffer, is_vector

ALIGNMENT = 16
"""What the buffers of a kernel start at multiples of, at least."""
SPACES = {Space.GLOBAL: 1, Space.WORKGROUP: 3, Space.PRIVATE: 5}


@dataclass(frozen=True)
class Convention:
    """How kernels are marked, and what their blocks' size is called."""

    kernel: str
    function: str
    attributes: str
    shared: str = ""
    """Further attributes of kernels whose threads share memory."""


NVPTX = Convention("ptx_kernel", "", 'nounwind "nvvm.reqntid"="{block}"', ' "nvvm.minctasm"="1"')
"""For one block on each processor: else the assembler keeps to 64 registers what needs a few more."""
SPIRV = Convention("spir_kernel", "spir_func ", "nounwind")
"""SPIR-V's blocks get their size from the launch."""


def space_of(type: Buffer) -> int:
    """The number of the memory that a buffer lies in; that of the device where it is not said."""
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
    """Writes one kernel. Each access to memory has its source behind it, as a comment."""

    def __init__(self, kernel: FuncOp, declarations: dict[str, str], convention: Convention):
        super().__init__(kernel, WRITERS, declarations)
        self.kernel = kernel
        self.convention = convention
        self.source = ""

    def text(self) -> str:
        """The kernel's text."""
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
        head = f"define {self.convention.kernel} void @{self.kernel.sym_name.data}({', '.join(arguments)}) {attributes}"
        return "\n".join([f"{head} {{", "entry:", *self.start, *self.lines, "}"])

    def operation(self, op: Operation) -> None:
        self.source = words(op.location) or op.name
        super().operation(op)

    def line(self, text: str) -> None:
        if "load " in text or "store " in text:
            text = f"{text} ; {self.source}".replace("\n", " ")
        super().line(text)

    def pointer(self, buffer: SSAValue) -> str:
        return f"ptr addrspace({space_of(buffer_of(buffer))})"


def stored_to(op: Operation) -> SSAValue | None:
    """The buffer that the operation writes."""
    if isinstance(op, memref.StoreOp):
        return op.memref
    return op.base if isinstance(op, vector.StoreOp | vector.MaskedStoreOp) else None


def write_call(w: FunctionWriter, op: Operation) -> None:
    """A function of the target's library, which it knows by its name."""
    assert isinstance(op, llvm.CallOp) and op.callee is not None and isinstance(w, KernelWriter)
    name = op.callee.string_value()
    result = "void" if op.returned is None else type_name(op.returned.type)
    w.declarations[name] = (
        f"declare {w.convention.function}{result} @{name}({', '.join(type_name(a.type) for a in op.args)}) nounwind"
    )
    text = f"call {w.convention.function}{result} @{name}({w.list(op.args)})"
    if op.returned is None:
        w.line(text)
    else:
        w.define(op.returned, text)


def write_return(w: FunctionWriter, op: Operation) -> None:
    """The end of the kernel."""
    w.line("ret void")


def write_fptosi(w: FunctionWriter, op: Operation) -> None:
    """Towards zero. Of a number just rounded, NVPTX and SPIR-V have no `lrint`, but convert it in one instruction."""
    w.define(op.results[0], f"fptosi {w.typed(op.operands[0])} to {type_name(op.results[0].type)}")


def write_extract(w: FunctionWriter, op: Operation) -> None:
    """A lane whose number is known, or one of the matrices that were read at once."""
    assert isinstance(op, vector.ExtractOp)
    (lane,) = op.static_position.get_values()
    if is_vector(op.result.type):
        word = w.emit(f"extractvalue {WORDS} {w.of(op.vector)}, {lane}")
        w.define(op.result, f"bitcast i32 {word} to {type_name(op.result.type)}")
        return
    w.define(op.results[0], f"extractelement {w.typed(op.vector)}, i64 {lane}")


def write_call_intrinsic(w: FunctionWriter, op: Operation) -> None:
    """An intrinsic by its full name; several results are one structure."""
    assert isinstance(op, llvm.CallIntrinsicOp)
    name, types = op.intrin.data, ", ".join(type_name(value.type) for value in op.args)
    if not op.results:
        w.declare(name, "void", types)
        w.line(f"call void @{name}({w.list(op.args)})")
        return
    result = structure(op.results[0].type)
    w.declare(name, result, types)
    w.define(op.results[0], f"call {result} @{name}({w.list(op.args)})")


def write_extract_value(w: FunctionWriter, op: Operation) -> None:
    """One of several results."""
    assert isinstance(op, llvm.ExtractValueOp)
    (number,) = op.position.get_values()
    w.define(op.res, f"extractvalue {structure(op.container.type)} {w.of(op.container)}, {number}")


OWN: Mapping[str, Writer] = {
    **SHARED,
    "llvm.call_intrinsic": write_call_intrinsic,
    "llvm.extractvalue": write_extract_value,
    "arith.fptosi": write_fptosi,
    "gpu.return": write_return,
    "llvm.call": write_call,
    "vector.extract": write_extract,
}
WRITERS: Mapping[str, Writer] = {**SCALAR, **MEMORY, **CONTROL, **OWN}


def kernels_text(module: ModuleOp, convention: Convention) -> str:
    """The text of all kernels of a module. Raises Unsupported for an operation that has no form on the device."""
    declarations: dict[str, str] = {}
    kernels: list[str] = []
    for op in module.body.block.ops:
        if isinstance(op, FuncOp):
            kernels.append(KernelWriter(op, declarations, convention).text())
        elif not isinstance(op, llvm.FuncOp):
            raise Unsupported(f"gpu: {op.name}", "is no kernel")
    return "\n".join([*kernels, *declarations.values()]) + "\n"
