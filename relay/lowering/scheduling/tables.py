"""Lookups of 8-bit codes in tables of 256 entries, done for a whole vector of codes at a time by the target's shuffles
(see `shuffles`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import ExtUIOp
from relay.lowering.builder import INDEX, Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import is_identity, is_parallel
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.saturate import constant_of
from relay.lowering.scheduling.shuffles import PIECE, TABLES, Table, tables_of
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, estimate
from relay.lowering.shaped import buffer_of, elements, shape_of


@dataclass(frozen=True)
class Lookup:
    """The operation `result[i] = table[code[i] - lowest code]`."""

    codes: SSAValue
    result: SSAValue
    table: SSAValue
    signed: bool


def recognise_lookup(op: linalg.GenericOp) -> Lookup | None:
    """Return the table lookup that the operation consists of, else None."""
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        return None
    if not is_parallel(op):
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
    if (found := code_of(load)) is None or found[0] is not block.args[0]:
        return None
    return Lookup(codes, result, load.memref, found[1])


def code_of(load: memref.LoadOp) -> tuple[SSAValue, bool] | None:
    """Return the code by which a load from a table of 256 entries is indexed, and whether the code is signed; None if
    the index is not computed from an 8-bit code."""
    cast = load.indices[0].owner
    if not isinstance(cast, arith.IndexCastOp) or not isinstance(wide := cast.input.owner, Operation):
        return None
    name = "arith.extui"
    if isinstance(wide, arith.AddiOp):
        if constant_of(wide.rhs) != 128:
            return None
        name, wide = "arith.extsi", wide.lhs.owner
    if not isinstance(wide, Operation) or wide.name != name or wide.operands[0].type != i8:
        return None
    return wide.operands[0], name == "arith.extsi"


@dataclass(frozen=True, kw_only=True)
class LookupSchedule(OpSchedule):
    """The decision about a table lookup. `tables`: the names of the kinds of register tables that are used. The kind
    with the most lanes looks up the codes that fill whole vectors; each kind with fewer lanes looks up codes that are
    left over."""

    strategy = "lookup"
    tables: tuple[str, ...]


@dataclass(frozen=True)
class LookupVectors(Strategy[LookupSchedule]):
    """A table in registers, read for a vector of codes at a time."""

    record = LookupSchedule
    any_length = True
    op: linalg.GenericOp
    found: Lookup

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (found := recognise_lookup(op)) is None:
            return None
        return cls(op, found) if tables_of(kernel.target) and elements(shape_of(found.result)) >= PIECE else None

    def decide(self, kernel: Kernel, pick: Picks) -> LookupSchedule:
        every = tuple(kind.__name__.lower() for kind in tables_of(kernel.target))
        size = elements(shape_of(self.found.result))
        pick("tables", [every[first:] for first in range(len(every))], every)
        lanes = tables_of(kernel.target)[0].lanes
        why = f"the table in registers, {lanes} codes at a time"
        return pick.schedule(LookupSchedule, estimate(kernel, self.op, size, lanes, 1), why)

    def emit(self, emission: Emission, schedule: LookupSchedule) -> None:
        b, found = emission.builder, self.found
        codes, result = b.flatten(found.codes), b.flatten(found.result)
        kinds = [kind for kind in TABLES if kind.__name__.lower() in schedule.tables]
        tables: dict[int, Table] = {}

        def keep(lanes: int) -> None:
            if lanes > 1:
                kind = next(kind for kind in kinds if kind.lanes == lanes)
                tables[lanes] = kind(b, found.table, found.signed)

        def look_up(k: Index, lanes: int) -> None:
            if lanes == 1:
                b.store(scalar(b, found, b.load(codes, [k])), result, [k])
            else:
                b.vector_store(tables[lanes].read(b.vector_load(codes, [k], lanes)), result, [k])

        widths = [*(kind.lanes for kind in kinds), 1]
        in_vectors(b, shape_of(result)[0], widths, look_up, independent=True, before=keep)


def scalar(b: LoopBuilder, lookup: Lookup, code: SSAValue) -> SSAValue:
    """Return the table's entry for one code."""
    if lookup.signed:
        code = b.add(arith.XOrIOp(code, b.constant(-128, i8))).result
    at = b.add(arith.IndexCastOp(b.add(ExtUIOp(code, i32)).result, INDEX)).result
    return b.load(lookup.table, [at])
