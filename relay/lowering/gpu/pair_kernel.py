"""Products of two computed factors by the matrix units of single warps: threads copy rows of both factors to shared
memory, through registers, and transpose the second factor if it is stored as [depth, columns]. Floats are rounded to
the precision of the matrix units before they are stored in shared memory.

Unlike products with constant weights, nothing is packed first, and the sums that zero points require are computed here,
by products with ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.dots import ONES
from relay.lowering.gpu.matrix import Matrix, Product
from relay.lowering.gpu.matrix_kernel import MatrixKernel
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.tiles import CHUNK
from relay.lowering.gpu.warp_products import RoundedProducts, WarpProducts, float_words
from relay.lowering.indices import below, binary, both, limited, quotient, remainder
from relay.lowering.scheduling.zero_points import wrapped
from relay.lowering.shaped import buffer_of, is_vector

FOUR = 4
"""While it transposes a factor, a thread reads this number of neighbouring columns at once, and writes this number of
bytes of each column at once."""


@dataclass(frozen=True)
class Pair:
    """`count` products of matrices `[rows, depth]` by `[columns, depth]`, or by `[depth, columns]` if `turned`;
    `product` describes one of them."""

    product: Product
    count: int
    turned: bool


class PairKernel(MatrixKernel):
    """Emits the work of one thread for one tile of the result of a batched matrix product whose factors are both
    computed at run time. `pair` describes the batch, `matrix` one product of it, divided into tiles."""

    def __init__(
        self, builder: LoopBuilder, pair: Pair, matrix: Matrix, points: PointEmitter, factors: Sequence[SSAValue]
    ):
        super().__init__(builder, matrix, points, factors)
        self.pair = pair

    def emit_block(self, block: Index, thread: Index) -> None:
        """Emit the work of one thread on the tile of results that its block computes. `block`: the block's number, in
        which the tiles of all products of the batch are counted; `thread`: the thread's number in the block."""
        b, blocks = self.b, self.m.blocks
        self.number = quotient(b, block, blocks) if self.pair.count > 1 else 0
        tile = remainder(b, block, blocks) if self.pair.count > 1 else block
        self.block, self.thread = tile, thread
        at = [self.number] if len(self.m.nest.shape) > 2 else []
        self.emit(tile, thread, lambda row: [*at, row])

    def products(self) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        b, t, steps = self.b, self.t, self.m.steps
        units, copies, first = pairs(t), self.pair_copies(), t.first_step
        units.prepare()
        copies.store(copies.load(first), 0)
        zero = b.constant(0, self.kind)
        with b.loop(0, steps, carried=[zero] * (self.tile.sums + units.rows)) as (step, state):
            b.add(BarrierOp.create())
            following = b.plus(step, 1)
            loaded = copies.load(b.plus(first, following)) if steps > 1 else []
            state.next = units.multiply(t.stage(step), state.args)
            if loaded:
                copies.store(loaded, t.stage(following))
        found = units.finish(state.results)
        return found[: self.tile.sums], found[self.tile.sums :]

    def pair_copies(self) -> PairCopies:
        """Return the emitter of this thread's copies of both factors of the product from global to shared memory."""
        return PairCopies(self.t, self.factors, self.pair, self.number)


@dataclass(frozen=True)
class Part:
    """The elements of a factor that one thread copies for a step of the loop over the depth: `read(step)` loads them
    from global memory, `write(stage, values)` stores them in the buffer of shared memory that starts at byte
    `stage`."""

    read: Callable[[Index], list[SSAValue]]
    write: Callable[[Index, Sequence[SSAValue]], None]


