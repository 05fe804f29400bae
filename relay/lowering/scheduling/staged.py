"""Elementwise operations that read tables: entries one by one into a row of scratch, then the arithmetic in vectors.

Gathers are no faster than as many loads. What is done with the entries, rescaling for one, is many times as fast in
vectors, and the row of entries stays in the first level of the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.body import LIFTED_DIALECTS, clone_scalar
from relay.lowering.scheduling.elementwise import Elementwise, in_rows

ROW = 1024
"""Entries that are read before any is used, at most."""

LEAST = 4
"""Operations on an entry that are worth storing it first."""


@dataclass(frozen=True)
class Stages:
    """A body in two parts. `read` yields entries of tables; `use` has them as its last arguments."""

    read: Block
    use: Block


def stages_of(block: Block) -> Stages | None:
    """The body in two parts; None where it reads no table, does little with the entries, or cannot be split."""
    end = block.last_op
    loads = [op for op in block.ops if isinstance(op, memref.LoadOp)]
    early = needed(loads)
    late = [op for op in block.ops if op not in early and op is not end]
    if not loads or end is None or len(late) < LEAST:
        return None
    if not all(op in loads or op.name.startswith(LIFTED_DIALECTS) for op in block.ops if op is not end):
        return None
    entries = [load.res for load in loads]
    if any(use.operation not in early for op in early if op not in loads for use in op.results[0].uses):
        return None
    read = part(block, [], [op for op in block.ops if op in early], entries)
    return Stages(read, part(block, entries, late, end.operands))


def needed(loads: Sequence[Operation]) -> set[Operation]:
    """These operations, and those before them in their block that they need."""
    found: set[Operation] = set()
    waiting = [*loads]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting += [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner.parent is op.parent]
    return found


def part(block: Block, more: Sequence[SSAValue], ops: Sequence[Operation], results: Sequence[SSAValue]) -> Block:
    """A block of copies of some operations. Its arguments are the block's, and `more`."""
    old = [*block.args, *more]
    new = Block(arg_types=[value.type for value in old])
    values: dict[SSAValue, SSAValue] = dict(zip(old, new.args, strict=True))
    for op in ops:
        new.add_op(op.clone(values))
    new.add_op(linalg.YieldOp(*(values.get(value, value) for value in results)))
    return new


def emit_staged(b: LoopBuilder, op: linalg.GenericOp, features: frozenset[str]) -> bool:
    """Emit the operation in two stages; False, and nothing is emitted, if it has none."""
    stages = stages_of(op.body.block) if in_rows(op) else None
    if stages is None:
        return False
    Staged(b, op, stages, features).emit()
    for block in (stages.read, stages.use):
        block.erase(safe_erase=False)
    return True


class Staged(Elementwise):
    """Emits one elementwise operation, a row of entries at a time."""

    def __init__(self, builder: LoopBuilder, op: linalg.GenericOp, stages: Stages, features: frozenset[str]):
        super().__init__(builder, op, stages.use, features)
        self.stages = stages

    def emit(self) -> None:
        b, size = self.b, self.sizes[-1]
        whole = size // ROW * ROW
        with ExitStack() as stack:
            outer: list[Index] = [stack.enter_context(b.loop(0, d, independent=True))[0] for d in self.sizes[:-1]]
            if whole:
                with b.loop(0, whole, ROW, independent=True) as (start, _):
                    self.row(outer, start, ROW)
            if whole < size:
                self.row(outer, whole, size - whole)

    def row(self, outer: Sequence[Index], start: Index, count: int) -> None:
        """So many neighbours."""
        b, read = self.b, self.stages.read
        entries = read.last_op
        assert entries is not None
        rooms = [b.add(memref.AllocaOp.get(entry.type, 64, [count])).memref for entry in entries.operands]
        with b.loop(0, count) as (k, _):
            dims = [*outer, b.plus(start, k)]
            values = clone_scalar(b, read, self.values(read, dims, 1), dims)
            for value, room in zip(values, rooms, strict=True):
                b.store(value, room, [k])
        done = 0
        for lanes in self.widths:
            end = done + (count - done) // lanes * lanes
            if done < end:
                with b.loop(done, end, lanes) as (k, _):
                    self.entries(outer, start, k, rooms, lanes)
            done = end

    def entries(self, outer: Sequence[Index], start: Index, k: Index, rooms: Sequence[SSAValue], lanes: int) -> None:
        """What is done with so many of the entries."""
        b, dims = self.b, [*outer, self.b.plus(start, k)]

        def values(first: int, lanes: int) -> list[SSAValue]:
            at = b.plus(k, first)
            read = [b.load(room, [at]) if lanes == 1 else b.vector_load(room, [at], lanes) for room in rooms]
            return self.values(self.stages.use, [*outer, b.plus(dims[-1], first)], lanes) + read

        self.write(self.compute(values, dims, lanes), dims, lanes)
