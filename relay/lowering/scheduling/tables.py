"""Tables of 256 codes, read for a whole vector of codes at a time by the shuffles of the target (`shuffles`)."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import ExtUIOp
from relay.lowering.builder import INDEX, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import is_identity
from relay.lowering.scheduling.saturate import constant_of
from relay.lowering.scheduling.shuffles import PIECE, tables_of
from relay.lowering.shaped import buffer_of, shape_of


def reads_tables(features: frozenset[str]) -> bool:
    """Whether the target reads a table for many codes at once."""
    return bool(tables_of(features))


@dataclass(frozen=True)
class Lookup:
    """`result[i] = table[code[i] - lowest code]`."""

    codes: SSAValue
    result: SSAValue
    table: SSAValue
    signed: bool


def recognise_lookup(op: linalg.GenericOp) -> Lookup | None:
    """The table lookup that the operation is, and nothing else."""
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        return None
    if any(kind.data is not IteratorType.PARALLEL for kind in op.iterator_types):
        return None
    codes, result = op.inputs[0], op.outputs[0]
    if not all(is_identity(m.data, len(op.iterator_types)) for m in op.indexing_maps):
        return None
    if not all(contiguous(v.type) and buffer_of(v).element_type == i8 for v in (codes, result)):
        return None
    block, end = op.body.block, op.body.block.last_op
    load = None if end is None else end.operands[0].owner
    if not isinstance(load, memref.LoadOp) or len(load.indices) != 1 or shape_of(load.memref) != (256,):
        return None
    if buffer_of(load.memref).element_type != i8 or not contiguous(load.memref.type):
        return None
    cast = load.indices[0].owner
    if not isinstance(cast, arith.IndexCastOp) or not isinstance(wide := cast.input.owner, Operation):
        return None
    name = "arith.extui"
    if isinstance(wide, arith.AddiOp):
        if constant_of(wide.rhs) != 128:
            return None
        name, wide = "arith.extsi", wide.lhs.owner
    if not isinstance(wide, Operation) or wide.name != name or wide.operands[0] is not block.args[0]:
        return None
    return Lookup(codes, result, load.memref, name == "arith.extsi")


def emit_lookup(b: LoopBuilder, op: linalg.GenericOp, features: frozenset[str]) -> bool:
    """Emit the operation if it is a lookup that the target can do in vectors; False, and nothing is emitted, if not."""
    found = recognise_lookup(op)
    every = tables_of(features)
    if found is None or not every or shape_of(b.flatten(found.result))[0] < PIECE:
        return False
    codes, result = b.flatten(found.codes), b.flatten(found.result)
    size, start = shape_of(result)[0], 0
    for kind in every:
        end = size // kind.lanes * kind.lanes
        if start < end:
            table = kind(b, found.table, found.signed)
            with b.loop(start, end, kind.lanes, independent=True) as (k, _):
                b.vector_store(table.read(b.vector_load(codes, [k], kind.lanes)), result, [k])
            start = end
    with b.loop(start, size) as (k, _):
        if start < size:
            b.store(scalar(b, found, b.load(codes, [k])), result, [k])
    return True


def scalar(b: LoopBuilder, lookup: Lookup, code: SSAValue) -> SSAValue:
    """The entry of one code."""
    if lookup.signed:
        code = b.add(arith.XOrIOp(code, b.constant(-128, i8))).result
    at = b.add(arith.IndexCastOp(b.add(ExtUIOp(code, i32)).result, INDEX)).result
    return b.load(lookup.table, [at])
