"""`plan-memory`: every buffer at a fixed offset of one arena, every constant at one of one blob."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import INDEX
from relay.passes import Pass

ALIGNMENT = 64
SLACK = 64
"""Bytes behind every buffer that a vector load may touch."""


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give every public function two more arguments, `constants` and `arena` (memrefs of bytes), and every buffer
    and constant its offset there. Buffers share memory when their lives do not overlap. A kernel's scratch becomes
    its last argument. The module's attribute `relay.constants` lists the constants: name, offset, value; `relay.buffers`
    tells the plan.
    """

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp)}
        scratch = {
            name: hoist_scratch(function)
            for name, function in functions.items()
            if function.sym_visibility is not None and function.body.blocks
        }
        for name, function in functions.items():
            if name not in scratch and function.body.blocks:
                plan(op, function, scratch)


def size_of(type: Attribute) -> int:
    """Bytes of a static memref."""
    assert isinstance(type, MemRefType)
    return prod(type.get_shape()) * dtype_of(type.element_type).itemsize


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def bytes_type(size: int) -> MemRefType[Attribute]:
    return MemRefType(i8, [size])


def view(base: SSAValue, offset: int, type: Attribute, before: Operation) -> SSAValue:
    """The buffer of this type at an offset of a memref of bytes."""
    assert isinstance(type, MemRefType)
    at = arith.ConstantOp.create(result_types=[INDEX], properties={"value": IntegerAttr(offset, INDEX)})
    new = memref.ViewOp(base, at, [], MemRefType(type.element_type, type.get_shape()))
    block = before.parent
    assert block is not None
    for op in (at, new):
        op.location = before.location
        block.insert_op_before(op, before)
    return new.result


def replace(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()


def hoist_scratch(function: func.FuncOp) -> int:
    """Make the kernel's allocations views of one more argument; returns its size, 0 if there are none."""
    block = function.body.block
    allocations = [op for op in block.ops if isinstance(op, memref.AllocOp)]
    if not allocations:
        return 0
    offsets, total = [0] * len(allocations), 0
    for number, op in enumerate(allocations):
        offsets[number] = total
        total += aligned(size_of(op.memref.type) + SLACK)
    scratch = block.insert_arg(bytes_type(total), len(block.args))
    for op, offset in zip(allocations, offsets, strict=True):
        replace(op, view(scratch, offset, op.memref.type, op))
    set_type(function)
    return total


def set_type(function: func.FuncOp) -> None:
    inputs = [a.type for a in function.body.block.args]
    function.properties["function_type"] = FunctionType.from_lists(inputs, [])


@dataclass
class Buffer:
    """A piece of the arena: alive from the operation number `start` to `end`, both included."""

    name: str
    size: int
    start: int
    end: int
    offset: int = -1


def place(buffers: Sequence[Buffer]) -> int:
    """Give every buffer an offset so that no two that live at once overlap; returns the arena's size.

    Largest first, each at the lowest gap that fits (best known simple rule for static plans).
    """
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.start, b.name)):
        size = aligned(buffer.size + SLACK)
        offset = 0
        for other in sorted((p for p in placed if p.start <= buffer.end and buffer.start <= p.end), key=lambda p: p.offset):
            if offset + size <= other.offset:
                break
            offset = max(offset, other.offset + aligned(other.size + SLACK))
        buffer.offset = offset
        placed.append(buffer)
        total = max(total, offset + size)
    return total


def roots(value: SSAValue) -> SSAValue:
    """The buffer that the value is a reshape or view of."""
    while isinstance(op := value.owner, memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp):
        value = op.operands[0]
    return value


def plan(module: ModuleOp, function: func.FuncOp, scratch: dict[str, int]) -> None:
    """Plan one public function."""
    block = function.body.block
    ops = list(block.ops)
    buffers: dict[Operation, Buffer] = {}
    for number, op in enumerate(ops):
        if isinstance(op, memref.AllocOp):
            buffers[op] = Buffer(f"buffer_{len(buffers)}", size_of(op.memref.type), len(ops), -1)
        for operand in (v for inner in op.walk() for v in inner.operands):
            if isinstance(operand.type, MemRefType) and isinstance(root := roots(operand).owner, memref.AllocOp):
                found = buffers[root]
                found.start, found.end = min(found.start, number), max(found.end, number)
    temporary: dict[func.CallOp, Buffer] = {}
    for number, op in enumerate(ops):
        if isinstance(op, func.CallOp) and scratch.get(op.callee.string_value(), 0):
            size = scratch[op.callee.string_value()]
            temporary[op] = Buffer(f"scratch_{len(temporary)}", size, number, number)
    every = [*buffers.values(), *temporary.values()]
    total = place(every)

    constants_argument = block.insert_arg(bytes_type(0), len(block.args))
    arena = block.insert_arg(bytes_type(max(total, ALIGNMENT)), len(block.args))
    arena.name_hint, constants_argument.name_hint = "arena", "constants"
    rows: list[Attribute] = []
    known: dict[Attribute, int] = {}
    names: dict[str, int] = {}
    offset = 0
    for op in ops:
        if not isinstance(op, bufferization.ToBufferOp) or not isinstance(op.tensor.owner, arith.ConstantOp):
            continue
        constant = op.tensor.owner
        if constant.value not in known:
            known[constant.value] = offset
            name = constant.result.name_hint or f"constant_{len(rows)}"
            names[name] = count = names.get(name, -1) + 1
            rows.append(
                DictionaryAttr(
                    {
                        "name": StringAttr(f"{name}#{count}" if count else name),
                        "offset": IntegerAttr(offset, i64),
                        "value": constant.value,
                    }
                )
            )
            offset += aligned(size_of(op.memref.type) + SLACK)
        replace(op, view(constants_argument, known[constant.value], op.memref.type, op))
        if not any(constant.result.uses):
            constant.detach()
            constant.erase()
    constants_type = bytes_type(max(offset, ALIGNMENT))
    real = block.insert_arg(constants_type, constants_argument.index)
    real.name_hint = "constants"
    constants_argument.replace_all_uses_with(real)
    block.erase_arg(constants_argument)
    for op, buffer in buffers.items():
        replace(op, view(arena, buffer.offset, op.results[0].type, op))
    for call, buffer in temporary.items():
        extra = view(arena, buffer.offset, bytes_type(buffer.size), call)
        call.operands = [*call.operands, extra]
    set_type(function)
    module.attributes["relay.constants"] = ArrayAttr(rows)
    module.attributes["relay.buffers"] = ArrayAttr(
        DictionaryAttr(
            {
                "name": StringAttr(b.name),
                "offset": IntegerAttr(b.offset, i64),
                "size": IntegerAttr(b.size, i64),
                "first": IntegerAttr(b.start, i64),
                "last": IntegerAttr(b.end, i64),
            }
        )
        for b in every
    )
