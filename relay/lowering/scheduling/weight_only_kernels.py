"""Kernels of float products with weights of few bits.

A word of 32 bits holds 16, 8 or 4 codes of a channel; the words of 16 channels are contiguous. The data of a block is
multiplied by codes, and the sum by the scale: `scale * (sum of x * code) - scale * zero_point * (sum of x)`.

For many rows, weights are converted to floats, `(code - zero_point) * scale`: a panel of some input channels at a time
is written to scratch memory, and multiplied, in tiles of full height, with all rows of a strip of up to 64 rows.

Where the target has dot products of bytes, the data of a block is quantized, too: to 24 bits, split into three bytes,
which rounds each element to 2^-23 of the block's largest, or to 8 bits, if the operation allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math, memref, vector
from xdsl.dialects.builtin import ReducedPrecisionFloatType, f32, i8, i16, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects.arith import ExtSIOp, FPToSIOp, SIToFPOp, TruncIOp
from relay.dialects.memref import PrefetchOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.body import dense_vector, vector_constant
from relay.lowering.scheduling.code_types import as_float, numbers_of
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.loops import over
from relay.lowering.scheduling.prefetch import SECOND_LEVEL
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import shape_of, vector_of
from relay.target import LANES

GROUP = 4
"""The number of bytes of a channel that a dot product multiplies."""
NARROW = 8
"""The number of pairs of products of a 4-bit weight by an 8-bit code whose sum fits in 16 bits."""
PRECISE = 3
"""The number of bytes to which data must be quantized to be as precise as float32."""
SMALLEST = 2.0**-100
"""A lower bound for the largest magnitude of a block of data, by which the block is scaled: it avoids a division by
zero where all data are 0."""
STRIP = 64
"""The number of rows whose sums are in scratch memory at once."""
TABLE = "llvm.x86.avx512.permvar.sf.512"
"""The intrinsic that reads a table of 16 floats by the lowest 4 bits of each lane."""

Added = Callable[[Index, Sequence[SSAValue]], list[SSAValue]]
"""Takes the number of a word of a block and sums; returns the sums with the products of the word's codes added."""


@dataclass(frozen=True, kw_only=True)
class WeightOnlySchedule(OpSchedule):
    """The decisions about a product with weights of few bits. `tile`: rows, and vectors of 16 channels, whose sums are
    in registers; `parts`: bytes of a quantized element of the data, 0 if data stays float; `panel`: the number of
    inputs whose weights are converted to floats in scratch memory once for a strip of many rows, 0 if they are
    converted in registers for each tile; `table`: codes are converted by a table of 16 floats, else by conversion
    instructions; `fused`: products are added by fused multiply-adds; `ahead`: how many vectors ahead weights are
    prefetched if the data is a single row (the vectors of a tile are then far apart, each in its own part of all
    channels); `masks`: fewer than 16 channels are loaded and stored by one masked instruction."""

    strategy = "weight_only"
    tile: tuple[int, int]
    parts: int
    panel: int
    table: bool
    fused: bool
    ahead: int
    masks: bool


