"""Row chains: operations on the same rows, all of which process a few rows before any processes the next ones.

Normalizations are such chains: what one operation writes of a row, the next one reads from the first-level cache. A
stage is the operations up to the end of a reduction. Each stage processes all of the few rows before the next stage
does: a row's sum is one long chain of dependent operations, and the processor overlaps several rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Self

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.indices import below, binary, either, minus, remainder
from relay.lowering.scheduling.affine import is_identity, is_parallel, kinds_of
from relay.lowering.scheduling.body import Lifter, can_lift, clone_scalar, vector_constant
from relay.lowering.scheduling.elementwise import (
    Elementwise,
    ElementwiseSchedule,
    apart,
    extents,
    in_rows,
    last_is_contiguous,
    pick_lanes,
)
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plain import read
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.reduction import (
    IDEMPOTENT,
    Join,
    Joined,
    across_lanes,
    in_pairs,
    joined_by,
    last_lanes,
    last_lanes_of,
    partial_results,
)
from relay.lowering.scheduling.sharing import itemsize
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, estimate
from relay.lowering.shaped import Extent, at_most, buffer_of, is_buffer, root, shape_of
from relay.target import LANES

JOINS = (*IDEMPOTENT, arith.AddfOp, arith.AddiOp)
"""The ops by which reductions along a row combine elements."""
Scheduled = linalg.GenericOp | linalg.FillOp


@dataclass(frozen=True, kw_only=True)
class InTurnSchedule(OpSchedule):
    """The decisions about a chain of operations on rows. `lanes`: widths of the vectors of operations on whole rows,
    the widest first: each covers the elements of a row that the wider ones do not reach; `partial`: the number of
    vectors of partial results of a reduction; `saturate`: whether 64 codes are narrowed at once; `rows`: the number of
    rows that a stage (the operations up to a reduction's end) processes before the next stage starts."""

    strategy = "in_turn"
    lanes: tuple[int, ...]
    partial: int
    saturate: bool
    rows: int


@dataclass(frozen=True)
class RowsInTurn(Strategy[InTurnSchedule]):
    """A chain of operations on the same rows, which have `size` elements each and are indexed by dimensions of the
    sizes `outer`: at least one reduction of each row, and after it an operation that writes rows and reads the
    reduction's result."""

    record = InTurnSchedule
    any_length = True
    op: linalg.GenericOp
    chain: tuple[Scheduled, ...]
    outer: tuple[int, ...]
    size: int

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, Scheduled) or (found := Chain.of(op)) is None:
            return None
        last = found.ops[-1]
        assert isinstance(last, linalg.GenericOp)
        return cls(last, tuple(found.ops), found.outer, found.size)

    @property
    def covers(self) -> Sequence[Operation]:
        return self.chain

    def decide(self, kernel: Kernel, pick: Picks) -> InTurnSchedule:
        read = max(itemsize(value) for op in self.chain for value in op.operands if is_buffer(value.type))
        here, costs = at_most(self.outer[-1]), kernel.target.costs
        fit = costs.scratch_bytes // (read * at_most(self.size)) if kernel.target.has_vectors else 1
        pick("rows", range(1, here + 1), min(max(fit, 1), costs.rows_of_stage, here))
        return self.decide_vectors(kernel, pick)

    def decide_vectors(self, kernel: Kernel, pick: Picks) -> InTurnSchedule:
        """Decide everything except the number of rows that each operation processes before the next one, which was
        picked before; return the schedule."""
        whole = [op for op in self.chain if isinstance(op, linalg.GenericOp) and writes_rows(op, self.outer, self.size)]
        ours = [pick_lanes(op.body.block, self.size, kernel.target, Picks()) for op in whole]
        saturate = pick.may("saturate", any(saturate for _, saturate in ours))
        best = sorted({lanes for widths, _ in ours for lanes in widths}, reverse=True)
        possible = [tuple(best), *((lanes, 1) for lanes in best if lanes != 1), (1,)]
        pick("lanes", [each for each in possible if not saturate or 64 in each], possible[0])
        pick.only("partial", kernel.target.costs.partial_results)
        generics = [op for op in self.chain if isinstance(op, linalg.GenericOp)]
        cycles = sum(estimate(kernel, op, prod(map(at_most, extents(op))), LANES) for op in generics)
        why = f"{len(generics)} operations on each of {prod(map(at_most, self.outer))} rows of {self.size}"
        return pick.schedule(InTurnSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: InTurnSchedule) -> None:
        b, (*outer, last), most = emission.builder, self.outer, schedule.rows
        with b.loops(outer) as dims, b.loop(0, last, most, independent=True) as (start, _):
            count: Index = most
            if isinstance(last, Extent) or last % most:
                left = minus(b, b.length(last) if isinstance(last, Extent) else last, start)
                count = most if most == 1 else binary(b, arith.MinUIOp, left, most)
            emit_stages(b, self, schedule, count, lambda x: Row(b, self, schedule, [*dims, b.plus(start, x)]))

    @property
    def stages(self) -> list[list[Scheduled]]:
        """The chain divided into stages; every stage but the last ends with a reduction and the operations that compute
        one value per row from it."""
        found, ended = [list[Scheduled]()], False
        for op in self.chain:
            if ended and not isinstance(op, linalg.FillOp) and not is_number(op, self.outer):
                found.append([])
                ended = False
            found[-1].append(op)
            ended = ended or (isinstance(op, linalg.GenericOp) and is_reduction(op))
        return found

    def needed_elsewhere(self, buffer: SSAValue) -> bool:
        """Whether operations outside the chain read the buffer, which has one value per row, or it is not allocated in
        the kernel."""
        others = any(use.operation not in self.chain for use in buffer.uses)
        return others or not isinstance(buffer.owner, memref.AllocOp)


