"""Attention by the matrix units of single warps: scores of 16 queries and all keys stay in a warp's registers, as does
what becomes of them, which is multiplied by the values.

The layout of sums (PTX ISA, "Matrix Fragments for mma.m16n8k32") gives four lanes the scores of two queries; with the
keys' rows in the order of packed weights, each has 8 neighbours of every 32. As first factor of the second product a
lane needs codes of the same two queries: four at the places 4 t and four at 16 + 4 t of each 32. So values are copied
with key 8 t + 4 u + i at place 16 u + 4 t + i, and nothing moves between lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import TAP, Matrix
from relay.lowering.gpu.matrix_kernel import QUAD
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.pair_kernel import CodePairs, Pair, PairCopies, PairKernel, Part
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.row_emitter import Piece, RowEmitter
from relay.lowering.gpu.teams import Members, Team
from relay.lowering.indices import binary
from relay.lowering.scheduling.in_turn import Chain

SCORES = 8
"""Neighbouring scores of a lane."""


@dataclass(frozen=True)
class Attention:
    """What attention consists of: the first product's operation, the chain on its rows, and both products."""

    op: linalg.GenericOp
    chain: Chain
    scores: Pair
    values: Pair


@dataclass(frozen=True)
class Scores:
    """The first product, in tiles of whole rows, and the operations on its rows, which read its sums from `sums` and
    write the first factor of the second product to `weights`."""

    pair: Pair
    matrix: Matrix
    chain: Chain
    sums: SSAValue
    weights: SSAValue


class AttentionKernel(PairKernel):
    """Emits what one thread does for some queries of one head. The kernel's own product is the second one, whose first
    factor has no memory."""

    def __init__(
        self,
        builder: LoopBuilder,
        scores: Scores,
        pair: Pair,
        matrix: Matrix,
        points: PointEmitter,
        factors: Sequence[SSAValue],
    ):
        super().__init__(builder, pair, matrix, points, factors[2:])
        self.scores, self.queries_and_keys = scores, factors[:2]

    def products(self) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        b, t = self.b, self.t
        words = self.words()
        units, copies = CodePairs(t), ValueCopies(t, self.factors, self.pair, self.number)
        units.prepare()
        found = [b.constant(0, self.kind)] * (self.tile.sums + units.rows)
        for step in range(self.m.steps):
            loaded = copies.load(step)
            b.add(BarrierOp.create())
            copies.land(loaded, 0)
            b.add(BarrierOp.create())
            for half, right in enumerate(units.right):
                part = step * self.tile.depth // TAP + half
                if part < len(words):
                    units.add_products([words[part]], units.weights(right), found)
        found = units.finish(found)
        return found[: self.tile.sums], found[self.tile.sums :]

    def words(self) -> list[list[SSAValue]]:
        """Four words for each 32 keys: the first four codes of a lane's two queries, then the other four."""
        b, points = self.b, PointEmitter(self.b, self.points.producers, SCORES)
        first = PairKernel(b, self.scores.pair, self.scores.matrix, points, self.queries_and_keys)
        first.number = self.number
        first.t = MatrixThread(b, self.scores.matrix, self.block, self.thread)
        sums, rows = first.products()
        halves = [self.of_query(first, points, sums, rows, half) for half in range(2)]
        return [[a[0], c[0], a[1], c[1]] for a, c in zip(*halves, strict=True)]

    def of_query(
        self,
        first: PairKernel,
        points: PointEmitter,
        sums: Sequence[SSAValue],
        rows: Sequence[SSAValue],
        half: int,
    ) -> list[list[SSAValue]]:
        """For each 32 keys, two words of codes of one of the lane's queries; those of keys that are none are 0."""
        b, t, scores, matrix = self.b, self.t, self.scores, self.scores.matrix
        row = b.plus(b.plus(b.plus(t.first_row, t.warp_row), t.div(t.lane, QUAD)), 8 * half)
        if matrix.rows % matrix.tile.rows:
            row = binary(b, arith.MinUIOp, row, matrix.rows - 1)
        total = rows[2 * half] if rows else None
        groups = [
            [sums[4 * (QUAD * part + n) + 2 * half + j] for n in range(QUAD) for j in range(2)]
            for part in range(matrix.tile.column_steps // QUAD)
        ]
        given = [first.offset(b.packed(group), total) for group in groups]
        members = Members(b, Team(QUAD, True), t.rem(t.lane, QUAD))
        emitter = RowEmitter(b, scores.chain, points, members, [self.number, row], None, {scores.sums: given})
        emitter.emit()
        pairs = zip(emitter.pieces, emitter.kept[scores.weights, ""], strict=True)
        return [self.words_of(piece, codes) for piece, codes in pairs]

    def words_of(self, piece: Piece, codes: SSAValue) -> list[SSAValue]:
        """Eight codes as two words."""
        b = self.b
        words = [b.lane(b.bitcast(codes, i32, 2), number) for number in range(2)]
        inside, zero = piece.inside, b.constant(0, i32)
        return words if inside is None else [b.select(inside, word, zero) for word in words]


class ValueCopies(PairCopies):
    """Emits the copies of one thread of the values, in the order in which lanes have their weights."""

    def find(self, factors: Sequence[SSAValue]) -> Iterator[Part]:
        yield from self.columns(factors[0], self.t.tile.rows * self.t.tile.depth)

    def place(self, k: Index) -> Index:
        b, t = self.b, self.t
        group = b.times(t.div(k, TAP), TAP)
        upper = b.times(t.rem(t.div(k, 4), 2), TAP // 2)
        return b.plus(group, b.plus(upper, b.times(t.div(t.rem(k, TAP), SCORES), 4)))
