"""Normalizations: a team of threads computes all operations on a row, whose elements stay in registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Self

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects.attributes import dtype_of
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.grids import points_of_teams
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.strategies.strategy import (
    Decision,
    Emission,
    Kernel,
    Scheduled,
    Strategy,
    pick_block,
    powers,
)
from relay.lowering.gpu.teams import SUMS, Members, Team, join_of
from relay.lowering.gpu.widths import BYTES, Narrow, fits, is_wide, reads
from relay.lowering.indices import below, binary, both, when
from relay.lowering.plan_memory import size_of
from relay.lowering.scheduling.in_turn import Chain, is_number, is_reduction
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.reduction import in_pairs
from relay.lowering.shaped import buffer_of, is_buffer, is_vector
from relay.target import GpuTarget
from relay.target.costs import GpuCosts
from relay.target.record import WARP

ELEMENTS = 32
"""Elements of a row that a thread keeps at most: two or three values of each are live, of its 255 registers."""


@dataclass(frozen=True, kw_only=True)
class RowsSchedule(OpSchedule):
    """`lanes`: neighbouring elements that a thread reads and writes at once; `team`: threads that share a row;
    `block`: threads of a block."""

    strategy = "rows"
    lanes: int
    team: int
    block: int


def chains_of(order: Sequence[Operation], target: GpuTarget) -> Iterator[Chain]:
    """Chains of operations on rows that threads of the target can share."""
    taken: set[Operation] = set()
    for op in order:
        if not isinstance(op, linalg.GenericOp | linalg.FillOp) or op in taken:
            continue
        chain = Chain.of(op, least=2, rows=1)
        if chain is not None and is_shareable(chain, target):
            taken.update(chain.ops)
            yield chain


def is_shareable(chain: Chain, target: GpuTarget) -> bool:
    """Whether what threads have of each reduction can be joined, and a row stays in the registers of a team."""
    generics = [op for op in chain.ops if isinstance(op, linalg.GenericOp)]
    joined = all(join_of(op) is not None for op in generics if is_reduction(op))
    written = (arg for op in generics if not is_reduction(op) for arg in op.body.block.args[len(op.inputs) :])
    small = chain.size <= ELEMENTS * target.costs.team_threads
    return target.shuffles and joined and small and prod(chain.outer) > 0 and not any(any(a.uses) for a in written)


@dataclass(frozen=True)
class Rows(Strategy[RowsSchedule]):
    """A chain of operations on the same rows, with a reduction of each and what uses its result."""

    record = RowsSchedule
    tier = 0
    chain: Chain

    @classmethod
    def match(cls, op: Scheduled, kernel: Kernel) -> Self | None:
        chain = kernel.fused.rows.get(op)
        return None if chain is None else cls(chain)

    def decide(self, kernel: Kernel, pick: Picks) -> Decision[RowsSchedule]:
        chain, costs = self.chain, kernel.target.costs
        rows, size = prod(chain.outer), chain.size
        most = self.widest(kernel.fused.producers)
        lanes = pick("lanes", powers(most), most)
        teams = [team for team in powers(costs.team_threads) if pieces(size, lanes, team) * lanes <= ELEMENTS]
        team = pick("team", teams, best_team(rows, size, lanes, teams, costs))
        block = pick_block(kernel, pick, rows, team)
        count = sum(isinstance(op, linalg.GenericOp) for op in chain.ops)
        kept = pieces(size, lanes, team) * lanes
        why = f"{count} operations on {rows} rows of {size}, {kept} elements in registers of each of {team} threads"
        bytes = sum(size_of(buffer_of(buffer)) for buffer in self.buffers)
        cost = bytes // (costs.processors * costs.copy_bandwidth)
        return Decision(cost, RowsSchedule(lanes=lanes, team=team, block=block, cycles=cost, why=why))

    @property
    def buffers(self) -> set[SSAValue]:
        """What is read and written in memory."""
        found = {value for op in self.chain.ops for value in op.operands if is_buffer(value.type)}
        return {value for value in found if value not in self.chain.written or is_read_elsewhere(value, self.chain)}

    def widest(self, producers: Mapping[SSAValue, Producer]) -> int:
        """Neighbours that are read and written at once, at most."""
        try:
            accesses = list(self.accesses(producers))
        except Narrow:
            return 1
        size = max(dtype_of(type.element_type).itemsize for type in accesses)
        most = BYTES // size
        while most > 1 and not (self.chain.size % most == 0 and all(fits(type, most) for type in accesses)):
            most //= 2
        return most

    def accesses(self, producers: Mapping[SSAValue, Producer]) -> Iterator[MemRefType]:
        """The types of buffers in memory that are read or written with neighbours in the lanes."""
        last = len(self.chain.outer)
        for op in self.chain.ops:
            if not isinstance(op, linalg.GenericOp) or is_number(op, self.chain.outer):
                continue
            for value, map in zip(op.operands, op.indexing_maps, strict=True):
                if value in self.buffers and is_wide(map.data, last):
                    yield from reads(value, producers)

    def emit(self, emission: Emission, schedule: RowsSchedule) -> None:
        b = emission.builder
        points = PointEmitter(b, emission.fused.producers, schedule.lanes)
        with points_of_teams(b, self.chain.outer, Team(schedule.team, True), schedule.block) as (dims, members, inside):
            RowEmitter(b, self.chain, points, members, dims, inside).emit()


def is_read_elsewhere(buffer: SSAValue, chain: Chain) -> bool:
    """Whether others than the chain use a buffer that it writes."""
    ours = set[Operation](chain.ops)
    return not isinstance(buffer.owner, memref.AllocOp) or any(use.operation not in ours for use in buffer.uses)


def pieces(size: int, lanes: int, team: int) -> int:
    """Groups of neighbours of a row that a thread has, at most."""
    return -(-size // (lanes * team))


def best_team(rows: int, size: int, lanes: int, teams: Sequence[int], costs: GpuCosts) -> int:
    """The smallest possible team, or a larger one where the device has threads left and each thread enough to do."""
    team = teams[-1]
    while 2 * team in teams and team * lanes < size and rows * team < costs.busy_threads:
        if 2 * team > WARP and size < 2 * team * costs.warps_turns:
            break
        team *= 2
    return team


@dataclass(frozen=True)
class Piece:
    """Neighbours of a row that a thread has: where they start, and whether they are there, None if they always are.
    Those that are not repeat the last ones of the row."""

    column: Index
    inside: SSAValue | None


class RowEmitter:
    """Emits the operations on a row, for one thread of its team: `numbers` is what each buffer with one number a row
    holds for it, `kept` the thread's elements of each buffer with a row, or of one that is read."""

    def __init__(
        self,
        builder: LoopBuilder,
        chain: Chain,
        points: PointEmitter,
        members: Members,
        dims: Sequence[Index],
        inside: SSAValue | None,
    ):
        self.b, self.chain, self.points, self.members, self.dims, self.inside = (
            builder, chain, points, members, dims, inside,
        )  # fmt: skip
        self.pieces = [*self.find_pieces()]
        self.numbers: dict[SSAValue, SSAValue] = {}
        self.kept: dict[tuple[SSAValue, str], list[SSAValue]] = {}

    def find_pieces(self) -> Iterator[Piece]:
        """The thread's part of the row."""
        b, lanes, team = self.b, self.points.lanes, self.members.team.size
        whole = self.chain.size // lanes
        for number in range(pieces(self.chain.size, lanes, team)):
            at = b.plus(number * team, self.members.member)
            inside = None if (number + 1) * team <= whole else below(b, at, whole)
            place = at if inside is None else binary(b, arith.MinUIOp, at, whole - 1)
            yield Piece(self.points.widened([place])[0], inside)

    def emit(self) -> None:
        """All operations, and what others read of their results to memory."""
        for op in self.chain.ops:
            if isinstance(op, linalg.FillOp):
                self.numbers[op.outputs[0]] = op.inputs[0]
            elif is_reduction(op):
                self.numbers[op.outputs[0]] = self.reduced(op)
            elif is_number(op, self.chain.outer):
                self.numbers.update(zip(op.outputs, self.values(op, 0, ()), strict=True))
            else:
                found = [self.values(op, number, ()) for number in range(len(self.pieces))]
                for output, values in zip(op.outputs, zip(*found, strict=True), strict=True):
                    self.kept[output, ""] = list(values)
                    if is_read_elsewhere(output, self.chain):
                        self.store(output, values)
        self.store_numbers([buffer for buffer in self.numbers if is_read_elsewhere(buffer, self.chain)])

    def store_numbers(self, buffers: Sequence[SSAValue]) -> None:
        """The row's numbers to memory, by the first thread."""
        b = self.b
        for buffer in buffers:
            first = b.compare(b.index(self.members.member), "eq", b.index(0))
            when(b, both(b, [first, self.inside]), partial(b.store, self.numbers[buffer], buffer, self.dims))

    def store(self, output: SSAValue, values: Sequence[SSAValue]) -> None:
        """The thread's elements of a row to memory."""
        for piece, value in zip(self.pieces, values, strict=True):
            place = [*self.dims, piece.column]
            when(self.b, both(self.b, [self.inside, piece.inside]), partial(self.points.store, value, output, place))

    def values(self, op: linalg.GenericOp, number: int, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """What an operation yields of a piece of the row."""
        dims = [*self.dims, self.pieces[number].column][: len(op.iterator_types)]
        block = op.body.block
        pairs = zip(op.inputs, op.indexing_maps, block.args, strict=False)
        read = [self.operand(v, m.data, number, dims) if any(a.uses) else v for v, m, a in pairs]
        return self.points.computed(block, [*read, *(carried or op.outputs)], dims)

    def operand(self, value: SSAValue, map: AffineMap, number: int, dims: Sequence[Index]) -> SSAValue:
        """An operand's elements of a piece, each of which is read once, or its number for the row."""
        if value in self.numbers:
            return self.numbers[value]
        key = (value, "" if (value, "") in self.kept else str(map))
        known = self.kept.setdefault(key, [])
        if number >= len(known):
            known.append(self.points.element(value, [self.b.apply(r, dims) for r in map.results]))
        return known[number]

    def reduced(self, op: linalg.GenericOp) -> SSAValue:
        """A reduction of the row: each lane's and each thread's result of its own elements, joined in pairs."""
        b, lanes, output = self.b, self.points.lanes, op.outputs[0]
        join = join_of(op)
        assert join is not None
        start = self.numbers[output] if output in self.numbers else b.load(output, self.dims)
        neutral = b.constant(0, start.type) if join in SUMS else start
        total = b.broadcast(neutral, lanes) if lanes > 1 else neutral
        for number, piece in enumerate(self.pieces):
            (more,) = self.values(op, number, [total])
            total = more if piece.inside is None or join not in SUMS else b.select(piece.inside, more, total)

        def pair(x: SSAValue, y: SSAValue) -> SSAValue:
            return b.add(join(x, y)).results[0]

        if is_vector(total.type):
            total = in_pairs([b.lane(total, lane) for lane in range(lanes)], pair)
        total = self.members.join(total, join)
        return pair(start, total) if join in SUMS else total