def emit_stages(
    b: LoopBuilder, rows: RowsInTurn, schedule: InTurnSchedule, count: Index, row_of: Callable[[Index], Row]
) -> None:
    """Emit the chain's stages, which are successive operations up to a reduction of each row: each stage for all
    `count` rows, at most `schedule.rows`, before the next one. Values per row that later stages read are stored on the
    stack."""
    stages, rooms = rows.stages, dict[SSAValue, SSAValue]()
    fills = {op.outputs[0]: op.inputs[0] for op in rows.chain if isinstance(op, linalg.FillOp)}
    for number, stage in enumerate(stages):
        read = {value for op in stage for value in op.operands}
        later = {value for other in stages[number + 1 :] for op in other for value in op.operands}
        made = dict.fromkeys(v for op in stage if isinstance(op, linalg.GenericOp) for v in op.outputs)
        left = [v for v in made if v in later and len(shape_of(v)) == len(rows.outer)]
        for buffer in left:
            type = buffer_of(buffer).element_type
            rooms[buffer] = b.add(memref.AllocaOp.get(type, 64, [schedule.rows])).memref
        with b.loop(0, count) as (x, _):
            row = row_of(x)
            row.numbers |= {buffer: fills[buffer] for buffer in fills if buffer in read}
            row.numbers |= {v: b.load(room, [x]) for v, room in rooms.items() if v in read and v not in made}
            for op in stage:
                row.emit(op)
            for buffer in left:
                b.store(row.numbers[buffer], rooms[buffer], [x])
            for buffer in made:
                if buffer in row.numbers and rows.needed_elsewhere(buffer):
                    b.store(row.numbers[buffer], buffer, row.dims)


class Chain:
    """Consecutive operations of a kernel that process the same rows, such as the maximum, the exponentials and the
    sum of a softmax; the code computes all of them for one row (or a few) before the next."""

    def __init__(self, outer: tuple[int, ...], size: int):
        self.ops: list[Scheduled] = []
        self.outer, self.size = outer, size
        self.written: set[SSAValue] = set()

    @classmethod
    def of(cls, first: Scheduled, least: int = LANES, rows: int = 2) -> Chain | None:
        """Return the longest chain of operations on the same rows, of at least `least` elements each, that starts with
        `first`. Returns None if the chain is not worthwhile: it contains no reduction, or it has fewer than `rows` rows
        and none of its reductions reads several inputs."""
        op: Operation | None = first
        found: Chain | None = None
        while op is not None and not isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp | memref.CopyOp):
            if isinstance(op, Scheduled):
                found = found or cls.start(op, least)
                if found is None or not found.take(op):
                    break
            op = op.next_op
        return found if found is not None and found.trimmed(rows) else None

    @classmethod
    def start(cls, op: Scheduled, least: int) -> Chain | None:
        """Return an empty chain for the rows that operation `op` processes, or, if it is a fill, for those of the
        reduction that it initialises; None if the rows have fewer than `least` elements, or there are no rows."""
        if isinstance(op, linalg.FillOp):
            users = [use.operation for use in op.outputs[0].uses]
            generics = [user for user in users if isinstance(user, linalg.GenericOp) and is_reduction(user)]
            if not generics:
                return None
            op = generics[0]
        sizes = extents(op)
        return cls(tuple(sizes[:-1]), sizes[-1]) if len(sizes) > 1 and sizes[-1] >= least else None

    def take(self, op: Scheduled) -> bool:
        """Add an op to the chain if it processes the same rows, and reads only the current row of buffers that the
        chain writes."""
        if isinstance(op, linalg.FillOp):
            fits = shape_of(op.outputs[0]) == self.outer and contiguous(op.outputs[0].type)
        else:
            fits = self.fits(op) and all(
                self.is_here(value, map.data) for value, map in zip(op.operands, op.indexing_maps, strict=True)
            )
        if fits:
            self.ops.append(op)
            self.written.update(op.outputs)
        return fits

    def fits(self, op: linalg.GenericOp) -> bool:
        return (
            is_number(op, self.outer)
            or writes_rows(op, self.outer, self.size)
            or (is_reduction(op) and extents(op) == [*self.outer, self.size])
        )

    def is_here(self, value: SSAValue, map: AffineMap) -> bool:
        """Whether an operand is a buffer that the chain does not write, or the current row of one that it writes."""
        if value in self.written:
            return is_identity(map, len(shape_of(value)))
        return not is_buffer(value.type) or root(value) not in {root(other) for other in self.written}

    def trimmed(self, rows: int) -> bool:
        """Drop the operations after the last one that writes whole rows and depends on the result of a reduction.
        Return whether a reduction is left and the chain is worthwhile: it has at least `rows` rows, or one of its
        reductions reads several inputs."""
        given: set[SSAValue] = set()
        last = 0
        for number, op in enumerate(self.ops):
            if isinstance(op, linalg.FillOp):
                continue
            if is_reduction(op) or given.intersection(op.inputs):
                if writes_rows(op, self.outer, self.size):
                    last = number + 1
                else:
                    given.update(op.outputs)
        del self.ops[last:]
        reductions = [op for op in self.ops if isinstance(op, linalg.GenericOp) and is_reduction(op)]
        rows_here = prod(map(at_most, self.outer))
        return bool(reductions) and (rows_here >= rows or any(len(op.inputs) > 1 for op in reductions))


