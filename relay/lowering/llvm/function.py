"""The class `FunctionWriter`, which writes the text of one function, line by line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from relay.errors import Unsupported
from relay.lowering.builder import ROLLED
from relay.lowering.llvm.rows import BINARY, CASTS, INTRINSICS
from relay.lowering.llvm.types import memory_type, suffix, type_name
from relay.lowering.overlap import overlapping
from relay.lowering.program import ROLLED_LOOP, FunctionText
from relay.lowering.shaped import Buffer, buffer_of, is_buffer, layout
from relay.transforms.location import place

if TYPE_CHECKING:
    from relay.dialects.gpu import FuncOp as GpuFuncOp

EXTERNALS = "%externals"
"""The name of the argument of a public function that points to the table of external functions."""

TEAM = "%team"
"""The argument with the team of threads, or null, of a function that has parallel loops or calls one that has."""

ENDS = ("scf.yield", "scf.reduce", "scf.condition")
"""Ops that end the body of a loop or branch."""


class FunctionWriter:
    """Writes one function. Basic blocks are opened as loops need them; `label` is the current one, for phis.

    `writers`: by an operation's name, the function that writes it, for operations without a row in the tables of the
    module `rows`. `declarations`: declarations of intrinsics by name, shared by all functions. `externals`: external
    functions with their positions in the table that a public function takes as an additional argument. `threaded`:
    the functions that take the team of threads as their last argument. `index_bits`: the bits of an index. `tasks`: the
    bodies of parallel loops, as separate functions.
    """

    def __init__(
        self,
        function: FuncOp | GpuFuncOp,
        writers: Mapping[str, Writer],
        declarations: dict[str, str],
        externals: Mapping[str, int] | None = None,
        threaded: Collection[str] = (),
        index_bits: int = 64,
    ):
        self.function = function
        self.writers = writers
        self.declarations = declarations
        self.externals = externals or {}
        self.threaded = threaded
        self.index = f"i{index_bits}"
        self.tasks: list[str] = []
        self.shared: Operation | None = None
        self.stack: list[list[tuple[str, str]]] = [[]]
        self.spare: dict[str, list[str]] = {}
        self.start: list[str] = []
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.types: dict[int, str] = {}
        self.layouts: dict[int, tuple[list[int], int, str]] = {}
        self.counter = 0
        self.label = "entry"

    def write(self) -> FunctionText:
        """Write the function and return its text."""
        block = self.function.body.block
        arguments: list[str] = []
        private = self.function.sym_visibility is not None
        calls_out = bool(self.externals) and not private  # the tensors of an external function are captured
        shared = overlapping(self.function)
        for number, argument in enumerate(block.args):
            self.names[argument] = f"%arg{number}"
            kinds = [*([] if number in shared else ["noalias"]), *([] if calls_out else ["nocapture"])]
            kind = "".join(f"{each} " for each in kinds) if is_buffer(argument.type) else ""
            arguments.append(f"{type_name(argument.type)} {kind}%arg{number}")
        self.body(block)
        if calls_out:
            arguments.append(f"ptr {EXTERNALS}")
        if self.function.sym_name.data in self.threaded:
            arguments.append(f"ptr {TEAM}")
        body = "\n".join(["entry:", *self.start, *self.lines, "}"])
        return FunctionText(self.function.sym_name.data, tuple(arguments), private, "\n".join(self.tasks), body)

    def task_writer(self, shared: Operation) -> FunctionWriter:
        """Return a writer for a range of iterations of a shared loop, which becomes a separate function."""
        inner = FunctionWriter(self.function, self.writers, self.declarations, self.externals, self.threaded)
        inner.shared = shared
        return inner

    def body(self, block: Block) -> None:
        """Write every op of the block, without the terminator of a loop."""
        self.stack.append([])
        for op in block.ops:
            if op.name not in ENDS:
                self.operation(op)
        for text, name in self.stack.pop():
            self.spare.setdefault(text, []).append(name)

    def operation(self, op: Operation) -> None:
        """Write one op. Raises Unsupported if it has no translation."""
        if (name := BINARY.get(op.name)) is not None:
            lhs, rhs = op.operands
            self.define(op.results[0], f"{name} {self.typed(lhs)}, {self.names[rhs]}")
        elif (name := CASTS.get(op.name)) is not None:
            result = op.results[0]
            self.define(result, f"{name} {self.typed(op.operands[0])} to {self.type(result)}")
        elif (name := INTRINSICS.get(op.name)) is not None:
            self.intrinsic(op.results[0], name, op.operands)
        elif (writer := self.writers.get(op.name)) is not None:
            writer(self, op)
        else:
            raise Unsupported(f"llvm-ir: {place(op)}", "has no translation", "run the passes up to plan-memory first")

    # Lines

    def line(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def labels(self, *words: str) -> list[str]:
        """Return names for new basic blocks."""
        self.counter += 1
        return [f"{word}{self.counter}" for word in words]

    def begin(self, label: str) -> None:
        """Start the basic block with this label."""
        self.lines.append(f"{label}:")
        self.label = label

    def emit(self, text: str) -> str:
        """Write an instruction, and return the name of its result."""
        self.counter += 1
        name = f"%v{self.counter}"
        self.lines.append(f"  {name} = {text}")
        return name

    def define(self, result: SSAValue, text: str) -> None:
        """Write an instruction that defines this value."""
        self.names[result] = self.emit(text)

    def reserve(self, text: str) -> str:
        """Write an instruction at the function's start, and return the name of its result."""
        name = self.fresh()
        self.start.append(f"  {name} = {text}")
        return name

    def on_stack(self, text: str) -> str:
        """Allocate stack memory until the end of the current block, reusing memory of blocks that have ended; return
        its name."""
        free = self.spare.get(text)
        name = free.pop() if free else self.reserve(text)
        self.stack[-1].append((text, name))
        return name

    def fresh(self) -> str:
        """Return an unused name."""
        self.counter += 1
        return f"%v{self.counter}"

    def of(self, value: SSAValue) -> str:
        """Return the value's name, or its literal if it is a constant."""
        return self.names[value]

    def typed(self, value: SSAValue) -> str:
        """Return the value's type and name."""
        return f"{self.type(value)} {self.names[value]}"

    def type(self, value: SSAValue) -> str:
        """Return the value's type in LLVM IR. Types are looked up by identity, which is faster than comparing them."""
        type = value.type
        found = self.types.get(id(type))
        if found is None:
            found = self.types[id(type)] = self.index if type.__class__ is IndexType else type_name(type)
        return found

    def list(self, values: Sequence[SSAValue]) -> str:
        """Return the values' types and names, separated by commas."""
        return ", ".join(self.typed(value) for value in values)

    # Intrinsics

    def declare(self, name: str, result: str, arguments: str) -> None:
        """Declare an intrinsic, once per module."""
        self.declarations[name] = f"declare {result} @{name}({arguments})"

    def intrinsic(self, result: SSAValue, name: str, operands: Sequence[SSAValue], flag: str = "") -> None:
        """Write a call of an intrinsic that is overloaded by its result's type; `flag`: the value of an additional
        argument of type `i1`."""
        out = self.type(result)
        full = f"{name}.{out if result.type.__class__ is IndexType else suffix(result.type)}"
        types = [self.type(value) for value in operands]
        self.declare(full, out, ", ".join([*types, "i1"] if flag else types))
        arguments = f"{self.list(operands)}, i1 {flag}" if flag else self.list(operands)
        self.define(result, f"call {out} @{full}({arguments})")

    # Memory

    def address(self, buffer: SSAValue, indices: Sequence[SSAValue], inside: bool = True) -> str:
        """Return a pointer to an element; LLVM folds the constant part of the index. `inside`: the element is known to
        be in bounds."""
        strides, offset, element = self.memory(buffer_of(buffer))
        total = str(offset) if offset else None
        for index, stride in zip(indices, strides, strict=True):
            term = self.of(index)
            if stride == 0 or term == "0":
                continue
            if stride != 1:
                term = self.emit(f"mul nsw {self.index} {term}, {stride}")
            total = term if total is None else self.emit(f"add nsw {self.index} {total}, {term}")
        if total is None:
            return self.of(buffer)
        flag = "inbounds " if inside else ""
        return self.emit(
            f"getelementptr {flag}{element}, {self.pointer(buffer)} {self.of(buffer)}, {self.index} {total}"
        )

    def memory(self, type: Buffer) -> tuple[list[int], int, str]:
        """Return the strides, the offset, and the element type in memory of a memref type. Results are cached by the
        type object's identity."""
        found = self.layouts.get(id(type))
        if found is None:
            strides, offset = layout(type)
            found = self.layouts[id(type)] = (strides, offset, memory_type(type_name(type.element_type)))
        return found

    def hints(self, loop: Operation) -> str:
        """Return the metadata of the branch back to the start of a loop."""
        return f", !llvm.loop {ROLLED_LOOP}" if ROLLED in loop.attributes else ""

    def pointer(self, buffer: SSAValue) -> str:
        """Return the pointer type for the memory of a buffer."""
        return "ptr"


Writer = Callable[[FunctionWriter, Operation], None]
"""A function that writes one op."""
