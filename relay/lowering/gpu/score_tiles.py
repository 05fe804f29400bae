"""Scores of a warp's queries and tiles of keys. Shared memory begins with the queries, which are copied once, at their
whole depth; two stages follow, each for one step of a tile of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.matrix_kernel import QUAD
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.pair_kernel import Pair, PairCopies, PairKernel, Part, pairs
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.indices import binary
from relay.lowering.scheduling.in_turn import Chain

KEY_STAGES = 2
"""The number of stages of keys: one is multiplied while the other is filled."""


@dataclass(frozen=True)
class Scores:
    """The first product of attention (queries by keys), divided into tiles of keys, and the operations `chain` on its
    rows, such as softmax. `sums`: the buffer from which these operations read the scores; `weights`: the buffer to
    which they write the first factor of the product with the values."""

    pair: Pair
    matrix: Matrix
    chain: Chain
    sums: SSAValue
    weights: SSAValue

    @property
    def tiles(self) -> int:
        """The number of tiles of keys."""
        return self.matrix.packed_columns // self.matrix.tile.columns

    @property
    def queries_bytes(self) -> int:
        """The bytes of shared memory of a block's queries."""
        return self.matrix.steps * self.matrix.tile.rows * self.matrix.tile.depth

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory of queries and keys."""
        tile, stages = self.matrix.tile, min(KEY_STAGES, self.matrix.steps)
        return self.queries_bytes + stages * tile.columns * tile.depth


class ScoreTiles:
    """Emits one thread's scores of attention, tile by tile of the keys: those of two queries, each with 8 consecutive
    keys of every 32."""

    def __init__(
        self, b: LoopBuilder, scores: Scores, points: PointEmitter, factors: Sequence[SSAValue], number: Index
    ):
        self.b, self.scores, self.m, self.factors, self.number = b, scores, scores.matrix, factors, number
        self.kernel = PairKernel(b, scores.pair, scores.matrix, points, factors)

    def start(self, block: Index, thread: Index) -> None:
        """Copy the block's queries."""
        b, tile = self.b, self.m.tile
        self.t = MatrixThread(b, self.m, b.times(block, self.scores.tiles), thread)
        self.t.first_row = b.times(block, tile.rows)
        self.units = pairs(self.t)
        self.units.prepare()
        queries = Queries(self.t, self.factors, self.scores.pair, self.number)
        for step in range(self.m.steps):
            queries.store(queries.load(step), step * tile.rows * tile.depth)

    def of_tile(self, number: Index) -> list[list[SSAValue]]:
        """Return the scores of a tile of keys: for each of the thread's queries, vectors of 8. If the last step
        reads the stage that the next tile fills first (`reads_first_stage`), threads must synchronise before the
        next tile."""
        b, tile, units, steps = self.b, self.m.tile, self.units, self.m.steps
        self.t.first_column = b.times(number, tile.columns)
        keys = Keys(self.t, self.factors, self.scores.pair, self.number)
        sums = [b.constant(0, units.kind)] * (tile.sums + units.rows)
        loaded = keys.load(0)
        for step in range(steps):
            keys.store(loaded, self.stage(step))
            b.add(BarrierOp.create())
            loaded = keys.load(step + 1) if step + 1 < steps else []
            sums = units.multiply(self.stage(step), sums, step * tile.rows * tile.depth)
        found = units.finish(sums)
        sums, rows = found[: tile.sums], found[tile.sums :]
        return [self.of_query(sums, rows[2 * half] if rows else None, half) for half in range(2)]

    @property
    def reads_first_stage(self) -> bool:
        """Whether the last step of a tile reads its keys from the stage (a buffer in shared memory) that the first step
        of the next tile fills, so that threads must synchronise between two tiles."""
        return self.m.steps % KEY_STAGES == 1

    def stage(self, step: int) -> int:
        """Return the start of the stage of a step, in bytes. The code of products expects the second factor after the
        tile of the first one; here a stage contains only keys, so the start is the offset of the keys minus the size of
        that tile."""
        tile = self.m.tile
        return self.scores.queries_bytes + step % KEY_STAGES * tile.columns * tile.depth - tile.rows * tile.depth

    def of_query(self, sums: Sequence[SSAValue], total: SSAValue | None, half: int) -> list[SSAValue]:
        """Return the scores of one of the thread's two queries, number `half`, as vectors of 8 keys. `sums`: the
        thread's sums of products; `total`: the sum of the query's codes, by which the keys' zero point is
        corrected, or None."""
        groups = [
            [sums[4 * (QUAD * part + n) + 2 * half + j] for n in range(QUAD) for j in range(2)]
            for part in range(self.m.tile.column_steps // QUAD)
        ]
        return [self.kernel.offset(self.b.packed(group), total) for group in groups]

    def row(self, half: int) -> Index:
        """Return the number of one of the thread's two queries (`half`: 0 or 1), limited to the last query."""
        b, t = self.b, self.t
        row = b.plus(b.plus(b.plus(t.first_row, t.warp_row), t.div(t.lane, QUAD)), 8 * half)
        return binary(b, arith.MinUIOp, row, self.m.rows - 1) if self.m.rows % self.m.tile.rows else row


class Queries(PairCopies):
    """Emits one thread's copies of the queries."""

    def find(self, factors: Sequence[SSAValue]) -> Iterator[Part]:
        return self.first(factors[0])


class Keys(PairCopies):
    """Emits one thread's copies of a tile of keys."""

    def find(self, factors: Sequence[SSAValue]) -> Iterator[Part]:
        return self.second(factors[1])