class PairCopies:
    """Emits one thread's copies of parts of both factors of product `number` of the batch: from global memory to
    registers (`load`), and from there to shared memory (`store`)."""

    def __init__(self, thread: MatrixThread, factors: Sequence[SSAValue], pair: Pair, number: Index):
        self.t, self.b, self.m, self.pair, self.product = thread, thread.b, thread.m, pair, number
        self.size = self.m.format.data
        self.together = FOUR // self.size
        self.parts = [*self.find(factors)]

    def find(self, factors: Sequence[SSAValue]) -> Iterator[Part]:
        """Yield the parts of both factors that the thread copies."""
        yield from self.first(factors[0])
        yield from self.second(factors[1])

    def first(self, source: SSAValue) -> Iterator[Part]:
        """Yield the parts of the first factor that the thread copies."""
        return self.rows(source, self.m.rows, self.t.first_row, self.t.tile.rows, 0, False)

    def second(self, source: SSAValue) -> Iterator[Part]:
        """Yield the parts of the second factor that this thread copies to shared memory. Each stage there holds the
        tile of the first factor, then that of the second."""
        t, start = self.t, self.t.tile.rows * self.t.tile.depth
        if self.pair.turned:
            return self.columns(source, start)
        return self.rows(source, self.m.columns, t.first_column, t.tile.columns, start, True)

    def load(self, step: Index) -> list[list[SSAValue]]:
        """Load the thread's parts of a step from memory; zeros beyond the ends of the factors."""
        return [part.read(step) for part in self.parts]

    def store(self, loaded: Sequence[Sequence[SSAValue]], stage: Index) -> None:
        """Store the parts of the factors that `load` returned in shared memory, in the buffer of one step that starts
        at byte `stage`."""
        for part, values in zip(self.parts, loaded, strict=True):
            part.write(stage, values)

    def rows(
        self, source: SSAValue, count: int, first: Index, rows: int, start: Index, ordered: bool
    ) -> Iterator[Part]:
        """Yield the chunks that this thread copies from `rows` rows of a factor to a stage in shared memory. The factor
        has `count` rows, the first one copied is `first`, and the copies begin at offset `start` of the stage.
        `ordered`: whether the rows are stored in the order of packed weights, as those of the second factor are."""
        b, t = self.b, self.t
        chunk, together = t.rem(t.number, t.chunks), t.tile.threads // t.chunks
        for number in range(rows // together):
            row = b.plus(t.div(t.number, t.chunks), number * together)
            place = b.plus(t.place(row, chunk), start)
            at = b.plus(first, self.channel(row) if ordered else row)
            inside, line = limited(b, at, count, count % rows == 0)
            line = b.plus(b.times(self.product, count), line)
            yield self.chunk(source, line, b.times(chunk, CHUNK // self.size), inside, place)

    def chunk(self, source: SSAValue, line: Index, k: Index, inside: SSAValue | None, place: Index) -> Part:
        """Return the copy of `CHUNK` bytes of row `line` of the matrix `source` to offset `place` of a stage in shared
        memory. At each step, the bytes begin `k` elements after the step's start. Where `inside` is false, zeros are
        copied."""
        b, t, whole = self.b, self.t, CHUNK // self.size
        piece, base = gcd(whole, self.m.depth), b.times(line, self.m.depth)

        def read(step: Index) -> list[SSAValue]:
            first = b.plus(b.times(step, self.m.deep), k)
            found = [self.known(source, base, b.plus(first, n), 1, inside, piece) for n in range(0, whole, piece)]
            return [self.rounded(value) for value in found]

        def write(stage: Index, values: Sequence[SSAValue]) -> None:
            for number, value in enumerate(values):
                to = b.plus(b.plus(stage, place), number * piece * self.size)
                b.vector_store(value, t.numbers, [t.div(to, self.size)])

        return Part(read, write)

    def known(
        self, source: SSAValue, base: Index, k: Index, pitch: int, inside: SSAValue | None, count: int
    ) -> SSAValue:
        """Load `count` neighbouring elements of a factor, from offset `base + k * pitch` on, where `k` is a position
        along the depth and `pitch` the distance from one position to the next. Return zeros where `inside` is false,
        and where `k` is beyond the end of the depth."""
        b, depth = self.b, self.m.depth
        if depth < self.m.packed_depth or self.m.steps > 1:
            inside = both(b, [inside, below(b, k, depth)])
            k = binary(b, arith.MinUIOp, k, depth - (count if pitch == 1 else 1))
        value = b.vector_load(source, [b.plus(base, b.times(k, pitch))], count)
        if inside is None:
            return value
        return b.select(inside, value, b.broadcast(b.constant(0, self.m.conv.data.element), count))

    def columns(self, source: SSAValue, start: int) -> Iterator[Part]:
        """Yield the parts of a transposed factor that the thread copies. Each has four neighbouring columns, and for
        each column `self.together` elements, whose rows are consecutive and which fill a 32-bit word."""
        b, t, columns = self.b, self.t, self.m.columns
        groups = t.tile.columns // FOUR
        for number in range(t.tile.depth // FOUR * groups // t.tile.threads):
            item = b.plus(t.number, number * t.tile.threads)
            column, k = b.times(t.rem(item, groups), FOUR), b.times(t.div(item, groups), self.together)
            at = b.plus(t.first_column, column)
            inside, at = limited(b, at, columns, columns % t.tile.columns == 0, FOUR)
            base = b.plus(b.times(self.product, self.m.depth * columns), at)
            yield self.turned(source, base, k, inside, column, start)

    def turned(
        self, source: SSAValue, base: Index, k: Index, inside: SSAValue | None, column: Index, start: int
    ) -> Part:
        """Return a copy of four neighbouring columns of `source` to shared memory, transposed. In each step of the loop
        over the depth, it reads `together` rows, the first of which is `k` rows after the start of the step, and stores
        the elements of each column side by side in a pipeline stage. `column`: the first column, counted within the
        tile; `base`: its offset in `source`; `start`: the offset in the stage. Where `inside` is false, zeros are
        stored."""
        b, t, together = self.b, self.t, self.together
        row = self.row(column)
        chunk, rest = t.div(k, CHUNK // self.size), t.rem(k, CHUNK // self.size)
        places = [
            b.plus(b.plus(t.place(b.plus(row, away), chunk), b.times(rest, self.size)), start) for away in (0, 1, 8, 9)
        ]

        def read(step: Index) -> list[SSAValue]:
            first = self.line(b.plus(b.times(step, self.m.deep), k))
            lines = [self.known(source, base, b.plus(first, n), self.m.columns, inside, FOUR) for n in range(together)]
            return self.transposed(lines)

        def write(stage: Index, values: Sequence[SSAValue]) -> None:
            for number, place in enumerate(places):
                b.vector_store(values[number], t.numbers, [t.div(b.plus(stage, place), self.size)])

        return Part(read, write)

    def line(self, place: Index) -> Index:
        """Return the row of a transposed factor that is stored at position `place` of the reduction dimension in shared
        memory. Here it is the same number; attention permutes the rows."""
        return place

    def transposed(self, lines: Sequence[SSAValue]) -> list[SSAValue]:
        """Transpose vectors of four elements, one for each of four columns. Return four values of 32 bits, each with
        the elements of one column."""
        b, found = self.b, list[SSAValue]()
        if self.together < FOUR:
            columns = [[b.lane(line, column) for line in lines] for column in range(FOUR)]
            return [self.rounded(b.packed(column)) for column in columns]
        for half in (0, 2):
            order = [half, half + 4, half + 1, half + 5]
            low, high = (b.shuffle(lines[n], lines[n + 1], order) for n in (0, 2))
            found += [b.shuffle(low, high, [n, n + 1, n + 4, n + 5]) for n in (0, 2)]
        return found

    def rounded(self, value: SSAValue) -> SSAValue:
        """Convert a vector of elements to the format in shared memory."""
        b, format = self.b, self.m.format
        if format.exact:
            return value
        assert is_vector(value.type)
        (count,) = value.type.get_shape()
        found = self.of_words(float_words(b, format, [b.lane(value, number) for number in range(count)]))
        return found if count * format.data % FOUR == 0 else b.broadcast(b.lane(found, 0), 1)

    def of_words(self, words: Sequence[SSAValue]) -> SSAValue:
        """Convert words to a vector of shared memory's element type."""
        held = buffer_of(self.t.numbers).element_type
        return self.b.bitcast(self.b.packed(words), held, len(words) * FOUR // self.size)

    def channel(self, row: Index) -> Index:
        """Return the column that is stored in a row of a stage, in the order of `Matrix.ordered`: in each group of 32,
        row 8 i + 2 t + j stores column 8 t + 2 i + j."""
        b, t = self.b, self.t
        i, two, j = t.div(t.rem(row, 32), 8), t.div(t.rem(row, 8), 2), t.rem(row, 2)
        group = b.times(t.div(row, 32), 32)
        return b.plus(b.plus(group, b.times(two, 8)), b.plus(b.times(i, 2), j))

    def row(self, column: Index) -> Index:
        """Return the row of a shared-memory buffer in which the second factor's column `column`, a multiple of 4, is
        stored: the inverse of `channel`."""
        b, t = self.b, self.t
        group = b.times(t.div(column, 32), 32)
        i, two = t.div(t.rem(column, 8), 2), t.div(t.rem(column, 32), 8)
        return b.plus(group, b.plus(b.times(i, 8), b.times(two, 2)))


class CodePairs(WarpProducts):
    """Emits one thread's part of the matrix products of codes that its warp computes. If the data has a zero point, the
    sums of the columns of the second factor are computed, too: as products with a matrix of ones, whose accumulators, 4
    for each instruction's 8 columns, follow all others in the list of sums."""

    def __init__(self, thread: MatrixThread):
        super().__init__(thread)
        self.before = self.tile.sums + self.rows
        self.rows += 4 * self.tile.column_steps if self.conv.data.zero_point else 0

    def add_products(
        self, a: Sequence[Sequence[SSAValue]], w: Sequence[Sequence[SSAValue]], sums: list[SSAValue]
    ) -> None:
        super().add_products(a, w, sums)
        if self.conv.data.zero_point:
            ones = [self.b.constant(ONES, i32)] * 4
            for column, weights in enumerate(w):
                at = self.before + 4 * column
                sums[at : at + 4] = self.product(ones, weights, sums[at : at + 4])

    def finish(self, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the sums of products without the contribution of the data's zero point. `sums` has the sums of
        products, and also the sums of the second factor's columns, from which that contribution is computed."""
        b, zx, zw = self.b, self.conv.data.zero_point, self.conv.kernel.zero_point
        if not zx:
            return list(sums)
        each = 4 * self.tile.column_steps
        factor, rest = b.constant(wrapped(-zx), i32), b.constant(wrapped(self.m.depth * zx * zw), i32)
        offsets = [b.add(arith.MuliOp(sum, factor)).result for sum in sums[self.before :]]
        offsets = [b.add(arith.AddiOp(offset, rest)).result for offset in offsets]
        mended = [b.add(arith.AddiOp(sum, offsets[n % each])).result for n, sum in enumerate(sums[: self.tile.sums])]
        return [*mended, *sums[self.tile.sums : self.before]]


def pairs(thread: MatrixThread) -> WarpProducts:
    """Return the emitter of a thread's part of the product of two computed matrices: `CodePairs` if the elements are
    codes, `RoundedProducts` if they are floats."""
    return CodePairs(thread) if thread.m.format.exact else RoundedProducts(thread)