class WeightOnlyEmitter:
    """Emits the product of float data and weights in codes, with its epilogue.

    `constants`: the packed codes, the scales and, unless they are all 0, the numbers `-scale * (zero_point - middle)`
    by which the sum of each block of the data is multiplied; the kernel subtracts `middle` from each code.
    """

    def __init__(
        self,
        builder: LoopBuilder,
        data: SSAValue,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        schedule: WeightOnlySchedule,
        bits: int,
        type: Attribute,
        middle: int,
        unsigned: bool,
    ):
        """`middle`: the number that is subtracted from each code; `unsigned`: whether the dot product's weight operand
        is unsigned, if the data is quantized."""
        self.b, self.data, self.epilogue, self.schedule, self.bits = builder, data, epilogue, schedule, bits
        self.middle, self.unsigned = middle, unsigned
        self.words, self.scales, *shifts = constants
        self.shifts = shifts[0] if shifts else None
        self.rows, self.depth = shape_of(data)
        self.vectors = -(-epilogue.channels // LANES)
        whole = epilogue.channels // LANES
        self.apart = max(whole // schedule.tile[1], 1) if self.rows == 1 else 1
        """The distance from one vector of a tile to the next. With one row, which waits for memory, each vector of the
        tile processes a separate part of the channels: memory bandwidth is higher for several streams."""
        self.blocks = shape_of(self.scales)[0] // (self.vectors * LANES)
        self.block = self.depth // self.blocks
        self.per = 32 // bits
        self.floats = type if isinstance(type, ReducedPrecisionFloatType) else None
        self.numbers = [float(code % (1 << bits) - middle) for code in range(LANES)]
        if self.floats is not None:
            self.numbers = numbers_of(self.floats)

    def emit(self) -> None:
        b = self.b
        if self.shifts is None:
            self.channels(None)
            return
        sums = b.add(memref.AllocOp.get(f32, 64, [self.rows, self.blocks])).memref
        with b.loop(0, self.rows) as (row, _), b.loop(0, self.blocks) as (block, _):
            start = b.times(block, self.block)
            with b.loop(0, self.block, carried=[b.constant(0.0, f32)]) as (k, state):
                x = b.load(self.data, [row, b.plus(start, k)])
                state.next = [b.add(arith.AddfOp(state.args[0], x)).result]
            b.store(state.results[0], sums, [row, block])
        self.channels(sums)

    def channels(self, sums: SSAValue | None) -> None:
        """Emit the product, one tile of channels after the other: each tile is computed for all rows, so that its
        weights stay in the cache."""

        def tiles(first: Index, vectors: int, lanes: int) -> None:
            most = self.schedule.tile[0]
            over(self.b, self.rows, most, lambda row, rows: self.tile(row, rows, first, vectors, lanes, sums))

        self.over_channels(tiles)

    def over_channels(self, tile: Callable[[Index, int, int], None]) -> None:
        """Call `tile(first, vectors, lanes)` for all tiles of channels: a tile has `vectors` vectors of `lanes`
        channels, from vector number `first` on. `lanes` is 16, or less for channels left over at the end. The vectors
        of a tile are `self.apart` vectors apart: if this is 1, they are neighbours; if it is more, the vectors left
        over at the end form tiles of one vector."""
        b, vectors = self.b, self.schedule.tile[1]
        whole, rest = divmod(self.epilogue.channels, LANES)
        if self.apart > 1:
            with b.loop(0, self.apart, independent=True) as (first, _):
                tile(first, vectors, LANES)
            with b.loop(self.apart * vectors, whole, independent=True) as (first, _):
                tile(first, 1, LANES)
        else:
            over(b, whole, vectors, lambda first, count: tile(first, count, LANES), independent=True)
        if rest:
            tile(whole, 1, rest)

    def vector(self, first: Index, number: int) -> Index:
        """Return the number of a vector of channels among all of them. In the tile that starts at vector `first`, it is
        vector `number`."""
        return self.b.plus(first, number * self.apart)

    def of_block(self, first: Index, vectors: int, block: Index) -> list[Index]:
        """Return, for each vector of channels of a tile, the offset in the packed scales (and in the packed shifts, if
        there are any) of the numbers for block `block` of these channels; there is one number per channel."""
        b = self.b
        return [b.times(b.plus(b.times(self.vector(first, v), self.blocks), block), LANES) for v in range(vectors)]

    def tile(self, row: Index, rows: int, first: Index, vectors: int, lanes: int, sums: SSAValue | None) -> None:
        """Emit a tile of `rows` rows of the data, from `row` on, and `vectors` vectors of channels, from vector number
        `first` on: its products summed over all blocks, then the epilogue of the `lanes` channels of each vector.
        `sums`: the sum of the data of each row and block; None if no zero point requires these."""
        b, zero = self.b, vector_constant(self.b, 0.0, f32, LANES)
        with b.loop(0, self.blocks, carried=[zero] * (rows * vectors)) as (block, blocks):
            found = self.block_sums(block, row, rows, first, vectors)
            places = self.of_block(first, vectors, block)
            scales = self.loaded(self.scales, places, self.blocks * vectors)
            shifts = [] if self.shifts is None else [b.vector_load(self.shifts, [place], LANES) for place in places]
            totals: list[SSAValue] = []
            for r in range(rows):
                at = [b.plus(row, r), block]
                row_scales = self.row_scales(scales, at)
                sum = None if sums is None else b.broadcast(b.load(sums, at), LANES)
                for v in range(vectors):
                    n = r * vectors + v
                    total = self.added(blocks.args[n], self.real(found, n), row_scales(v))
                    totals.append(total if sum is None else self.added(total, sum, shifts[v]))
            blocks.next = totals
        for r in range(rows):
            for v in range(vectors):
                channel = b.times(self.vector(first, v), LANES)
                self.epilogue.apply(blocks.results[r * vectors + v], [b.plus(row, r)], channel, lanes)

    def block_sums(self, block: Index, row: Index, rows: int, first: Index, vectors: int) -> Sequence[SSAValue]:
        """Emit the products of the data with the codes of weight block `block` (weights that share a scale), and return
        their sums, not yet scaled, as [row, vector]: those of `rows` rows from `row` on, and of `vectors` vectors of 16
        channels from vector number `first` on."""
        b, zero = self.b, vector_constant(self.b, 0.0, f32, LANES)
        words = self.block // self.per
        with b.loop(0, words, carried=[zero] * (rows * vectors)) as (word, steps):
            at = b.plus(b.times(block, words), word)
            steps.next = self.products(steps.args, self.loaded_words(first, vectors, at), row, rows, at)
        return steps.results

    def products(
        self, sums: Sequence[SSAValue], words: Sequence[SSAValue], row: Index, rows: int, at: Index
    ) -> list[SSAValue]:
        """Add the products of word `at` of each channel to the sums."""
        b, found = self.b, list(sums)
        column = b.times(at, self.per)
        for place in range(self.per):
            numbers = [self.number(word, place) for word in words]
            for r in range(rows):
                x = b.broadcast(b.load(self.data, [b.plus(row, r), b.plus(column, place)]), LANES)
                for v, number in enumerate(numbers):
                    n = r * len(words) + v
                    found[n] = self.added(found[n], number, x)
        return found

    def real(self, sums: Sequence[SSAValue], n: int) -> SSAValue:
        """Return vector `n` of the sums over a block (weights that share a scale) as floats, before they are multiplied
        by the scales that `row_scales` returns."""
        return sums[n]

    def row_scales(self, scales: Sequence[SSAValue], at: Sequence[Index]) -> Callable[[int], SSAValue]:
        """Return a function that takes the number of a vector of channels and returns the scale of its sums, for the
        row and block `at`."""
        return lambda v: scales[v]

    def loaded_words(self, first: Index, vectors: int, at: Index) -> list[SSAValue]:
        """Return, for each of `vectors` vectors of channels of the tile that starts at `first`, a vector with word
        number `at` of each channel's packed codes."""
        b, words = self.b, self.depth // self.per
        places = [b.plus(b.times(self.vector(first, v), words * LANES), b.times(at, LANES)) for v in range(vectors)]
        return self.loaded(self.words, places, words * self.schedule.tile[1])

    def loaded(self, constants: SSAValue, places: Sequence[Index], ahead: int) -> list[SSAValue]:
        """Load the vectors of `constants` at the offsets `places`, and prefetch for each of them a vector behind it.
        The distance is `ahead` vectors, but `self.schedule.ahead` vectors if `self.apart` > 1 (the data is a single
        row, and the vectors of a tile are not neighbours in memory)."""
        b, ahead = self.b, self.schedule.ahead if self.apart > 1 else ahead
        found = [b.vector_load(constants, [place], LANES) for place in places]
        for place in places:
            b.add(PrefetchOp.make(constants, [b.index(b.plus(place, ahead * LANES))], SECOND_LEVEL))
        return found

    def number(self, words: SSAValue, place: int) -> SSAValue:
        """Return a vector of 16 floats: from each lane of `words`, a 32-bit word of several weight codes, code number
        `place`, converted to float."""
        b = self.b
        if self.floats is not None and not self.schedule.table:
            return as_float(b, words, place * self.bits, self.floats)
        if place:
            words = b.add(arith.ShRUIOp(words, vector_constant(b, place * self.bits, i32, LANES))).result
        if self.schedule.table:
            table = b.constant_attr(dense_vector(self.numbers, f32), vector_of(f32, LANES))
            return b.intrinsic(TABLE, [table, words], vector_of(f32, LANES))
        if place < self.per - 1:
            words = b.add(arith.AndIOp(words, vector_constant(b, (1 << self.bits) - 1, i32, LANES))).result
        return b.add(SIToFPOp(words, vector_of(f32, LANES))).result

    def added(self, total: SSAValue, a: SSAValue, c: SSAValue) -> SSAValue:
        """Return `total + a * c`, by a fused multiply-add if the schedule says so."""
        if self.schedule.fused:
            return self.b.add(vector.FMAOp(a, c, total)).results[0]
        return self.b.add(arith.AddfOp(total, self.b.add(arith.MulfOp(a, c)).result)).result


class PanelEmitter(WeightOnlyEmitter):
    """Emits a product whose weights are converted to floats in scratch memory, [input, channel of the tile]."""

    def emit(self) -> None:
        def strips(first: Index, vectors: int, lanes: int) -> None:
            over(self.b, self.rows, STRIP, lambda row, rows: self.strip(row, rows, first, vectors, lanes))

        self.over_channels(strips)

    def strip(self, row: Index, rows: int, first: Index, vectors: int, lanes: int) -> None:
        """Emit the results of `rows` rows from `row` on, for `vectors` vectors of output channels from `first` on. The
        weights are converted to floats panel by panel (a panel has the weights of a few blocks of inputs) and their
        products are added to the sums; in the end, the epilogue is applied."""
        b, pitch, zero = self.b, vectors * LANES, vector_constant(self.b, 0.0, f32, LANES)
        panel, sums = (
            b.add(memref.AllocaOp.get(f32, 64, [count * pitch])).memref for count in (self.schedule.panel, rows)
        )
        with b.loop(0, rows * vectors) as (place, _):
            b.vector_store(zero, sums, [b.times(place, LANES)])

        def multiply(block: Index, count: int) -> None:
            self.widen(panel, block, count, first, vectors)
            column = b.times(block, self.block)
            over(b, rows, self.schedule.tile[0], lambda m, size: self.add(sums, panel, m, size, row, column, count))

        over(b, self.blocks, self.schedule.panel // self.block, multiply)
        with b.loop(0, rows) as (m, _):
            for v in range(vectors):
                value = b.vector_load(sums, [b.plus(b.times(m, pitch), v * LANES)], LANES)
                self.epilogue.apply(value, [b.plus(row, m)], b.times(self.vector(first, v), LANES), lanes)

    def widen(self, panel: SSAValue, block: Index, count: int, first: Index, vectors: int) -> None:
        """Convert the weights of `count` blocks of inputs, from `block` on, to floats, and store them in the scratch
        buffer `panel`. The channels are `vectors` vectors from `first` on."""
        b, words = self.b, self.block // self.per
        with b.loop(0, count) as (number, _):
            current = b.plus(block, number)
            places = self.of_block(first, vectors, current)
            scales = self.loaded(self.scales, places, self.blocks * self.schedule.tile[1])
            shifts = None if self.shifts is None else [b.vector_load(self.shifts, [at], LANES) for at in places]
            with b.loop(0, words) as (word, _):
                loaded = self.loaded_words(first, vectors, b.plus(b.times(current, words), word))
                row = b.times(b.plus(b.times(number, words), word), self.per)
                for place in range(self.per):
                    for v, each in enumerate(loaded):
                        weight = self.number(each, place)
                        if shifts is None:
                            weight = b.add(arith.MulfOp(weight, scales[v])).result
                        else:
                            weight = self.added(shifts[v], weight, scales[v])
                        at = b.plus(b.times(b.plus(row, place), vectors * LANES), v * LANES)
                        b.vector_store(weight, panel, [at])

    def add(
        self, sums: SSAValue, panel: SSAValue, first: Index, rows: int, row: Index, column: Index, blocks: int
    ) -> None:
        """Add the products of the data and the weights in `panel`, of `blocks` blocks of inputs, to the sums of `rows`
        rows from row `first` of a strip on. The strip begins at row `row` of the data, and the inputs of the panel at
        column `column`."""
        b, pitch = self.b, shape_of(panel)[0] // self.schedule.panel
        places = [(r, v) for r in range(rows) for v in range(pitch // LANES)]
        at = [b.plus(b.times(b.plus(first, r), pitch), v * LANES) for r, v in places]
        zero = vector_constant(b, 0.0, f32, LANES)
        with b.loop(0, blocks * self.block, carried=[zero] * len(places)) as (k, steps):
            weights = [
                b.vector_load(panel, [b.plus(b.times(k, pitch), v * LANES)], LANES) for v in range(pitch // LANES)
            ]
            data = [
                b.broadcast(b.load(self.data, [b.plus(b.plus(row, first), r), b.plus(column, k)]), LANES)
                for r in range(rows)
            ]
            steps.next = [
                self.added(total, weights[v], data[r]) for (r, v), total in zip(places, steps.args, strict=True)
            ]
        for place, total in zip(at, steps.results, strict=True):
            b.vector_store(b.add(arith.AddfOp(b.vector_load(sums, [place], LANES), total)).result, sums, [place])


class CodesEmitter(WeightOnlyEmitter):
    """Emits a product of quantized data. `middle`: the zero point of all weights, or 0 if they differ; `unsigned`:
    whether the dot product's weight operand is unsigned. The codes of a row are stored as words of four bytes in the
    order [block, part, word], where part n is the n-th byte of each code. Padding follows them, so that rows of 4096
    elements do not compete for a few sets of the cache."""

    def emit(self) -> None:
        b = self.b
        self.parts, self.each = self.schedule.parts, self.block // GROUP
        sizes = (i32, [self.rows, self.blocks * self.parts * self.each + LANES]), (f32, [self.rows, self.blocks])
        starts = (i32, [self.rows, self.parts, self.blocks])
        self.codes, self.steps, self.starts = (
            b.add(memref.AllocOp.get(type, 64, shape)).memref for type, shape in (*sizes, starts)
        )
        with b.loop(0, self.rows) as (row, _), b.loop(0, self.blocks) as (block, _):
            self.coded(row, block)
        super().emit()

    def coded(self, row: Index, block: Index) -> None:
        """Quantize a block of a row of data to codes of one or more bytes (`parts`), with a scale that maps the largest
        magnitude to 127 * 256^(parts - 1). Store the bytes of the codes (first the lowest byte of all codes, then the
        next), the scale of the block, and for each byte position `-middle * (sum of the bytes)`."""
        b, full = self.b, 127 << 8 * (self.parts - 1)
        places = range(0, self.block, LANES)
        start, word = b.times(block, self.block), b.times(block, self.parts * self.each)
        found = [b.vector_load(self.data, [row, b.plus(start, place)], LANES) for place in places]
        largest = vector_constant(b, SMALLEST, f32, LANES)
        for each in found:
            largest = b.add(arith.MaximumfOp(largest, b.add(math.AbsFOp(each)).result)).result
        largest = self.across(largest, arith.MaximumfOp)
        inverse = b.add(arith.DivfOp(vector_constant(b, full, f32, LANES), largest)).result
        step = b.add(arith.MulfOp(largest, vector_constant(b, 1 / full, f32, LANES))).result
        b.store(b.lane(step, 0), self.steps, [row, block])
        sums: list[SSAValue | None] = [None] * self.parts
        for each, place in zip(found, places, strict=True):
            scaled = b.add(arith.MulfOp(each, inverse)).result
            code = b.add(FPToSIOp(b.add(math.RoundEvenOp(scaled)).result, vector_of(i32, LANES))).result
            for part in range(self.parts):
                low = b.add(TruncIOp(code, vector_of(i8, LANES))).result
                wide = b.add(ExtSIOp(low, vector_of(i32, LANES))).result
                words = b.bitcast(low, i32, LANES // GROUP)
                b.vector_store(words, self.codes, [row, b.plus(word, part * self.each + place // GROUP)])
                sums[part] = wide if (sum := sums[part]) is None else b.add(arith.AddiOp(sum, wide)).result
                rest = b.add(arith.SubiOp(code, wide)).result
                code = b.add(arith.ShRSIOp(rest, vector_constant(b, 8, i32, LANES))).result
        for part, sum in enumerate(sums):
            assert sum is not None
            start = b.add(arith.MuliOp(self.across(sum, arith.AddiOp), vector_constant(b, -self.middle, i32, LANES)))
            b.store(b.lane(start.result, 0), self.starts, [row, part, block])

    def across(self, vector: SSAValue, join: type[arith.MaximumfOp | arith.AddiOp]) -> SSAValue:
        """Combine all lanes of a vector by `join`, with the result in every lane."""
        for apart in (8, 4, 2, 1):
            other = self.b.shuffle(vector, vector, [lane ^ apart for lane in range(LANES)])
            vector = self.b.add(join(vector, other)).result
        return vector

    def block_sums(self, block: Index, row: Index, rows: int, first: Index, vectors: int) -> Sequence[SSAValue]:
        """Emit and return the sums of a block's data codes times weight codes, [row, vector, part]. Data codes have one
        or more bytes; each byte is a part with sums of its own. They start at `-middle * (sum of the data codes)`,
        which subtracts the zero point `middle` that all weights share."""
        b, words = self.b, self.block // self.per
        places = [(r, part) for r in range(rows) for _ in range(vectors) for part in range(self.parts)]
        found = [b.broadcast(b.load(self.starts, [b.plus(row, r), part, block]), LANES) for r, part in places]

        def added(word: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
            loaded = self.loaded_words(first, vectors, b.plus(b.times(block, words), word))
            at = b.plus(b.times(block, self.parts * self.each), b.times(word, self.per // GROUP))
            return self.products(sums, loaded, row, rows, at)

        return self.all_words(words, found, added, unrolled=rows * self.parts == 1)

    def all_words(self, words: int, sums: Sequence[SSAValue], added: Added, *, unrolled: bool) -> Sequence[SSAValue]:
        """Emit `added(word, sums)`, which adds the products with a word of each channel's codes to the sums, for all
        words of a block; return the last sums. `unrolled`: whether there are so few sums that no loop is needed."""
        for word in range(words):
            sums = added(word, sums)
        return sums

    def products(
        self, sums: Sequence[SSAValue], words: Sequence[SSAValue], row: Index, rows: int, at: Index
    ) -> list[SSAValue]:
        b, found = self.b, list(sums)
        for place in range(self.per // GROUP):
            weights = [b.bitcast(self.bytes(word, place), i8, LANES * GROUP) for word in words]
            for r in range(rows):
                for part in range(self.parts):
                    code = b.load(self.codes, [b.plus(row, r), b.plus(at, part * self.each + place)])
                    data = b.bitcast(b.broadcast(code, LANES), i8, LANES * GROUP)
                    for v, weight in enumerate(weights):
                        n = (r * len(words) + v) * self.parts + part
                        found[n] = self.multiplied(found[n], weight, data)
        return found

    def multiplied(self, sum: SSAValue, weights: SSAValue, data: SSAValue) -> SSAValue:
        """Add, in each 32-bit lane of `sum`, the products of the lane's four bytes in `weights` and `data`; return the
        new sum."""
        return self.b.dot(sum, weights, data, self.unsigned)

    def bytes(self, words: SSAValue, place: int) -> SSAValue:
        """Return words in which each byte is one code. Each byte of `words` holds 8 / `bits` codes; code number `place`
        of these becomes the byte at the same position of the result."""
        b = self.b
        if place:
            words = b.add(arith.ShRUIOp(words, vector_constant(b, place * self.bits, i32, LANES))).result
        if self.bits == 8:
            return words
        mask = ((1 << self.bits) - 1) * 0x01010101
        return b.add(arith.AndIOp(words, vector_constant(b, mask, i32, LANES))).result

    def row_scales(self, scales: Sequence[SSAValue], at: Sequence[Index]) -> Callable[[int], SSAValue]:
        step = self.b.broadcast(self.b.load(self.steps, at), LANES)
        return lambda v: self.b.add(arith.MulfOp(scales[v], step)).result

    def real(self, sums: Sequence[SSAValue], n: int) -> SSAValue:
        """Return vector `n` of a block's sums as floats. `sums` is [vector, part], where a part is one byte of the data
        codes: the result is `part 0 + 256 * part 1 + 65536 * part 2`, as far as there are parts. The first two are
        combined as 32-bit integers, which cannot overflow."""
        b, parts = self.b, sums[n * self.parts : (n + 1) * self.parts]
        low = parts[0]
        if len(parts) == 1:
            return b.add(SIToFPOp(low, vector_of(f32, LANES))).result
        high = b.add(arith.ShLIOp(parts[1], vector_constant(b, 8, i32, LANES))).result
        low = b.add(SIToFPOp(b.add(arith.AddiOp(low, high)).result, vector_of(f32, LANES))).result
        top = b.add(SIToFPOp(parts[2], vector_of(f32, LANES))).result
        return self.added(low, top, vector_constant(b, 65536.0, f32, LANES))


class NibblesEmitter(CodesEmitter):
    """Emits a product of quantized data by weights of at most 4 bits, by instructions that add the products of two
    neighbouring bytes. Sums of `NARROW` such pairs are accumulated in 16 bits (`NARROW * 2 * 15 * 128` fits), and then
    added to 32-bit sums of the products of a block, whose weights share a scale."""

    def all_words(self, words: int, sums: Sequence[SSAValue], added: Added, *, unrolled: bool) -> Sequence[SSAValue]:
        b, turns = self.b, NARROW * GROUP // self.per
        zero, ones = (vector_constant(b, number, i16, 2 * LANES) for number in (0, 1))
        for start in range(0, words, turns):
            end, narrow = min(start + turns, words), [zero] * len(sums)
            if unrolled:
                for word in range(start, end):
                    narrow = added(word, narrow)
            else:
                with b.loop(start, end, carried=narrow) as (word, steps):
                    steps.next = added(word, steps.args)
                narrow = steps.results
            sums = [b.dot(total, sum, ones, False) for total, sum in zip(sums, narrow, strict=True)]
        return sums

    def multiplied(self, sum: SSAValue, weights: SSAValue, data: SSAValue) -> SSAValue:
        return self.b.nibble_product(sum, weights, data)
