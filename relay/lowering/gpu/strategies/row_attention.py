"""`attention-rows`: attention in one launch, for products that matrix units do not compute: a team of threads computes
the scores of a few queries, the softmax weights, and the sums of values weighted by them.

A thread has its scores of a query in registers, `RowEmitter` continues with them as with any row, and the weights are
written to the block's shared memory, where all threads of the team read them for their sums of values. Keys and values
are read once for the queries of a team.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.dots import dot_of, sums_at
from relay.lowering.gpu.grids import points_of_teams
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.row_emitter import RowEmitter, is_read_elsewhere, pieces, reduce_rows
from relay.lowering.gpu.shared_memory import shared_memory, shared_view
from relay.lowering.gpu.strategies.mma_pairs import pair_of
from relay.lowering.gpu.strategies.reduction import sum_of_points
from relay.lowering.gpu.strategies.rows import ELEMENTS
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Scheduled, Strategy, powers, transfer
from relay.lowering.gpu.teams import WORD, Members, Team
from relay.lowering.indices import below, both, minus, when
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.in_turn import Chain, is_reduction
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import buffer_of, is_buffer
from relay.target import GpuTarget
from relay.target.record import WARP

QUERIES = 8
"""The most queries of a team, for which keys and values are read once."""


@dataclass(frozen=True)
class RowAttention:
    """The parts of an attention: `scores`, the loop nest that multiplies queries and keys; `chain`, the operations on
    each row of scores, whose result is the softmax weights; `sums`, the nest of the sums of values with these weights;
    `last`, the nest that stores the final results, which contains `sums`."""

    scores: Nest
    chain: Chain
    last: Nest
    sums: Nest

    @property
    def op(self) -> linalg.GenericOp:
        """The first operation, the product of queries and keys."""
        return self.scores.op

    @property
    def weights(self) -> SSAValue:
        """The buffer of the softmax weights: the result of the last operation of `chain`."""
        return self.chain.ops[-1].outputs[0]

    def weights_bytes(self, rows: int) -> int:
        """Return the number of bytes of shared memory for the softmax weights of `rows` rows (one for each query),
        rounded up to whole words of 4 bytes."""
        size = rows * self.chain.size * dtype_of(buffer_of(self.weights).element_type).itemsize
        return -(-size // WORD) * WORD


@dataclass(frozen=True, kw_only=True)
class RowAttentionSchedule(OpSchedule):
    """The decisions about an attention without matrix units. `queries`: queries that a team of threads processes;
    `team`: threads of a team, which divide the keys, and combine partial results by `shuffles`, or through memory;
    `dot`: codes of a query and a key that are multiplied at once; `block`: threads of a block; `shared`: bytes of a
    block's shared memory, without the memory for combining."""

    strategy = "attention-rows"
    queries: int
    team: int
    shuffles: bool
    dot: int
    block: int
    shared: int


