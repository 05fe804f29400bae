"""Elementwise operations that read tables: first the entries, into a row of scratch memory, then the arithmetic in
vectors.

Entries are read one by one, because gathers are no faster than the same number of loads. If the target has an
instruction that permutes 128 bytes, 64 entries of 32 bits are read at once, as four tables of bytes. The arithmetic on
the entries, for example rescaling, is many times as fast in vectors, and the row of entries stays in the first-level
cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Self

from xdsl.dialects import memref
from xdsl.dialects.builtin import i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import minus, remainder
from relay.lowering.scheduling.body import Lifter, clone_scalar, lifts
from relay.lowering.scheduling.elementwise import (
    Elementwise,
    ElementwiseSchedule,
    apart,
    extents,
    has_whole_vectors,
    in_rows,
    pick_flat,
    pick_lanes,
)
from relay.lowering.scheduling.loops import in_vectors, over
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.shuffles import ENTRIES, Planes
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, at_once, turn
from relay.lowering.scheduling.tables import code_of
from relay.lowering.shaped import Extent, at_most, shape_of
from relay.target import LANES, CpuTarget


@dataclass(frozen=True)
class Stages:
    """The body of an elementwise operation that looks up elements of a constant table, split in two: `read` yields the
    entries looked up, and `use`, which takes them as additional last arguments, computes the results from them.
    `codes` is a variant of `read` that yields the indices of the entries."""

    read: Block
    codes: Block
    use: Block


def stages_of(block: Block, least: int) -> tuple[list[Operation], list[Operation]] | None:
    """Return the loads of tables with the ops that they depend on, and the ops that use the entries; None if the body
    reads no table, has fewer than `least` ops that use the entries, or cannot be split."""
    end = block.last_op
    loads = [op for op in block.ops if isinstance(op, memref.LoadOp)]
    early = needed(loads)
    late = [op for op in block.ops if op not in early and op is not end]
    if not loads or end is None or len(late) < least:
        return None
    if not all(op in loads or lifts(op) for op in block.ops if op is not end):
        return None
    if any(use.operation not in early for op in early if op not in loads for use in op.results[0].uses):
        return None
    return [op for op in block.ops if op in early], late


def split(block: Block, early: Sequence[Operation], late: Sequence[Operation]) -> Stages:
    """Split the body of an elementwise operation into the ops `early`, which load table entries, and the ops `late`,
    which compute with the entries."""
    loads = loads_of(early)
    entries = [load.res for load in loads]
    end = block.last_op
    assert end is not None
    codes = [found[0] for load in loads if (found := code_of(load)) is not None]
    before = needed([code.owner for code in codes if isinstance(code.owner, Operation)])
    return Stages(
        part(block, [], early, entries),
        part(block, [], [op for op in early if op in before], codes),
        part(block, entries, late, end.operands),
    )


def loads_of(ops: Sequence[Operation]) -> list[memref.LoadOp]:
    """Return the `memref.load` ops: in the body of an elementwise operation, these load entries of lookup tables."""
    return [op for op in ops if isinstance(op, memref.LoadOp)]


def can_shuffle(loads: Sequence[memref.LoadOp], target: CpuTarget) -> bool:
    """Whether all loaded entries have 32 bits, come from tables of 256 entries, and can be read 64 at a time."""
    return "bytes" in target.tables and all(
        shape_of(load.memref) == (ENTRIES,) and load.res.type == i32 and code_of(load) is not None for load in loads
    )


def needed(loads: Sequence[Operation]) -> set[Operation]:
    """Return the operations `loads`, and the operations of the same block on which they depend, directly or
    indirectly."""
    found: set[Operation] = set()
    waiting = [*loads]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting += [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner.parent is op.parent]
    return found


def part(block: Block, more: Sequence[SSAValue], ops: Sequence[Operation], results: Sequence[SSAValue]) -> Block:
    """Return a block of copies of the ops `ops`, which yields `results`. Its arguments correspond to those of `block`,
    followed by the values `more`."""
    old = [*block.args, *more]
    new = Block(arg_types=[value.type for value in old])
    values: dict[SSAValue, SSAValue] = dict(zip(old, new.args, strict=True))
    for op in ops:
        new.add_op(op.clone(values))
    new.add_op(linalg.YieldOp(*(values.get(value, value) for value in results)))
    return new


@dataclass(frozen=True, kw_only=True)
class StagedSchedule(ElementwiseSchedule):
    """The schedule of an elementwise operation that first reads table entries into a row of scratch memory, then
    computes with them. `row`: the number of entries in the row; `shuffles`: whether 64 entries are read at a time, from
    tables in registers."""

    strategy = "staged"
    row: int
    shuffles: bool


@dataclass(frozen=True)
class Staged(Strategy[StagedSchedule]):
    """An elementwise operation with much arithmetic on entries that it looks up in tables. The entries are first read
    into a row of scratch memory; then the arithmetic is computed in vectors."""

    record = StagedSchedule
    any_length = True
    op: linalg.GenericOp
    early: Sequence[Operation]
    late: Sequence[Operation]
    shuffled: bool

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or not in_rows(op):
            return None
        block, size = op.body.block, at_most(extents(op)[-1])
        if size < Planes.lanes and has_whole_vectors(block):
            return None
        shuffled = can_shuffle(loads_of(list(block.ops)), kernel.target) and size >= Planes.lanes
        stages = stages_of(block, 0 if shuffled else kernel.target.costs.staged_operations)
        return None if stages is None else cls(op, *stages, shuffled)

    def decide(self, kernel: Kernel, pick: Picks) -> StagedSchedule:
        op, block, flat, sizes = self.op, self.op.body.block, pick_flat(self.op, pick), extents(self.op)
        size = prod(sizes) if flat else sizes[-1]
        entries = [load.res for load in loads_of(self.early)]
        lanes, _ = pick_lanes(block, size, kernel.target, pick, entries)
        best, late = kernel.target.costs.staged_row, len(self.late) / at_once(kernel.target, lanes[0])
        pick("row", tuple(dict.fromkeys((256, 512, 1024, 2048, best))), best)
        part = (len(self.early) + late) / (len(self.early) + len(self.late))
        cycles = round(prod(map(at_most, sizes)) * part * turn(kernel, op))
        why = f"entries of tables first, {lanes[0]} used at a time"
        pick.may("overlap", apart(op))
        pick.may("shuffles", self.shuffled)
        return pick.schedule(StagedSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: StagedSchedule) -> None:
        stages, b = split(self.op.body.block, self.early, self.late), emission.builder
        table = cache(partial(Planes, b))
        found = [(load.memref, code_of(load)) for load in loads_of(self.early)] if schedule.shuffles else []
        tables = [table(entries, code[1]) for entries, code in found if code is not None]
        StagedRows(b, self.op, stages, schedule, tables).emit()
        for block in (stages.read, stages.codes, stages.use):
            block.erase(safe_erase=False)


class StagedRows(Elementwise):
    """Emits one elementwise operation: the table entries of a whole row are read before the arithmetic on them."""

    def __init__(
        self,
        builder: LoopBuilder,
        op: linalg.GenericOp,
        stages: Stages,
        schedule: StagedSchedule,
        tables: Sequence[Planes],
    ):
        super().__init__(builder, op, stages.use, schedule)
        self.stages, self.schedule, self.tables = stages, schedule, tables

    def emit(self) -> None:
        b, size, row = self.b, self.sizes[-1], self.schedule.row
        if isinstance(size, Extent):
            self.emit_any(size)
            return
        with b.loops(self.sizes[:-1]) as outer:
            over(b, size, row, lambda start, count: self.row(outer, start, count), independent=True)

    def emit_any(self, size: Extent) -> None:
        """Emit rows whose size is known only at run time."""
        b = self.b
        with b.loops(self.sizes[:-1]) as outer:
            row, end = self.schedule.row, b.length(size)
            rest = remainder(b, end, row)
            whole = minus(b, end, rest)
            if row < size:
                with b.loop(0, whole, row, independent=True) as (start, _):
                    self.row(outer, start, row)
            self.row(outer, whole if row < size else 0, rest if row < size else end, min(row, at_most(size)))

    def row(self, outer: Sequence[Index], start: Index, count: Index, most: int = 0) -> None:
        """Emit the computation of `count` neighbouring elements of a row from `start` on; `most` is the largest
        possible `count` if it is known only at run time."""
        b, read = self.b, self.stages.read
        entries = read.last_op
        assert entries is not None
        room = count if isinstance(count, int) else most
        rooms = [b.add(memref.AllocaOp.get(entry.type, 64, [room])).memref for entry in entries.operands]

        def read_some(k: Index, lanes: int) -> None:
            dims = [*outer, b.plus(start, k)]
            if lanes == 1:
                values = clone_scalar(b, read, self.values(read, dims, 1), dims)
                for value, room in zip(values, rooms, strict=True):
                    b.store(value, room, [k])
                return
            codes = Lifter(b, lanes).emit(self.stages.codes, self.values(self.stages.codes, dims, lanes))
            for table, code, room in zip(self.tables, codes, rooms, strict=True):
                for number, entries in enumerate(table.read(code)):
                    b.vector_store(entries, room, [b.plus(k, number * LANES)])

        in_vectors(b, count, [*([Planes.lanes] if self.tables else []), 1], read_some, overlap=Planes.lanes)
        most = self.overlap if isinstance(count, int) else 0
        in_vectors(b, count, self.widths, lambda k, lanes: self.entries(outer, start, k, rooms, lanes), overlap=most)

    def entries(self, outer: Sequence[Index], start: Index, k: Index, rooms: Sequence[SSAValue], lanes: int) -> None:
        """Emit the ops that use looked-up table entries, for `lanes` elements of the row at index `outer`, from element
        `start + k` on. The entries were stored before in the scratch buffers `rooms`, one for each table that the
        operation reads; element `start + k` has its entry at index `k`."""
        b, dims = self.b, [*outer, self.b.plus(start, k)]

        def values(first: int, lanes: int) -> list[SSAValue]:
            at = b.plus(k, first)
            read = [b.load(room, [at]) if lanes == 1 else b.vector_load(room, [at], lanes) for room in rooms]
            return self.values(self.stages.use, [*outer, b.plus(dims[-1], first)], lanes) + read

        self.write(self.compute(values, dims, lanes), dims, lanes)
