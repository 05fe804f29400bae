"""Attention by the matrix units of single warps: the scores of 16 queries and a tile of keys, and the weights that are
computed from them, stay in a warp's registers, and are multiplied by the values.

In the layout of an instruction's sums (PTX ISA, "Matrix Fragments for mma.m16n8k32"), four lanes hold the scores of two
queries. The keys are copied in the order of packed weights, so that each lane holds the scores of 8 neighbouring keys
of every 32, and computes their softmax weights: with 8-bit codes, two words for each query. The instruction of the
second product reads the weights of 32 keys as a row of 32 bytes, of which it expects bytes 4 t to 4 t + 3 and 16 + 4 t
to 19 + 4 t in lane t. So the values of these keys, a channel's bytes in shared memory, are stored in another order:
those of the keys whose weights are word w of lane t are at byte 16 w + 4 t. Thus no data moves between lanes.

With a single tile of keys, the operations on rows are applied unchanged. With several tiles, a softmax of floats is
computed incrementally (`online_softmax`). For any other chain, each reduction is a pass over all keys, and a last pass
multiplies the values; every pass computes the scores again. So the codes equal those of separate launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.matrix_kernel import QUAD
from relay.lowering.gpu.online_softmax import OnlineSoftmax
from relay.lowering.gpu.pair_kernel import Pair, PairCopies, PairKernel, Part, pairs
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.row_emitter import Piece, RowEmitter
from relay.lowering.gpu.score_tiles import Scores, ScoreTiles
from relay.lowering.gpu.shared_memory import shared_memory
from relay.lowering.gpu.teams import SUMS, Members, Team, join_of
from relay.lowering.gpu.warp_products import float_words
from relay.lowering.indices import limited
from relay.lowering.scheduling.in_turn import Chain, Scheduled, is_number, is_reduction

SCORES = 8
"""The number of neighbouring attention scores that a thread (lane) of a warp holds."""
WIDTH = QUAD * SCORES
"""The number of keys whose scores the four lanes of a quad have, `SCORES` neighbours each."""


@dataclass(frozen=True)
class Attention:
    """The parts of an attention: the first product's operation, the chain on its rows, and both products. `online`: the
    chain as a softmax that can be computed incrementally, else None."""

    op: linalg.GenericOp
    chain: Chain
    scores: Pair
    values: Pair
    online: OnlineSoftmax | None


Numbers = dict[SSAValue, SSAValue]
"""For each buffer with one value per row, the value of the current row."""


class AttentionKernel(PairKernel):
    """Emits one thread's work on an attention, for some queries of one head. The base class computes the second
    product, of softmax weights and values; the weights are not in memory, but computed by this class."""

    def __init__(
        self,
        builder: LoopBuilder,
        scores: Scores,
        online: OnlineSoftmax | None,
        pair: Pair,
        matrix: Matrix,
        points: PointEmitter,
        factors: Sequence[SSAValue],
    ):
        super().__init__(builder, pair, matrix, points, factors[2:])
        self.scores, self.online, self.queries_and_keys = scores, online, factors[:2]

    def products(self) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        b, scores = self.b, self.scores
        shared_memory(b, shared_bytes(scores, self.m))
        self.row_points = PointEmitter(b, self.points.producers, SCORES)
        self.tiles = ScoreTiles(b, scores, self.row_points, self.queries_and_keys, self.number)
        self.tiles.start(self.block, self.thread)
        self.members = Members(b, Team(QUAD, True), self.t.rem(self.t.lane, QUAD))
        self.rows = [self.tiles.row(half) for half in range(2)]
        self.units = pairs(self.t)
        self.units.prepare()
        start = [b.constant(0, self.kind)] * (self.tile.sums + self.units.rows)
        if scores.tiles == 1:
            found = self.multiply(0, self.computed(0), start)
        else:
            found = self.in_one_pass(start) if self.online is not None else self.in_passes(start)
        found = self.units.finish(found)
        return found[: self.tile.sums], found[self.tile.sums :]

    # A single tile of keys

    def computed(self, tile: Index) -> list[list[list[SSAValue]]]:
        """Emit the operations that compute the softmax weights of the thread's rows from the scores, for a tile that
        contains all keys. Return for each row, and each matrix instruction, the two 32-bit words of weights that the
        lane supplies."""
        emitters = self.emitters(tile, [{}, {}])
        for emitter in emitters:
            emitter.emit()
        return [self.words(emitter) for emitter in emitters]

    # Passes

    def in_passes(self, start: list[SSAValue]) -> list[SSAValue]:
        """Emit each reduction as a pass over all keys, and then a pass for the values; return the sums."""
        b, numbers = self.b, list[Numbers]([{}, {}])
        for op in self.scores.chain.ops:
            if isinstance(op, linalg.GenericOp) and is_reduction(op):
                self.reduce(op, numbers)
            elif isinstance(op, linalg.FillOp) or self.is_number(op):
                self.compute_number(op, numbers)
        with b.loop(0, self.scores.tiles, carried=start) as (tile, state):
            emitters = self.emitters(tile, numbers)
            words = [self.weights(emitter) for emitter in emitters]
            state.next = self.multiply(tile, words, state.args)
        return list(state.results)

    def is_number(self, op: linalg.GenericOp) -> bool:
        """Whether an operation computes one value for each row."""
        return is_number(op, self.scores.chain.outer)

    def compute_number(self, op: Scheduled, numbers: list[Numbers]) -> None:
        """Compute a per-row value, from other per-row values, for both rows of the thread."""
        for half in range(2):
            row = self.of_row(half, numbers[half])
            row.compute(op)
            numbers[half] = row.numbers

    def reduce(self, op: linalg.GenericOp, numbers: list[Numbers]) -> None:
        """Emit a reduction over the keys, for each of the thread's two rows of scores: a loop over the tiles of keys,
        in which the scores are computed, followed by a combination of the threads' results."""
        b, output, join = self.b, op.outputs[0], join_of(op)
        assert join is not None
        starts = [known[output] for known in numbers]
        first = [b.constant(0, start.type) if join in SUMS else start for start in starts]
        with b.loop(0, self.scores.tiles, carried=first) as (tile, state):
            emitters = self.emitters(tile, numbers)
            if self.tiles.reads_first_stage:
                b.add(BarrierOp.create())
            for emitter in emitters:
                self.compute_for(op, emitter)
            pairs = zip(emitters, starts, state.args, strict=True)
            state.next = [b.add(join(old, emitter.own(op, start))).results[0] for emitter, start, old in pairs]
        for known, start, own in zip(numbers, starts, state.results, strict=True):
            total = self.members.join(own, join)
            known[output] = b.add(join(start, total)).results[0] if join in SUMS else total

    # Incremental softmax

    def in_one_pass(self, start: list[SSAValue]) -> list[SSAValue]:
        """Emit a single pass: the values' sums are scaled down where a greater score occurs; return the sums."""
        b, online, sums = self.b, self.online, self.tile.sums
        assert online is not None
        numbers = list[Numbers]([{}, {}])
        for op in self.scores.chain.ops:
            if isinstance(op, linalg.FillOp) or (self.is_number(op) and online.inverse not in op.outputs):
                self.compute_number(op, numbers)
        least = [known[online.most.outputs[0]] for known in numbers]
        with b.loop(0, self.scores.tiles, carried=[*least, *[b.constant(0, f32)] * 2, *start]) as (tile, state):
            emitters = self.emitters(tile, numbers)
            results, words, found = list[SSAValue](), list[list[list[SSAValue]]](), list(state.args[4:])
            for half, emitter in enumerate(emitters):
                most, total, factor = self.add_tile(emitter, state.args[half], state.args[2 + half])
                results += [most, total]
                words.append(self.weights(emitter))
                found[:sums] = self.scaled(found[:sums], half, factor)
            state.next = [*results[::2], *results[1::2], *self.multiply(tile, words, found)]
        found = list(state.results[4:])
        for half in range(2):
            known = numbers[half]
            total = self.members.join(state.results[2 + half], arith.AddfOp)
            known[online.sums.outputs[0]] = b.add(arith.AddfOp(known[online.sums.outputs[0]], total)).result
            row = self.of_row(half, known)
            for op in self.scores.chain.ops:
                if online.inverse in op.outputs:
                    row.compute(op)
            inverse = row.numbers[online.inverse]
            if online.chosen:
                zero = b.constant(0, f32)
                inverse = b.select(b.compare(total, "ogt", zero), inverse, zero)
            found[:sums] = self.scaled(found[:sums], half, inverse)
        return found

    def add_tile(self, emitter: TileRow, before: SSAValue, total: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Process the scores of another tile for one row; return the greatest score, the thread's part of the sum of
        exponentials, and the factor for earlier sums. Without a finite score all exponentials are 0, not `exp(inf -
        inf)`."""
        b, online = self.b, self.online
        assert online is not None
        most, powers, output = online.most, online.powers, online.most.outputs[0]
        self.compute_for(most, emitter)
        found = self.members.join(emitter.own(most, before), arith.MaximumfOp)
        least = b.constant(float("-inf"), f32)
        emitter.numbers[output] = b.select(b.compare(found, "oeq", least), b.constant(0, f32), found)
        arguments = [before, emitter.numbers[output], powers.outputs[0]]
        (factor,) = emitter.points.computed(powers.body.block, arguments, emitter.dims)
        emitter.compute(powers)
        own = emitter.own(online.sums, b.constant(0, f32))
        emitter.numbers[online.inverse] = b.constant(1, f32)
        return found, b.add(arith.AddfOp(b.add(arith.MulfOp(total, factor)).result, own)).result, factor

    def scaled(self, sums: Sequence[SSAValue], half: int, factor: SSAValue) -> list[SSAValue]:
        """Return the thread's sums of weighted values, after multiplying those of row `half` of its two rows by a
        factor."""
        b = self.b
        return [b.add(arith.MulfOp(sum, factor)).result if n % 4 // 2 == half else sum for n, sum in enumerate(sums)]

    # Tiles

    def of_row(self, half: int, numbers: Numbers) -> TileRow:
        """Return an emitter for operations that need one value per row of scores, such as its maximum or sum, but not
        the scores themselves. `half`: which of the thread's two rows, 0 or 1; `numbers`: the row's known values."""
        return TileRow(self.b, self.scores, self.row_points, self.members, self.dims(half), 0, numbers, [])

    def dims(self, half: int) -> list[Index]:
        return [self.number, self.rows[half]]

    def emitters(self, tile: Index, numbers: Sequence[Numbers]) -> list[TileRow]:
        """Return the emitters of operations on the scores of a tile, for both rows of the thread."""
        found = enumerate(self.tiles.of_tile(tile))
        return [
            TileRow(self.b, self.scores, self.row_points, self.members, self.dims(half), tile, numbers[half], scores)
            for half, scores in found
        ]

    def compute_for(self, op: linalg.GenericOp, emitter: TileRow) -> None:
        """Emit the operations on rows of scores that compute the inputs of `op`, and those that these depend on in
        turn, unless they were emitted already. They lie between the two products of the attention."""
        for value in op.inputs:
            if value in self.scores.chain.written and value not in emitter.numbers and (value, "") not in emitter.kept:
                writer = next(each for each in self.scores.chain.ops if value in each.outputs)
                assert isinstance(writer, linalg.GenericOp)
                self.compute_for(writer, emitter)
                emitter.compute(writer)

    def weights(self, emitter: TileRow) -> list[list[SSAValue]]:
        """Emit this lane's softmax weights of a tile, and return them as 32-bit words, two for each matrix instruction
        (see `words`). `emitter` has the values of each row (such as its maximum) from which they are computed."""
        last = self.scores.chain.ops[-1]
        assert isinstance(last, linalg.GenericOp)
        self.compute_for(last, emitter)
        emitter.compute(last)
        return self.words(emitter)

    def words(self, emitter: TileRow) -> list[list[SSAValue]]:
        """Return this lane's softmax weights of a row of scores, packed for the second product: for each matrix
        instruction, the two 32-bit words that it takes from the lane. Weights of keys beyond the last one are 0."""
        pieces = zip(emitter.pieces, emitter.kept[self.scores.weights, ""], strict=True)
        words = [word for piece, weights in pieces for word in self.words_of(piece, weights)]
        return [words[n : n + 2] for n in range(0, len(words), 2)]

    def words_of(self, piece: Piece, weights: SSAValue) -> list[SSAValue]:
        """Return eight softmax weights (`weights`, codes or floats) as the 32-bit words that the matrix instructions
        take; zeros for keys beyond the last one."""
        b, format = self.b, self.m.format
        if format.exact:
            codes = b.bitcast(weights, i32, 2)
            words = [b.lane(codes, number) for number in range(2)]
        else:
            words = float_words(b, format, [b.lane(weights, number) for number in range(SCORES)])
        inside, zero = piece.inside, b.constant(0, i32)
        return words if inside is None else [b.select(inside, word, zero) for word in words]

    def multiply(self, tile: Index, words: Sequence[list[list[SSAValue]]], sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Add the products of a tile's weights and values to the sums."""
        b, found, steps = self.b, list(sums), value_steps(self.scores.matrix, self.m)
        copies = ValueCopies(self.t, self.factors, self.pair, self.number)
        stages = [self.scores.shared_bytes + step * self.tile.columns * self.tile.depth for step in range(steps)]
        for step, stage in enumerate(stages):
            copies.store(copies.load(b.plus(b.times(tile, steps), step)), stage)
        b.add(BarrierOp.create())
        places = [b.plus(right, stage) for stage in stages for right in self.units.right]
        start = self.tile.rows * self.tile.depth
        for place, first, second in zip(places, *words, strict=False):
            factors = [first[0], second[0], first[1], second[1]]
            self.units.add_products([factors], self.units.weights(b.plus(place, -start)), found)
        return found


def shared_bytes(scores: Scores, values: Matrix) -> int:
    """Return the bytes of a block's shared memory: queries, keys, and a tile of values."""
    return scores.shared_bytes + value_steps(scores.matrix, values) * values.tile.columns * values.tile.depth


def value_steps(scores: Matrix, values: Matrix) -> int:
    """Return the number of steps in which the second product of an attention sums over one tile of keys. `scores` and
    `values` are the first product, of queries and keys, and the second, of softmax weights and values."""
    return min(-(-scores.tile.columns // values.deep), values.steps)


class TileRow(RowEmitter):
    """Emits operations on a tile of a row's scores. `numbers`: the values that are already known for this row, by the
    buffer that holds one value per row (such as the row's maximum)."""

    def __init__(
        self,
        b: LoopBuilder,
        scores: Scores,
        points: PointEmitter,
        members: Members,
        dims: Sequence[Index],
        tile: Index,
        numbers: Numbers,
        given: list[SSAValue],
    ):
        self.tile, self.size, self.several = tile, len(given) * WIDTH, scores.tiles > 1
        super().__init__(b, scores.chain, points, members, dims, None, {scores.sums: given})
        self.numbers = dict(numbers)

    def find_pieces(self) -> Iterator[Piece]:
        b, whole = self.b, self.chain.size // SCORES
        first = b.times(self.tile, self.size // SCORES)
        for number in range(self.size // WIDTH):
            at = b.plus(first, b.plus(number * QUAD, self.members.member))
            full = self.chain.size % self.size == 0 if self.several else (number + 1) * WIDTH <= self.chain.size
            inside, place = limited(b, at, whole, full)
            yield Piece(self.points.widened([place])[0], inside)


class ValueCopies(PairCopies):
    """Emits one thread's copies of an attention's values to shared memory. Values are stored in the order in which the
    lanes of a warp hold the softmax weights by which they are multiplied."""

    def find(self, factors: Sequence[SSAValue]) -> Iterator[Part]:
        return self.columns(factors[0], 0)

    def line(self, place: Index) -> Index:
        b, t, word = self.b, self.t, QUAD * self.together
        group, inside = b.times(t.div(place, WIDTH), WIDTH), t.rem(place, WIDTH)
        lane = b.times(t.div(t.rem(inside, word), self.together), SCORES)
        return b.plus(group, b.plus(lane, b.times(t.div(inside, word), self.together)))