@dataclass(frozen=True)
class OneRowAttention(Strategy[RowAttentionSchedule]):
    """Attention by teams of threads: the product of queries and keys, the operations on rows of its scores, such as
    softmax, and the product of the result and the values, in one launch."""

    record = RowAttentionSchedule
    tier = 0
    parts: RowAttention

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        parts, target = self.parts, kernel.target
        chain, costs = parts.chain, target.costs
        heads, count = prod(chain.outer[:-1]), chain.outer[-1]
        found = dot_of(parts.scores, kernel.fused.producers) if target.dots else None
        pick("dot", (0,) if found is None else (found.lanes, 0), 0 if found is None else found.lanes)
        teams = {q: self.teams(q, target) for q in range(1, min(count, QUERIES) + 1)}
        possible = [(q, t) for q in teams for t in teams[q]]
        possible = [(q, t) for q, t in possible if count % q == 0 and self.fits(q, t, costs.shared_bytes)]
        threads = {(q, t): heads * count // q * t for q, t in possible}
        enough = min(costs.least_threads if costs.processors > 1 else 0, max(threads.values()))
        busy = [each for each in possible if threads[each] >= enough]
        best = min(busy, key=lambda each: self.steps(*each, target.shuffles))
        queries = pick("queries", sorted({q for q, _ in possible}), best[0])
        teams = [t for q, t in possible if q == queries]
        team = pick("team", teams, best[1] if best[1] in teams else teams[-1])
        pick.may("shuffles", target.shuffles)
        block = pick.only("block", max(team, WARP))
        pick.only("shared", parts.weights_bytes(block // team * queries))
        cost = transfer({value for op in self.ops for value in op.operands if is_buffer(value.type)}, costs)
        why = f"{heads} times {count} queries and {chain.size} keys, {queries} queries of {team} threads"
        return cost, why

    def steps(self, queries: int, team: int, shuffles: bool) -> float:
        """Return the estimated number of loop iterations of all threads of a team for a query: reading keys and values,
        and combining partial results, including iterations of idle lanes."""
        parts, chain = self.parts, self.parts.chain
        depth = prod(parts.scores.sizes[dim] for dim in parts.scores.reduction)
        read = [pieces(chain.size, 1, team) * team * depth, pieces(parts.last.shape[-1], 1, team) * team * chain.size]
        joined = sum(is_reduction(op) for op in chain.ops if isinstance(op, linalg.GenericOp))
        return sum(read) * (1 + 1 / queries) + joined * team * (2 * team.bit_length() if shuffles else team)

    def teams(self, queries: int, target: GpuTarget) -> Sequence[int]:
        """Return the possible numbers of threads that share the scores of `queries` queries, so that the scores fit the
        threads' registers. On a target without shuffles a thread may hold twice as many scores, because there larger
        teams combine their results more slowly."""
        most = ELEMENTS if target.shuffles else 2 * ELEMENTS
        threads = powers(target.costs.team_threads)
        return [team for team in threads if pieces(self.parts.chain.size, 1, team) * queries <= most]

    def fits(self, queries: int, team: int, room: int) -> bool:
        """Whether `room` bytes of shared memory suffice for a block: for the softmax weights of its queries, and for
        the partial results of its threads for each reduction."""
        block = max(team, WARP)
        joins = queries * sum(is_reduction(op) for op in self.parts.chain.ops if isinstance(op, linalg.GenericOp))
        return self.parts.weights_bytes(block // team * queries) + joins * block * WORD <= room

    @property
    def ops(self) -> list[Scheduled]:
        """All operations of the attention."""
        return [self.parts.scores.op, *self.parts.chain.ops, self.parts.last.op]

    def emit(self, emission: Emission, schedule: RowAttentionSchedule) -> None:
        b, parts = emission.builder, self.parts
        outer, team = [*parts.chain.outer], Team(schedule.team, True, schedule.shuffles)
        outer[-1] //= schedule.queries
        with points_of_teams(b, outer, team, schedule.block) as (dims, members, inside):
            points = KeptRows(b, emission.fused.producers, parts, schedule.block // schedule.team * schedule.queries)
            members.used = schedule.shared // WORD
            RowAttentionKernel(b, parts, points, members, dims, schedule.queries).emit(schedule.dot, inside)


def row_attentions_of(kernel: Kernel, launched: Sequence[Operation]) -> Iterator[tuple[Operation, OneRowAttention]]:
    """Yield each attention among the launched operations that can be computed in one launch and whose products do not
    use matrix units: its last operation, and its strategy."""
    generics = [op for op in launched if isinstance(op, linalg.GenericOp)]
    for last, chain in kernel.fused.rows.items():
        if last not in launched or len(chain.ops[-1].outputs) != 1:
            continue
        read = {value for op in chain.ops for value in op.inputs} - chain.written
        firsts = [op for op in generics if op.outputs[0] in read and kernel.fused.nest(op).reduction]
        for op in generics:
            if len(firsts) == 1 and op is not firsts[0]:
                parts = attention_of(kernel, firsts[0], chain, op)
                strategy = None if parts is None else OneRowAttention(parts)
                if strategy is not None and strategy.fits(1, kernel.target.costs.team_threads, room(kernel)):
                    yield op, strategy


def room(kernel: Kernel) -> int:
    """Return the bytes of shared memory that a block has without an opt-in at launch."""
    costs = kernel.target.costs
    return min(costs.shared_bytes, costs.plain_shared_bytes)


def attention_of(kernel: Kernel, first: linalg.GenericOp, chain: Chain, op: linalg.GenericOp) -> RowAttention | None:
    """Return the attention that these operations form: only the chain reads the sums of the operation `first`, and only
    the last operation, `op`, a reduction over the same rows, reads the chain's result. Return None if they form
    none."""
    scores, last = kernel.fused.nest(first), kernel.fused.nest(op)
    found = sum_of_points(last, kernel.fused.producers)
    weights, source = chain.ops[-1].outputs[0], first.outputs[0]
    units = kernel.target.matrix_units
    if found is None or (units and any(pair_of(each, kernel) is not None for each in (first, op))):
        return None
    ours = {*chain.ops, first, *(use.operation for use in source.uses if isinstance(use.operation, linalg.FillOp))}
    alone = isinstance(source.owner, memref.AllocOp) and all(use.operation in ours for use in source.uses)
    kept = [buffer for buffer in chain.written if buffer is not weights and is_read_elsewhere(buffer, chain)]
    readers = [use.operation for use in weights.uses if use.operation not in chain.ops]
    if not alone or kept or readers != [found.nest.op] or scores.started[0] is None:
        return None
    rows = scores.shape == [*chain.outer, chain.size] and last.shape[:-1] == list(chain.outer)
    same = found.nest.shape == last.shape and len(first.outputs) == 1
    place = found.nest.op.inputs[0]
    along = dims_of(found.nest.maps[0]) == [*(found.nest.output_dims or [])[:-1], *found.nest.reduction]
    small = pieces(chain.size, 1, kernel.target.costs.team_threads) <= ELEMENTS
    busy = prod(chain.outer) >= kernel.target.costs.processors
    ordered = last.output_dims == list(range(len(last.shape)))
    if rows and same and along and small and busy and ordered and place is weights:
        return RowAttention(scores, chain, last, found.nest)
    return None


class KeptRows(PointEmitter):
    """Emits reads of elements: softmax weights are read from the block's shared memory, all other elements as in the
    base class. The shared memory has a row of weights for each query that the block computes. The first query of the
    thread's team is `first`, and its row is number `start`."""

    def __init__(self, b: LoopBuilder, producers: Mapping[SSAValue, Producer], parts: RowAttention, rows: int):
        super().__init__(b, producers)
        self.weights, self.size = parts.weights, parts.chain.size
        shared = shared_memory(b, parts.weights_bytes(rows))
        self.memory = shared_view(b, shared, buffer_of(self.weights).element_type, rows * self.size)
        self.start: Index = 0
        self.first: Index = 0

    def row(self, query: Index) -> Index:
        """Return the offset, in elements of the shared memory, at which the softmax weights of a query begin."""
        b = self.b
        return b.times(b.plus(self.start, minus(b, query, self.first)), self.size)

    def place(self, buffer: SSAValue, at: Sequence[Index]) -> tuple[SSAValue, Sequence[Index]]:
        if buffer is not self.weights:
            return super().place(buffer, at)
        return self.memory, [self.b.plus(self.row(at[-2]), at[-1])]


class RowAttentionKernel:
    """Emits the work of one of the threads (a team of a GPU block) that together compute the attention of `queries`
    neighbouring queries. `dims`: the indices of the batch and head, then the number of this group of `queries`
    queries."""

    def __init__(
        self, b: LoopBuilder, parts: RowAttention, points: KeptRows, members: Members, dims: list[Index], queries: int
    ):
        self.b, self.parts, self.points, self.members = b, parts, points, members
        self.team = members.team.size
        self.heads, group = dims[:-1], dims[-1]
        points.first = b.times(group, queries)
        points.start = b.times(members.group, queries)
        self.queries = [b.plus(points.first, number) for number in range(queries)]

    def emit(self, dots: int, inside: SSAValue | None) -> None:
        """Emit the scores, the operations on them, and the results. `dots`: the number of codes that are multiplied at
        once, or 0."""
        b, chain, members = self.b, self.parts.chain, self.members
        source = self.parts.scores.op.outputs[0]
        rows = [
            RowEmitter(b, chain, self.points, members, [*self.heads, query], None, {source: []})
            for query in self.queries
        ]
        for piece in rows[0].pieces:
            for row, score in zip(rows, self.sums(self.parts.scores, piece.column, dots), strict=True):
                row.kept[source, ""].append(score)
        for op in chain.ops:
            if isinstance(op, linalg.GenericOp) and is_reduction(op):
                reduce_rows(op, rows)
            else:
                for row in rows:
                    row.compute(op)
        for query, row in zip(self.queries, rows, strict=True):
            for piece, value in zip(row.pieces, row.kept[self.parts.weights, ""], strict=True):
                place = [b.plus(self.points.row(query), piece.column)]
                when(b, piece.inside, lambda value=value, place=place: b.store(value, self.points.memory, place))
        b.add(BarrierOp.create())
        width = self.parts.last.shape[-1]
        for number in range(-(-width // self.team)):
            column = b.plus(number * self.team, members.member)
            there = None if (number + 1) * self.team <= width else below(b, column, width)
            when(b, both(b, [inside, there]), lambda column=column: self.results(column))

    def sums(self, nest: Nest, column: Index, dots: int = 0) -> list[SSAValue]:
        """Emit the reduction `nest` for one element of each query's row, that in column `column`; return the results,
        one per query. `dots`: the largest number of codes that a dot product may read at once; 0 for none."""
        places = [nest.dims([*self.heads, query, column]) for query in self.queries]
        return sums_at(self.points, nest, places, dots)

    def results(self, column: Index) -> None:
        """Compute and store the attention's results for all queries of the team, in one column: a channel of the
        values."""
        parts, last, points = self.parts, self.parts.last, self.points
        for query, total in zip(self.queries, self.sums(parts.sums, column), strict=True):
            points.known[parts.sums.op] = total
            dims = last.dims([*self.heads, query, column])
            points.results(last, dims, points.nest(last, dims))
