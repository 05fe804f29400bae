"""`plan-memory`: every buffer at a fixed offset of one arena, every constant at one of one blob."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import INDEX
from relay.lowering.shaped import Buffer, buffer_of, is_buffer, memref_type
from relay.passes import Pass
from relay.target import Target, target_of
from relay.transforms.dead_ops import erase_dead


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give every public function two more arguments, `constants` and `arena` (memrefs of bytes), and every buffer
    and constant its offset there. Buffers share memory when their lives do not overlap. A kernel's scratch becomes
    its last argument. The module's attribute `relay.constants` lists the constants (name, offset, value) and
    `relay.buffers` the plan: of `@main`, or of the last public function where none is called so.
    """

    name = "plan-memory"
    requires = ("loops",)
    establishes = ("planned",)
    invalidates = ()
    why = "assigns every buffer an offset in one arena"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return "relay.constants" in op.attributes

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp)}
        scratch = {
            name: hoist_scratch(function, target)
            for name, function in functions.items()
            if function.sym_visibility is not None and function.body.blocks
        }
        for name, function in sorted(functions.items(), key=lambda item: item[0] == "main"):
            if name not in scratch and function.body.blocks:
                plan(op, function, scratch, target)


def size_of(type: Buffer) -> int:
    """Bytes of a static memref."""
    return prod(type.get_shape()) * dtype_of(type.element_type).itemsize


def bytes_type(size: int) -> Buffer:
    """A memref of bytes."""
    return memref_type(i8, size)


def view(base: SSAValue, offset: int, type: Buffer, before: Operation) -> SSAValue:
    """The buffer of this type at an offset of a memref of bytes."""
    at = arith.ConstantOp.create(result_types=[INDEX], properties={"value": IntegerAttr(offset, INDEX)})
    viewed = memref_type(type.element_type, *type.get_shape())
    new = memref.ViewOp.create(operands=[base, at.result], result_types=[viewed])
    block = before.parent
    assert block is not None
    for op in (at, new):
        op.location = before.location
        block.insert_op_before(op, before)
    return new.result


def erase(op: Operation) -> None:
    """Take the operation out of its block, for good."""
    op.detach()
    op.erase()


def replace(op: Operation, value: SSAValue) -> None:
    """Let the value take the place of the operation's result."""
    op.results[0].replace_all_uses_with(value)
    erase(op)


def hoist_scratch(function: func.FuncOp, target: Target) -> int:
    """Make the kernel's allocations views of one more argument; returns its size, 0 if there are none."""
    block = function.body.block
    allocations = [op for op in block.ops if isinstance(op, memref.AllocOp)]
    if not allocations:
        return 0
    types = [buffer_of(op.memref) for op in allocations]
    offsets = [0, *accumulate(target.room_of(size_of(type)) for type in types)]
    total = offsets.pop()
    scratch = block.insert_arg(bytes_type(total), len(block.args))
    for op, type, offset in zip(allocations, types, offsets, strict=True):
        replace(op, view(scratch, offset, type, op))
    set_type(function)
    return total


def set_type(function: func.FuncOp) -> None:
    """Make the signature that of the entry block."""
    inputs = [a.type for a in function.body.block.args]
    function.properties["function_type"] = FunctionType.from_lists(inputs, [])


@dataclass
class Piece:
    """A piece of the arena, of which `room` bytes are its: alive from the operation number `first` to `last`, both
    included."""

    name: str
    size: int
    room: int
    first: int
    last: int
    offset: int = -1

    @property
    def end(self) -> int:
        """Where the next piece may start."""
        return self.offset + self.room

    def row(self) -> DictionaryAttr:
        """The piece as `relay.buffers` tells it."""
        numbers = {"offset": self.offset, "size": self.size, "first": self.first, "last": self.last}
        return DictionaryAttr(
            {"name": StringAttr(self.name), **{key: IntegerAttr(number, i64) for key, number in numbers.items()}}
        )


def place(pieces: Sequence[Piece]) -> int:
    """Give every piece an offset so that no two that live at once overlap; returns the arena's size.

    Largest first, each in the lowest gap that fits: a simple rule, and close to the best for static plans. Source:
    Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (greedy by size).
    """
    placed: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: (-p.size, p.first, p.name)):
        together = [p for p in placed if p.first <= piece.last and piece.first <= p.last]
        piece.offset = 0
        for other in sorted(together, key=lambda p: p.offset):
            if piece.end <= other.offset:
                break
            piece.offset = max(piece.offset, other.end)
        placed.append(piece)
    return max((piece.end for piece in placed), default=0)


