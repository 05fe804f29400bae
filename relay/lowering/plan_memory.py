"""`plan-memory`: gives every buffer an offset in one arena, and every constant an offset in one blob."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, permutations, product
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from relay.dialects.op import created
from relay.dialects.plain import from_attribute
from relay.errors import RelayError
from relay.lowering.builder import INDEX
from relay.lowering.overlap import distance, overlap
from relay.lowering.shaped import Buffer, buffer_of, is_buffer, memref_type, root, size_of
from relay.passes import Pass
from relay.target import Target, target_of
from relay.transforms.dead_ops import erase_dead


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give every buffer and constant an offset in memory that the caller provides.

    Public functions get two more arguments for it, `constants` and `arena` (memrefs of bytes). Buffers whose live
    ranges do not overlap share memory. On microcontrollers and in C, a kernel's result may also overlap an input that
    nothing reads later, if that makes the arena smaller: it starts so far before the input that no byte is overwritten
    before it is read (`relay.lowering.overlap`). The kernel's `relay.overlapping` lists such arguments. A kernel's
    scratch memory becomes its last argument. The module's attribute `relay.constants` lists the constants (name,
    offset, value) and `relay.buffers` the plan: of `@main`, or of the last public function if there is no `@main`. A
    module that has `relay.constants` already is not changed.
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
        if self.holds(op):
            return
        target = target_of(op)
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp)}
        scratch = {
            name: hoist_scratch(function, target)
            for name, function in functions.items()
            if function.sym_visibility is not None and function.body.blocks
        }
        for name, function in sorted(functions.items(), key=lambda item: item[0] == "main"):
            if name not in scratch and function.body.blocks:
                plan(op, function, functions, scratch, target)


def planned_rows(module: ModuleOp, name: str) -> list[dict[str, Any]]:
    """The rows of a planned module's attribute `relay.constants` or `relay.buffers`, with texts and numbers as Python
    has them, and the value of a constant as its attribute. Raises RelayError if the module is not planned."""
    attr = module.attributes.get(name)
    if not isa(attr, ArrayAttr[DictionaryAttr]):
        raise RelayError("module", f"has no {name}", "run plan-memory first")
    return [
        {key: value if key == "value" else from_attribute(value, name) for key, value in row.data.items()}
        for row in attr
    ]


def bytes_type(size: int) -> Buffer:
    """Return the type of a memref of `size` bytes."""
    return memref_type(i8, size)


def view(base: SSAValue, offset: int, type: Buffer, before: Operation) -> SSAValue:
    """Return a buffer of this type at an offset in a memref of bytes."""
    at = created(arith.ConstantOp, (), [INDEX], {"value": IntegerAttr(offset, INDEX)}, location=before.location)
    viewed = memref_type(type.element_type, *type.get_shape())
    new = created(memref.ViewOp, [base, at.result], [viewed], location=before.location)
    Rewriter.insert_op([at, new], InsertPoint.before(before))
    return new.result


def hoist_scratch(function: func.FuncOp, target: Target) -> int:
    """Turn the kernel's allocations into views of one more argument; return its size in bytes, 0 without
    allocations."""
    block = function.body.block
    allocations = [op for op in block.ops if op.name == memref.AllocOp.name and isinstance(op, memref.AllocOp)]
    if not allocations:
        return 0
    types = [buffer_of(op.memref) for op in allocations]
    offsets = [0, *accumulate(target.room_of(size_of(type)) for type in types)]
    total = offsets.pop()
    scratch = block.insert_arg(bytes_type(total), len(block.args))
    for op, type, offset in zip(allocations, types, offsets, strict=True):
        Rewriter.replace_op(op, [], [view(scratch, offset, type, op)])
    function.update_function_type()
    return total


@dataclass
class Piece:
    """A piece of the arena with `room` bytes (`size` rounded up), live from op number `first` to `last`, both
    included."""

    name: str
    size: int
    room: int
    first: int
    last: int
    offset: int = -1

    @property
    def end(self) -> int:
        """The offset of the first byte after the piece."""
        return self.offset + self.room

    def row(self) -> DictionaryAttr:
        """Return the piece's name, offset, size, first and last op as a dictionary, an element of the attribute
        `relay.buffers`."""
        numbers = {"offset": self.offset, "size": self.size, "first": self.first, "last": self.last}
        return DictionaryAttr(
            {"name": StringAttr(self.name), **{key: IntegerAttr(number, i64) for key, number in numbers.items()}}
        )


TRIES = 16
"""The number of placement orders that are tried if results may overlap inputs; for six models, more orders found no
smaller arena."""
Distances = Mapping[tuple[str, str], int]
"""Maps a pair (result, input) of a call that is the last use of the input to the least number of bytes by which the
result has to start before the input, if they share memory. Both are given by name."""


def place(pieces: Sequence[Piece], distances: Distances | None = None) -> int:
    """Give every piece an offset so that pieces that are live together overlap only as `distances` allow; return the
    arena's size.

    Largest first, each in the lowest gap that fits: a simple rule, and close to the best for static plans. Source:
    Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (greedy by size). If results may
    overlap inputs, later pieces come first among equal sizes, because an input is placed after its result; then the
    placement is repeated several times, each time with the piece first that ended highest before, and the best is used.
    """
    best = sorted(pieces, key=lambda p: (-p.size, p.first, p.name))
    total, used = place_in_order(best, {}), dict[tuple[str, str], int]()
    if distances:
        order = sorted(best, key=lambda p: (-p.size, -p.first))
        for _ in range(TRIES):
            if (found := place_in_order(order, distances)) < total:
                total, best, used = found, order, dict(distances)
            highest = max(order, key=lambda p: p.end)
            order = [highest, *(piece for piece in order if piece is not highest)]
        for pair in list(used):
            rest = {key: distance for key, distance in used.items() if key != pair}
            used = rest if place_in_order(best, rest) <= total else used
    return place_in_order(best, used)


def place_in_order(pieces: Sequence[Piece], distances: Distances) -> int:
    """Give each piece, in this order, the lowest offset at which it overlaps no earlier piece that is live at the same
    time, except as `distances` allow; return the arena's size."""
    placed: list[Piece] = []
    for piece in pieces:
        taken: list[tuple[int, int]] = []
        for other in placed:
            if other.first <= piece.last and piece.first <= other.last:
                above, below = distances.get((other.name, piece.name)), distances.get((piece.name, other.name))
                start = other.offset - (piece.room if below is None else min(piece.room, below))
                end = other.offset + (other.room if above is None else min(other.room, above))
                taken.append((start, end))
        piece.offset = 0
        for start, end in sorted(taken):
            if piece.offset <= start:
                break
            piece.offset = max(piece.offset, end)
        placed.append(piece)
    return max((piece.end for piece in placed), default=0)