def is_number(op: linalg.GenericOp, outer: tuple[int, ...]) -> bool:
    """Whether the operation computes one value for each row."""
    written = op.indexing_maps.data[len(op.inputs) :]
    return is_parallel(op) and tuple(extents(op)) == outer and all(is_identity(map.data, len(outer)) for map in written)


def writes_rows(op: linalg.GenericOp, outer: tuple[int, ...], size: int) -> bool:
    """Whether the operation computes whole rows of `size` elements, indexed by outer dimensions of the sizes `outer`,
    and can be emitted on vectors."""
    return in_rows(op) and extents(op) == [*outer, size] and can_lift(op.body.block)


def is_reduction(op: linalg.GenericOp) -> bool:
    """Whether the operation reduces its last dimension, and only this one, by an op of `JOINS`, and its body can be
    emitted on vectors of neighbours of a row."""
    last = len(op.iterator_types) - 1
    if len(op.outputs) != 1 or kinds_of(op) != "p" * last + "r":
        return False
    maps, block = [map.data for map in op.indexing_maps], op.body.block
    total, end = block.args[-1], block.last_op
    if last == 0 or not is_identity(maps[-1], last) or end is None or not can_lift(block):
        return False
    join = end.operands[0].owner
    if not isinstance(join, JOINS) or total not in join.operands or not total.has_one_use():
        return False
    return all(last_is_contiguous(v, map, last + 1) for v, map in zip(op.inputs, maps, strict=False))


Kept = Mapping[SSAValue, tuple[SSAValue, Index]]
"""For each buffer whose current row is in scratch memory: this memory, and the offset at which the row starts in it."""