def root(value: SSAValue) -> SSAValue:
    """The buffer that the value is a reshape or view of."""
    while isinstance(op := value.owner, memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp):
        value = op.operands[0]
    return value


def plan(module: ModuleOp, function: func.FuncOp, scratch: Mapping[str, int], target: Target) -> None:
    """Plan one public function; `scratch` is the size that each kernel asks for."""
    block = function.body.block
    buffers = lives(block, target)
    temporary: dict[func.CallOp, Piece] = {}
    for number, op in enumerate(steps(block)):
        if isinstance(op, func.CallOp) and (size := scratch.get(op.callee.string_value(), 0)):
            temporary[op] = Piece(f"scratch_{len(temporary)}", size, target.room_of(size), number, number)
    pieces = [*buffers.values(), *temporary.values()]
    total = place(pieces)
    module.attributes["relay.constants"] = ArrayAttr(place_constants(block, target))
    module.attributes["relay.buffers"] = ArrayAttr(piece.row() for piece in pieces)
    arena = block.insert_arg(bytes_type(max(total, target.alignment)), len(block.args))
    arena.name_hint = "arena"
    for op, piece in buffers.items():
        replace(op, view(arena, piece.offset, buffer_of(op.memref), op))
    for call, piece in temporary.items():
        call.operands = [*call.operands, view(arena, piece.offset, bytes_type(piece.size), call)]
    set_type(function)


def steps(block: Block) -> Iterator[Operation]:
    """The block's operations in the order in which they may run: an `scf.if` or `scf.while`, then those inside."""
    for op in block.ops:
        yield op
        if isinstance(op, scf.IfOp | scf.WhileOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from steps(inner)


def lives(block: Block, target: Target) -> dict[memref.AllocOp, Piece]:
    """The block's allocations, each alive from the first to the last operation that touches it or a view of it; what
    a loop finds, to the loop's end."""
    pieces: dict[memref.AllocOp, Piece] = {}
    order = list(steps(block))
    for number, op in enumerate(order):
        if isinstance(op, memref.AllocOp):
            size = size_of(buffer_of(op.memref))
            pieces[op] = Piece(f"buffer_{len(pieces)}", size, target.room_of(size), len(order), -1)
        inside = (op,) if isinstance(op, scf.IfOp | scf.WhileOp) else op.walk()
        for operand in (value for inner in inside for value in inner.operands):
            if is_buffer(operand.type) and isinstance(owner := root(operand).owner, memref.AllocOp):
                piece = pieces[owner]
                piece.first, piece.last = min(piece.first, number), max(piece.last, number)
    for start, end in loops(order):
        for piece in pieces.values():
            if piece.first < start <= piece.last:
                piece.last = max(piece.last, end)
    return pieces


def loops(order: Sequence[Operation]) -> list[tuple[int, int]]:
    """The first and last number of what each loop holds, inner loops first."""
    number = {op: i for i, op in enumerate(order)}
    found = [
        (i, max(number[inner] for inner in op.walk() if inner in number))
        for i, op in enumerate(order)
        if isinstance(op, scf.WhileOp)
    ]
    return found[::-1]


def place_constants(block: Block, target: Target) -> list[DictionaryAttr]:
    """Let the constants come from one more argument, equal ones from one place; returns the rows that list them.

    Constants that nothing reads any more, such as weights before they were packed, are left out.
    """
    constants: list[tuple[bufferization.ToBufferOp, arith.ConstantOp]] = []
    for op in list(steps(block)):
        if isinstance(op, bufferization.ToBufferOp) and isinstance(constant := op.tensor.owner, arith.ConstantOp):
            if any(op.memref.uses):
                constants.append((op, constant))
            else:
                erase(op)
                erase_dead([constant])
    offsets: dict[Attribute, int] = {}
    names: dict[str, int] = {}
    rows: list[DictionaryAttr] = []
    total = 0
    for op, constant in constants:
        if constant.value in offsets:
            continue
        name = constant.result.name_hint or f"constant_{len(rows)}"
        names[name] = count = names.get(name, -1) + 1
        label = StringAttr(f"{name}#{count}" if count else name)
        rows.append(DictionaryAttr({"name": label, "offset": IntegerAttr(total, i64), "value": constant.value}))
        offsets[constant.value] = total
        total += target.room_of(size_of(buffer_of(op.memref)))
    blob = block.insert_arg(bytes_type(max(total, target.alignment)), len(block.args))
    blob.name_hint = "constants"
    for op, constant in constants:
        replace(op, view(blob, offsets[constant.value], buffer_of(op.memref), op))
        erase_dead([constant])
    return rows