def plan(
    module: ModuleOp,
    function: func.FuncOp,
    functions: Mapping[str, func.FuncOp],
    scratch: Mapping[str, int],
    target: Target,
) -> None:
    """Plan the memory of one public function; `scratch`: the bytes of scratch memory that each kernel needs."""
    block = function.body.block
    buffers = lives(block, target)
    temporary: dict[func.CallOp, Piece] = {}
    for number, op in enumerate(steps(block)):
        if isinstance(op, func.CallOp) and (size := scratch.get(op.callee.string_value(), 0)):
            temporary[op] = Piece(f"scratch_{len(temporary)}", size, target.room_of(size), number, number)
    pieces = [*buffers.values(), *temporary.values()]
    pairs = overlays(block, buffers, functions, target) if target.overlays_results else []
    total = place(pieces, {(pair.result.name, pair.input.name): pair.distance for pair in pairs})
    for pair in pairs:
        if pair.result.offset < pair.input.end and pair.input.offset < pair.result.end:
            overlap(pair.kernel, pair.reads, pair.writes)
    module.attributes["relay.constants"] = ArrayAttr(place_constants(block, target))
    module.attributes["relay.buffers"] = ArrayAttr(piece.row() for piece in pieces)
    arena = block.insert_arg(bytes_type(max(total, target.alignment)), len(block.args))
    arena.name_hint = "arena"
    for op, piece in buffers.items():
        Rewriter.replace_op(op, [], [view(arena, piece.offset, buffer_of(op.memref), op)])
    for call, piece in temporary.items():
        call.operands = [*call.operands, view(arena, piece.offset, bytes_type(piece.size), call)]
    function.update_function_type()