class Row:
    """Emits operations on one row. `numbers`: for each buffer with one value per row, its value for this row."""

    def __init__(
        self,
        builder: LoopBuilder,
        rows: RowsInTurn,
        schedule: InTurnSchedule,
        dims: Sequence[Index],
        kept: Kept = MappingProxyType({}),
    ):
        self.b, self.rows, self.schedule, self.dims, self.kept = builder, rows, schedule, dims, kept
        self.numbers: dict[SSAValue, SSAValue] = {}

    def emit(self, op: Scheduled) -> None:
        if isinstance(op, linalg.FillOp):
            self.numbers[op.outputs[0]] = op.inputs[0]
        elif is_reduction(op):
            self.numbers[op.outputs[0]] = self.reduced(op)
        elif is_number(op, self.rows.outer):
            values = [self.number(v, m.data) for v, m in zip(op.operands, op.indexing_maps, strict=True)]
            results = clone_scalar(self.b, op.body.block, values, self.dims)
            self.numbers.update(zip(op.outputs, results, strict=True))
        else:
            self.whole(op)

    def number(self, value: SSAValue, map: AffineMap) -> SSAValue:
        """Return an operand's value for this row."""
        return self.numbers[value] if value in self.numbers else read(self.b, value, map, list(self.dims))

    def whole(self, op: linalg.GenericOp) -> None:
        """Emit an operation that writes a row of elements."""
        given = self.schedule
        schedule = ElementwiseSchedule(flat=False, lanes=given.lanes, overlap=apart(op), saturate=given.saturate)
        OfRow(self.b, op, op.body.block, schedule, self).emit_row(self.dims)

    def reduced(self, op: linalg.GenericOp) -> SSAValue:
        """Emit a reduction and return its result: vectors of partial results, combined at the end."""
        b, size, block = self.b, self.rows.size, op.body.block
        join, result = block.last_op, buffer_of(op.outputs[0])
        assert join is not None and isinstance(join := join.operands[0].owner, JOINS)
        before = self.number(op.outputs[0], op.indexing_maps.data[-1].data)
        repeats = isinstance(join, IDEMPOTENT)
        neutral = b.broadcast(before, LANES) if repeats else vector_constant(b, 0, result.element_type, LANES)
        plain = ElementwiseSchedule(flat=False, lanes=(LANES,), overlap=False, saturate=False)
        emitter, lifter = OfRow(b, op, block, plain, self), Lifter(b, LANES)

        def joined(first: Index, total: SSAValue) -> SSAValue:
            values = emitter.values(block, [*self.dims, first], LANES)[: len(op.inputs)]
            return lifter.emit(block, [*values, total])[0]

        def pair(a: SSAValue, c: SSAValue) -> SSAValue:
            return joined_by(b, join, a, c)

        if isinstance(size, Extent):
            return self.reduced_any(op, size, before, neutral, joined, pair)
        count = min(self.schedule.partial, size // LANES)
        partial, step = [neutral] * count, count * LANES
        end = size // step * step
        with b.loop(0, end, step, carried=partial) as (k, turn):
            turn.next = [joined(b.plus(k, n * LANES), old) for n, old in enumerate(turn.args)]
        partial = list(turn.results)
        for number, first in enumerate(range(end, size // LANES * LANES, LANES)):
            partial[number] = joined(first, partial[number])
        total = in_pairs(partial, pair)
        if size % LANES:
            rest = joined(size - LANES, neutral)
            if not repeats:
                rest = b.select(last_lanes(b, size % LANES), rest, neutral)
            total = pair(total, rest)
        found = b.lane(across_lanes(b, total, pair), 0)
        return found if repeats else pair(found, before)

    def reduced_any(
        self, op: linalg.GenericOp, size: Extent, before: SSAValue, neutral: SSAValue, joined: Joined, pair: Join
    ) -> SSAValue:
        """Emit a reduction of a row whose size is known only at run time; return its result. Elements are combined in
        the order in which `reduced` combines those of a row of known size. `before`: the initial value; `neutral`: a
        vector of the neutral element; `joined(first, old)` combines the vector `old` with the row's elements from
        `first` on; `pair(a, c)` combines two scalars or two vectors."""
        b, block, end = self.b, op.body.block, self.b.length(size)
        plain = ElementwiseSchedule(flat=False, lanes=(1,), overlap=False, saturate=False)
        emitter, join = OfRow(b, op, block, plain, self), block.last_op
        assert join is not None
        repeats = isinstance(join.operands[0].owner, IDEMPOTENT)

        def one_by_one() -> SSAValue:
            with b.loop(0, end, carried=[before]) as (k, turn):
                dims = [*self.dims, k]
                values = emitter.values(block, dims, 1)[: len(op.inputs)]
                turn.next = clone_scalar(b, block, [*values, turn.args[0]], dims)
            return turn.results[0]

        def in_vectors() -> SSAValue:
            total = partial_results(b, end, self.schedule.partial, neutral, joined, pair)
            rest = remainder(b, end, LANES)

            def with_rest() -> SSAValue:
                last = joined(minus(b, end, LANES), neutral)
                return pair(total, last if repeats else b.select(last_lanes_of(b, rest), last, neutral))

            total = either(b, below(b, 0, rest), with_rest, lambda: total)
            found = b.lane(across_lanes(b, total, pair), 0)
            return found if repeats else pair(found, before)

        return either(b, below(b, end, LANES), one_by_one, in_vectors)


class OfRow(Elementwise):
    """Emits an operation on elements of the current row; some of its operands may be per-row values, or be in scratch
    memory."""

    def __init__(
        self, builder: LoopBuilder, op: linalg.GenericOp, block: Block, schedule: ElementwiseSchedule, row: Row
    ):
        super().__init__(builder, op, block, schedule)
        self.row = row

    def place(self, value: SSAValue, map: AffineMap, dims: Sequence[Index]) -> tuple[SSAValue, list[Index]]:
        if value not in self.row.kept:
            return super().place(value, map, dims)
        scratch, start = self.row.kept[value]
        return scratch, [self.b.plus(start, dims[-1])]

    def read(self, value: SSAValue, map: AffineMap, dims: Sequence[Index], lanes: int) -> SSAValue:
        if (number := self.row.numbers.get(value)) is None:
            return super().read(value, map, dims, lanes)
        return number if lanes == 1 else self.b.broadcast(number, lanes)
