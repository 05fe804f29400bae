"""Memory: loads, stores and views. A memref is a pointer; its static type gives every address as one GEP."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, memref, vector
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import dtype_of, to_numpy
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.types import alignment, suffix, type_name
from relay.lowering.shaped import buffer_of, scalar_of


def write_load(w: FunctionWriter, op: Operation) -> None:
    """One element; a boolean is a byte in memory."""
    assert isinstance(op, memref.LoadOp)
    element = type_name(op.res.type)
    at = w.address(op.memref, op.indices)
    if element == "i1":
        byte = w.emit(f"load i8, ptr {at}, align 1")
        w.define(op.res, f"trunc i8 {byte} to i1")
    else:
        w.define(op.res, f"load {element}, ptr {at}, align {alignment(op.res.type)}")


def write_store(w: FunctionWriter, op: Operation) -> None:
    """One element; a boolean is a byte in memory."""
    assert isinstance(op, memref.StoreOp)
    value = w.typed(op.value)
    at = w.address(op.memref, op.indices)
    if value.startswith("i1 "):
        value = f"i8 {w.emit(f'zext {value} to i8')}"
    w.line(f"store {value}, ptr {at}, align {alignment(op.value.type)}")


def write_view(w: FunctionWriter, op: Operation) -> None:
    """A pointer to a byte of the arena."""
    assert isinstance(op, memref.ViewOp)
    shift = w.of(op.byte_shift)
    if shift == "0":
        w.names[op.result] = w.of(op.source)
    else:
        w.define(op.result, f"getelementptr inbounds i8, ptr {w.of(op.source)}, i64 {shift}")


def write_alloca(w: FunctionWriter, op: Operation) -> None:
    """Memory on the stack, until the end of the block."""
    assert isinstance(op, memref.AllocaOp)
    type = buffer_of(op.memref)
    size = prod(type.get_shape()) * dtype_of(type.element_type).itemsize
    align = 1 if op.alignment is None else op.alignment.value.data
    w.names[op.memref] = w.on_stack(f"alloca [{size} x i8], align {max(align, alignment(type.element_type))}")


def write_alias(w: FunctionWriter, op: Operation) -> None:
    """A reshape or static subview: the same base pointer, another type."""
    w.names[op.results[0]] = w.of(op.operands[0])


def write_vector_load(w: FunctionWriter, op: Operation) -> None:
    """Consecutive elements, aligned as one."""
    assert isinstance(op, vector.LoadOp)
    at = w.address(op.base, op.indices)
    w.define(op.result, f"load {type_name(op.result.type)}, ptr {at}, align {alignment(op.result.type)}")


def write_vector_store(w: FunctionWriter, op: Operation) -> None:
    """Consecutive elements, aligned as one."""
    assert isinstance(op, vector.StoreOp)
    at = w.address(op.base, op.indices)
    w.line(f"store {w.typed(op.vector)}, ptr {at}, align {alignment(op.vector.type)}")


def write_masked_load(w: FunctionWriter, op: Operation) -> None:
    """Lanes that are not in the mask come from `pass_thru`; their memory is not touched."""
    assert isinstance(op, vector.MaskedLoadOp)
    at = w.address(op.base, op.indices, inside=False)
    type = op.result.type
    name, out = f"llvm.masked.load.{suffix(type)}.p0", type_name(type)
    w.declare(name, out, f"ptr, i32, {type_name(op.mask.type)}, {out}")
    arguments = f"ptr {at}, i32 {alignment(type)}, {w.typed(op.mask)}, {w.typed(op.pass_thru)}"
    w.define(op.result, f"call {out} @{name}({arguments})")


def only_lane(mask: SSAValue) -> int | None:
    """The lane of a constant mask that has just one."""
    if not isinstance(mask.owner, arith.ConstantOp):
        return None
    lanes = to_numpy(mask.owner.value).reshape(-1).nonzero()[0]
    return int(lanes[0]) if lanes.size == 1 else None


def write_masked_store(w: FunctionWriter, op: Operation) -> None:
    """Lanes that are not in the mask leave their memory as it is.

    A single lane is stored as a scalar: of codes narrowed from i32, LLVM 22 for AVX-512 stores four bytes otherwise.
    """
    assert isinstance(op, vector.MaskedStoreOp)
    at = w.address(op.base, op.indices)
    type = op.value_to_store.type
    if (lane := only_lane(op.mask)) is not None:
        value = w.emit(f"extractelement {w.typed(op.value_to_store)}, i64 {lane}")
        w.line(f"store {type_name(scalar_of(type))} {value}, ptr {at}, align {alignment(type)}")
        return
    name = f"llvm.masked.store.{suffix(type)}.p0"
    w.declare(name, "void", f"{type_name(type)}, ptr, i32, {type_name(op.mask.type)}")
    w.line(f"call void @{name}({w.typed(op.value_to_store)}, ptr {at}, i32 {alignment(type)}, {w.typed(op.mask)})")


MEMORY: dict[str, Writer] = {
    "memref.load": write_load,
    "memref.store": write_store,
    "memref.alloca": write_alloca,
    "memref.view": write_view,
    "memref.collapse_shape": write_alias,
    "memref.expand_shape": write_alias,
    "memref.subview": write_alias,
    "memref.cast": write_alias,
    "vector.load": write_vector_load,
    "vector.store": write_vector_store,
    "vector.maskedload": write_masked_load,
    "vector.maskedstore": write_masked_store,
}
