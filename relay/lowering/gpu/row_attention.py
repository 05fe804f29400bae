"""Attention without matrix units: a team of threads computes the scores of a few queries, the softmax weights, and the
sums of values weighted by them.

A thread has its scores of a query in registers, `RowEmitter` continues with them as with any row, and the weights are
written to the block's shared memory, where all threads of the team read them for their sums of values. Keys and values
are read once for the queries of a team.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from relay.dialects.attributes import dtype_of
from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.dots import sums_at
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.row_emitter import RowEmitter, reduce_rows
from relay.lowering.gpu.shared_memory import shared_memory, shared_view
from relay.lowering.gpu.teams import WORD, Members
from relay.lowering.indices import below, both, minus, when
from relay.lowering.scheduling.in_turn import Chain, is_reduction
from relay.lowering.shaped import buffer_of


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


class KeptRows(PointEmitter):
    """Emits reads of elements, where those of the softmax weights are read from the block's shared memory. This has the
    rows of weights of the queries that the block computes; those of the thread's team begin with query `first`."""

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