@dataclass(frozen=True)
class Overlay:
    """A result that may overlap an input whose last use is the call that computes the result, if it starts at least
    `distance` bytes before the input. `reads` and `writes`: the numbers of the kernel's arguments that are the input
    and the result."""

    result: Piece
    input: Piece
    distance: int
    kernel: func.FuncOp
    reads: Sequence[int]
    writes: Sequence[int]


def overlays(
    block: Block, buffers: Mapping[memref.AllocOp, Piece], functions: Mapping[str, func.FuncOp], target: Target
) -> list[Overlay]:
    """Return the results of calls that may overlap their inputs."""
    found: list[Overlay] = []
    for number, op in enumerate(steps(block)):
        if not isinstance(op, func.CallOp) or not (kernel := functions[op.callee.string_value()]).body.blocks:
            continue
        places: dict[memref.AllocOp, list[int]] = {}
        for index, operand in enumerate(op.arguments):
            if isinstance(owner := root(operand).owner, memref.AllocOp):
                places.setdefault(owner, []).append(index)
        for (source, read), (result, written) in permutations(places.items(), 2):
            before, after = buffers[source], buffers[result]
            if before.last == number == after.first and before.first < number:
                least = max(distance(kernel, r, w) for r, w in product(read, written))
                least = -(-least // target.alignment) * target.alignment
                found.append(Overlay(after, before, least, kernel, read, written))
    return found


def steps(block: Block) -> Iterator[Operation]:
    """Yield the block's operations in the order in which they may be executed: an `scf.if` or `scf.while` comes before
    the operations inside it."""
    for op in block.ops:
        yield op
        if op.regions and isinstance(op, scf.IfOp | scf.WhileOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from steps(inner)


def lives(block: Block, target: Target) -> dict[memref.AllocOp, Piece]:
    """Return the block's allocations, each live from the first to the last operation that accesses it or a view of it;
    a buffer that exists before a loop and is used in it is live to the loop's end."""
    pieces: dict[memref.AllocOp, Piece] = {}
    order = list(steps(block))
    for number, op in enumerate(order):
        if isinstance(op, memref.AllocOp):
            size = size_of(buffer_of(op.memref))
            pieces[op] = Piece(f"buffer_{len(pieces)}", size, target.room_of(size), len(order), -1)
        inside = (op,) if not op.regions or isinstance(op, scf.IfOp | scf.WhileOp) else op.walk()
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
    """Return the first and last op number of each loop, inner loops first."""
    number = {op: i for i, op in enumerate(order)}
    found = [
        (i, max(number[inner] for inner in op.walk() if inner in number))
        for i, op in enumerate(order)
        if isinstance(op, scf.WhileOp)
    ]
    return found[::-1]


def place_constants(block: Block, target: Target) -> list[DictionaryAttr]:
    """Replace the constants by views of one more argument, equal constants by the same view; return the rows that list
    them.

    Constants that nothing reads any more, such as weights before they were packed, are omitted.
    """
    constants: list[tuple[bufferization.ToBufferOp, arith.ConstantOp]] = []
    for op in list(steps(block)):
        if isinstance(op, bufferization.ToBufferOp) and isinstance(constant := op.tensor.owner, arith.ConstantOp):
            if any(op.memref.uses):
                constants.append((op, constant))
            else:
                Rewriter.erase_op(op)
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
        Rewriter.replace_op(op, [], [view(blob, offsets[constant.value], buffer_of(op.memref), op)])
        erase_dead([constant])
    return rows
