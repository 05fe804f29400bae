"""Writes loads, stores and views. A memref is a pointer; its static type makes every address a single GEP."""

from __future__ import annotations

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import to_numpy
from relay.dialects.memref import PrefetchOp
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.types import alignment, lanes, memory_type, suffix, type_name
from relay.lowering.shaped import buffer_of, scalar_of, size_of


def write_view(w: FunctionWriter, op: Operation) -> None:
    """Write the address of a byte of the arena."""
    assert isinstance(op, memref.ViewOp)
    shift = w.of(op.byte_shift)
    if shift == "0":
        w.names[op.result] = w.of(op.source)
    else:
        w.define(op.result, f"getelementptr inbounds i8, ptr {w.of(op.source)}, {w.index} {shift}")


def write_address(w: FunctionWriter, op: Operation) -> None:
    """Write the address of a buffer as an integer."""
    assert isinstance(op, memref.ExtractAlignedPointerAsIndexOp)
    w.define(op.aligned_pointer, f"ptrtoint {w.pointer(op.source)} {w.of(op.source)} to {w.index}")


def write_alloca(w: FunctionWriter, op: Operation) -> None:
    """Allocate stack memory until the end of the block."""
    assert isinstance(op, memref.AllocaOp)
    type = buffer_of(op.memref)
    align = 1 if op.alignment is None else op.alignment.value.data
    w.names[op.memref] = w.on_stack(f"alloca [{size_of(type)} x i8], align {max(align, alignment(type.element_type))}")


def write_alias(w: FunctionWriter, op: Operation) -> None:
    """Write a reshape or static subview: the same base pointer, with another type."""
    w.names[op.results[0]] = w.of(op.operands[0])


def alignment_of(op: Operation, vector: SSAValue) -> int:
    """Return the alignment in bytes that an access to a vector may assume."""
    if not op.attributes:
        return alignment(vector.type)
    known = op.attributes.get("alignment")
    return known.value.data if isinstance(known, IntegerAttr) else alignment(vector.type)


def to_memory(w: FunctionWriter, value: SSAValue) -> tuple[str, str, str]:
    """Return a value as it is stored in memory: its LLVM type, the suffix of this type in names of intrinsics, and the
    name of the value. Booleans are stored as bytes."""
    stored = memory_type(w.type(value))
    if stored == w.type(value):
        return stored, suffix(value.type), w.of(value)
    return stored, f"v{lanes(value.type)}i8", w.emit(f"zext {w.typed(value)} to {stored}")


def write_load(w: FunctionWriter, op: Operation) -> None:
    """Write the load of one element or of consecutive ones, aligned like one element or as the attribute `alignment`
    says."""
    (base, *indices), (result,) = op.operands, op.results
    at, kind = w.address(base, indices), w.type(result)
    where = f"{w.pointer(base)} {at}, align {alignment_of(op, result)}"
    if (stored := memory_type(kind)) == kind:
        w.define(result, f"load {kind}, {where}")
    else:
        w.define(result, f"trunc {stored} {w.emit(f'load {stored}, {where}')} to {kind}")


def write_store(w: FunctionWriter, op: Operation) -> None:
    """Write the store of one element or of consecutive ones, aligned like one element or as the attribute `alignment`
    says."""
    given, base, *indices = op.operands
    at = w.address(base, indices)
    type, _, value = to_memory(w, given)
    w.line(f"store {type} {value}, {w.pointer(base)} {at}, align {alignment_of(op, given)}")


def write_masked_load(w: FunctionWriter, op: Operation) -> None:
    """Write a masked load: lanes outside the mask come from `pass_thru`; their memory is not accessed."""
    assert isinstance(op, vector.MaskedLoadOp)
    at = w.address(op.base, op.indices, inside=False)
    type = op.result.type
    out, mangled, otherwise = to_memory(w, op.pass_thru)
    name = f"llvm.masked.load.{mangled}.p0"
    w.declare(name, out, f"ptr, i32, {type_name(op.mask.type)}, {out}")
    call = f"call {out} @{name}(ptr {at}, i32 {alignment(type)}, {w.typed(op.mask)}, {out} {otherwise})"
    if out == type_name(type):
        w.define(op.result, call)
    else:
        w.define(op.result, f"trunc {out} {w.emit(call)} to {type_name(type)}")


def only_lane(mask: SSAValue) -> int | None:
    """Return the lane of a constant mask with a single lane; None for other masks."""
    if not isinstance(mask.owner, arith.ConstantOp):
        return None
    chosen = to_numpy(mask.owner.value).reshape(-1).nonzero()[0]
    return int(chosen[0]) if chosen.size == 1 else None


def write_masked_store(w: FunctionWriter, op: Operation) -> None:
    """Write a masked store: the memory of lanes outside the mask is not changed.

    A single lane is stored as a scalar: for codes narrowed from i32, LLVM 22 for AVX-512 would store four bytes.
    """
    assert isinstance(op, vector.MaskedStoreOp)
    at = w.address(op.base, op.indices)
    type = op.value_to_store.type
    stored, mangled, value = to_memory(w, op.value_to_store)
    if (lane := only_lane(op.mask)) is not None:
        element, number = memory_type(type_name(scalar_of(type))), f"extractelement {stored} {value}, i64 {lane}"
        w.line(f"store {element} {w.emit(number)}, ptr {at}, align {alignment(type)}")
        return
    name = f"llvm.masked.store.{mangled}.p0"
    w.declare(name, "void", f"{stored}, ptr, i32, {type_name(op.mask.type)}")
    w.line(f"call void @{name}({stored} {value}, ptr {at}, i32 {alignment(type)}, {w.typed(op.mask)})")


def write_prefetch(w: FunctionWriter, op: Operation) -> None:
    """Write a prefetch of an element, which may be behind the end of the buffer."""
    assert isinstance(op, PrefetchOp)
    at = w.address(op.memref, op.indices, inside=False)
    w.declare("llvm.prefetch.p0", "void", "ptr, i32 immarg, i32 immarg, i32 immarg")
    hints = [attr.value.data for attr in (op.isWrite, op.localityHint, op.isDataCache)]
    w.line(f"call void @llvm.prefetch.p0(ptr {at}, {', '.join(f'i32 {abs(hint)}' for hint in hints)})")


MEMORY: dict[str, Writer] = {
    "memref.prefetch": write_prefetch,
    "memref.load": write_load,
    "memref.store": write_store,
    "memref.alloca": write_alloca,
    "memref.view": write_view,
    "memref.extract_aligned_pointer_as_index": write_address,
    **{f"memref.{name}": write_alias for name in ("collapse_shape", "expand_shape", "subview", "cast")},
    "vector.load": write_load,
    "vector.store": write_store,
    "vector.maskedload": write_masked_load,
    "vector.maskedstore": write_masked_store,
}
