"""The micro-kernel of convolutions and products: tiles of pixels x 16-channel vectors, accumulators in registers.

Each step of the reduction loads a few vectors of packed weights and, for each pixel, broadcasts the step's elements: 4
codes for a dot product (2 of 16 bits), or one element for multiply-add. Where the target multiplies two rows of codes
by two columns at once, two neighbouring pixels are these rows: their accumulators are `[channel / 2][pixel][2]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DictionaryAttr, i8, i16, i32
from xdsl.ir import SSAValue

from relay.dialects.arith import ExtSIOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, binary, minus, quotient, remainder, when
from relay.lowering.scheduling import prefetch, sharing, zero_points
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.loops import in_one_loop
from relay.lowering.scheduling.packed_store import GROUP, PackedStore
from relay.lowering.scheduling.packing import Block, Group, OpenGroup, all_groups, run_length
from relay.lowering.scheduling.padding import Span
from relay.lowering.scheduling.plan import MATRIX, TileSchedule, extension_of, kernel_offset, takes_unsigned
from relay.lowering.shaped import Extent, at_most, buffer_of, vector_of
from relay.target import LANES

FLIP = -0x7F7F7F80
"""XOR mask for a word of 4 codes: makes signed codes unsigned, 128 larger, or unsigned codes signed, 128 smaller."""

Tile = Callable[[Sequence[Index], Index, int], None]
"""Emits a tile: takes the indices of a row of the result, the tile's first pixel in it, and its number of pixels."""


@dataclass(frozen=True)
class Place:
    """Where one of several products starts. `outer`: the outer indices of its result; `row`: the first row of its data;
    `weights` and `initial`: the start of its weights and initial accumulators; `data` and `channel`: its first channel
    in the data and in the result; `block`: its first block of channels."""

    outer: tuple[Index, ...] = ()
    row: Index = 0
    weights: Index = 0
    initial: Index = 0
    data: Index = 0
    channel: Index = 0
    block: Index = 0


class MatmulEmitter:
    """Emits one contraction with its epilogue. `data` is flat; `runs`: spans of result rows with the kernel rows that
    are inside the image there (`padding.spans`), each with its own initial accumulators; empty for a single span of all
    rows."""

    def __init__(
        self,
        builder: LoopBuilder,
        conv: Convolution,
        schedule: TileSchedule,
        data: SSAValue,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        place: Place = Place(),
        runs: Sequence[Span] = (),
        count: SSAValue | None = None,
    ):
        """`count`: the number of pixels (rows of the data) if it is known only at run time; all pixels then form one
        row."""
        self.b, self.conv, self.schedule, self.epilogue = builder, conv, schedule, epilogue
        self.place, self.count = place, count
        self.group = schedule.codes_per_step
        self.matrix = self.group == MATRIX
        self.runs = runs or [(0, conv.out_rows, 0, conv.kernel_rows)]
        self.taps = range(conv.kernel_rows)
        self.starting = place.initial
        self.packed: PackedStore | None = None
        self.data = data
        self.weights, self.initial = constants[:2]
        self.more = constants[2:]
        run = at_most(run_length(conv))
        self.run = -(-run // self.group)
        self.tap_columns = conv.kernel_columns * at_most(conv.channels) // run
        self.depth = conv.kernel_rows * self.tap_columns * self.run
        self.room = max(pixels * vectors for vectors, pixels in enumerate(schedule.pixels)) * LANES

    def emit(self) -> None:
        if self.schedule.packed_store:
            self.packed = PackedStore(self.b, self.epilogue)
        groups = all_groups(self.b, self.conv.outputs, self.schedule.vectors)
        if self.schedule.channels_inside:

            def all_blocks(point: Sequence[Index], x: Index, pixels: int) -> None:
                for group in groups:
                    self.over_blocks(group, lambda block: self.tile(point, x, pixels, block))

            self.over_pixels(self.schedule.pixels[self.schedule.vectors], self.conv.outputs, all_blocks)
            return
        for group in groups:
            pixels = self.schedule.pixels[group.vectors]

            channels = (group.count if isinstance(group.count, int) else 1) * group.vectors * LANES

            def all_pixels(block: Block, pixels: int = pixels, channels: int = channels) -> None:
                self.over_pixels(pixels, channels, lambda point, x, count: self.tile(point, x, count, block))

            self.over_blocks(group, all_pixels)

    def over_blocks(self, group: Group | OpenGroup, body: Callable[[Block], None]) -> None:
        """Loop over blocks of channels."""
        inside, width = self.schedule.channels_inside, self.schedule.vectors * LANES
        apart = None if inside else sharing.of_blocks(self.conv, width, self.epilogue.itemsize)
        group.loop(self.b, apart, body)

    @property
    def only_row(self) -> bool:
        """Whether the pixels form a single row, whose tiles threads share."""
        return self.schedule.flat or self.conv.images * self.conv.out_rows == 1

    def over_pixels(self, pixels: int, channels: int, body: Tile) -> None:
        """Emit loops over tiles of `pixels` pixels, a smaller tile for the rest of a row, and the loops around them,
        for `channels` channels."""
        conv, b, apart = self.conv, self.b, sharing.of_pixels(self.conv, channels)
        if self.schedule.flat:
            width = conv.images * conv.out_rows * conv.out_columns if self.count is None else self.count
            self.over_row([], width, pixels, body, apart)
            return
        with b.loop(0, conv.images, independent=True, apart=apart) as (n, _):
            for number, (first, end, *taps) in enumerate(self.runs):
                self.taps = range(*taps)
                self.starting = b.plus(self.place.initial, number * -(-conv.outputs // LANES) * LANES)
                with b.loop(first, end, independent=True, apart=apart) as (y, _):
                    self.over_row([n, y], conv.out_columns, pixels, body, apart)

    def over_row(self, point: Sequence[Index], width: Index, pixels: int, body: Tile, apart: DictionaryAttr) -> None:
        """Emit one loop over the tiles of a row. A smaller last tile is the last iteration of this loop, not code after
        it, so that threads share it, too, if the row is the only one. `apart`: the data that cores transfer if threads
        share the loop (`sharing.of_pixels`)."""
        if isinstance(width, Extent) or not isinstance(width, int):
            self.over_open_row(point, width, pixels, body, apart)
            return
        in_one_loop(self.b, width, min(pixels, width), partial(body, point), independent=self.only_row, apart=apart)

    def over_open_row(
        self, point: Sequence[Index], width: Index, pixels: int, body: Tile, apart: DictionaryAttr
    ) -> None:
        """Emit a loop over the tiles of an output row whose width is known only at run time. `point` has the indices of
        the row; `body(point, x, n)` emits a tile of `n` pixels from pixel x on. `n` is `pixels` except at the end,
        where the pixels left over are divided into tiles of powers of two. `apart`: the traffic of sharing the tiles
        among threads (`LoopBuilder.loop`)."""
        b, most = self.b, None
        if isinstance(width, Extent):
            most, width = at_most(width), b.length(width)
        whole = quotient(b, width, pixels)
        tiles = quotient(b, b.plus(width, pixels - 1), pixels)
        with b.loop(0, tiles, independent=self.only_row, apart=apart, turns=most and -(-most // pixels)) as (number, _):
            x = b.times(number, pixels)

            def left() -> None:
                rest, size = minus(b, width, x), 1 << max((pixels - 1).bit_length() - 1, 0)
                while size:
                    before = remainder(b, rest, 2 * size)
                    at = b.plus(x, minus(b, rest, before))
                    when(b, below(b, size - 1, before), partial(body, point, at, size))
                    size //= 2

            if pixels == 1:
                body(point, x, 1)
            else:
                when(b, below(b, number, whole), lambda: body(point, x, pixels), left)

    def tile(self, point: Sequence[Index], x: Index, pixels: int, block: Block) -> None:
        """Emit a tile: the sums and results of `pixels` neighbouring pixels from column `x` on, for a block of
        channels. `point`: the indices of the image and of the result's row; empty if there is only one row."""
        b, conv, schedule, vectors = self.b, self.conv, self.schedule, block.vectors
        initial = b.plus(self.starting, block.channel)
        carried = self.start(initial, pixels, vectors)
        at_block = b.plus(self.place.weights, b.times(block.channel, self.depth * self.group))
        row = b.plus(b.times(point[0], conv.rows), b.times(point[1], conv.strides[0])) if point else 0
        first = b.plus(self.place.row, b.plus(b.times(row, conv.columns), b.times(x, conv.strides[1])))
        with b.loop(self.taps.start, self.taps.stop, carried=carried) as (i, turn):
            line = b.plus(first, b.times(i, conv.dilation[0] * conv.columns))
            with b.loop(0, self.tap_columns, carried=turn.args) as (j, taps):
                base = b.plus(self.place.data, b.times(b.plus(line, b.times(j, conv.dilation[1])), conv.pitch))
                tap = b.times(b.plus(b.times(i, self.tap_columns), j), self.run)
                taps.next = taps.args
                for count, turns, done in self.turns():
                    with b.loop(0, turns, carried=taps.next) as (k, steps):
                        ahead = b.plus(b.times(k, count), done)
                        step, size = b.plus(tap, ahead), vectors * LANES * self.group
                        weights = b.plus(at_block, b.times(step, size))
                        data = b.plus(base, self.codes_before(ahead))
                        for number, values in enumerate(self.values(data, pixels, count)):
                            now, here = b.plus(step, number), b.plus(weights, number * size)
                            if schedule.prefetch_next_block:
                                self.prefetch_weights(point, x, pixels, block, now)
                            steps.next = self.step(steps.next, values, self.weights, here, vectors, now)
                    taps.next = steps.results
            turn.next = taps.results
        accumulators = self.by_pixel(turn.results, pixels, vectors) if self.matrix else turn.results
        if schedule.outlier_steps:
            pixel = b.plus(self.place.data, b.times(first, conv.pitch))
            accumulators = self.extra_steps(accumulators, pixel, block, pixels)
        at = replace(block, channel=b.plus(self.place.channel, block.channel))
        self.finish(accumulators, [*self.place.outer, *point, x], pixels, at)

    def start(self, initial: Index, pixels: int, vectors: int) -> list[SSAValue]:
        """Return the initial accumulators of a tile."""
        b = self.b
        start = [b.vector_load(self.initial, [b.plus(initial, v * LANES)], LANES) for v in range(vectors)]
        if self.matrix:
            start = [b.shuffle(value, value, [2 * (n // 4) + n % 2 for n in range(2 * LANES)]) for value in start]
        rows = -(-pixels // 2) if self.matrix else pixels
        carried = [value for _ in range(rows) for value in start]
        if self.schedule.sums_of_data:
            carried += [vector_constant(b, 0, i32, 4 if self.matrix else LANES)] * rows
        return carried

    def codes_before(self, step: Index) -> Index:
        """Return the number of codes of a contiguous run that precede the codes of step `step`."""
        return self.b.times(step, self.group)

    def prefetch_weights(self, point: Sequence[Index], x: Index, pixels: int, block: Block, step: Index) -> None:
        """Prefetch one step's share of the next block's weights."""
        b, conv = self.b, self.conv
        size = block.vectors * LANES * self.group * self.depth
        points = prefetch.points_of(conv)
        share, stride = prefetch.share_of(size, points, pixels, self.depth), self.schedule.prefetch_stride
        start = b.plus(b.plus(self.place.weights, b.times(block.channel, self.depth * self.group)), size)
        if points == 1:
            prefetch.prefetch_in_parts(b, self.weights, start, size, step, share, stride)
            return
        row = b.plus(b.times(point[0], conv.out_rows), point[1]) if point else 0
        before = b.times(b.plus(b.times(row, conv.out_columns), x), share.pixel)
        if prefetch.is_open(conv) and not isinstance(before, int):
            before = binary(b, arith.MinUIOp, before, size)
        at = b.plus(b.plus(start, before), b.times(step, share.step))
        prefetch.prefetch_share(b, self.weights, at, share, stride)

    def extra_steps(
        self, accumulators: Sequence[SSAValue], data: Index, block: Block, pixels: int
    ) -> Sequence[SSAValue]:
        """Add the products of the weights' outliers, the parts of weights that exceed 8 bits, to the accumulators."""
        b, most = self.b, self.schedule.outlier_steps
        weights, counts, offsets = self.more
        number = b.plus(self.place.block, block.number)
        count = b.load_index(counts, number)
        at_block = b.times(number, most * self.schedule.vectors * LANES * 4)
        with b.loop(0, count, carried=accumulators) as (k, steps):
            at = b.plus(data, b.load_index(offsets, b.plus(b.times(number, most), k)))
            here = b.plus(at_block, b.times(k, block.vectors * LANES * 4))
            pitch = self.conv.strides[1] * self.conv.pitch
            values = [partial(self.broadcast, at, m * pitch) for m in range(pixels)]
            steps.next = self.step(steps.args, values, weights, here, block.vectors)
        return steps.results

    def finish(self, accumulators: Sequence[SSAValue], point: Sequence[Index], pixels: int, block: Block) -> None:
        """Emit the epilogue of a tile: unrolled if it is short, else as a loop over accumulators that are stored on the
        stack."""
        b, vectors = self.b, block.vectors
        values = list(accumulators[: pixels * vectors])
        if self.schedule.sums_of_data:
            totals = accumulators[pixels * vectors :]
            values = [self.correct(value, totals[n // vectors]) for n, value in enumerate(values)]
        *outer, x = point
        if self.packed is not None and isinstance(block.last, int) and block.last % GROUP == 0:
            self.packed.tile(values, point, block.channel, vectors, block.last)
            return
        if self.schedule.unrolled_epilogue:
            for m in range(pixels):
                for v in range(vectors):
                    lanes = block.last if v == vectors - 1 else LANES
                    channel = b.plus(block.channel, v * LANES)
                    self.epilogue.apply(values[m * vectors + v], [*outer, b.plus(x, m)], channel, lanes)
            return
        scratch = b.add(memref.AllocaOp.get(self.conv.accumulator, 64, [self.room])).memref
        for n, value in enumerate(values):
            b.vector_store(value, scratch, [n * LANES])
        self.columns(scratch, 0, point, pixels, block)

    def columns(self, scratch: SSAValue, first: int, point: Sequence[Index], pixels: int, block: Block) -> None:
        """Emit the epilogue of a tile whose accumulators are in memory from element `first` on."""
        b, vectors = self.b, block.vectors
        whole = vectors if block.last == LANES else vectors - 1
        if whole:  # one loop over both pixels and vectors: a longer loop gives the processor more iterations to overlap
            with b.loop(0, pixels * whole) as (turn, _):
                m, v = quotient(b, turn, whole), remainder(b, turn, whole)
                self.vector(scratch, first, m, b.times(v, LANES), point, block, LANES)
        if whole < vectors:
            with b.loop(0, pixels) as (m, _):
                self.vector(scratch, first, m, whole * LANES, point, block, block.last)

    def vector(
        self, scratch: SSAValue, first: int, m: Index, ahead: Index, point: Sequence[Index], block: Block, lanes: Index
    ) -> None:
        """Emit the epilogue of one vector of channels of a pixel of a tile."""
        b, (*outer, x) = self.b, point
        at = b.plus(b.plus(b.times(m, block.vectors * LANES), ahead), first)
        accumulators = b.vector_load(scratch, [at], LANES)
        self.epilogue.apply(accumulators, [*outer, b.plus(x, m)], b.plus(block.channel, ahead), lanes)

    def correct(self, value: SSAValue, total: SSAValue) -> SSAValue:
        """Subtract the kernel's zero point times the sum of the data."""
        left = zero_points.plus(self.b, self.conv.kernel, -kernel_offset(self.conv))
        factor = zero_points.spread(self.b, zero_points.times(self.b, left, -1), LANES)
        product = self.b.add(arith.MuliOp(total, factor)).result
        return self.b.add(arith.AddiOp(value, product)).result

    def turns(self) -> Sequence[tuple[int, Index, int]]:
        """Return the loops over a contiguous run of data, which is read in steps of `group` codes. For each loop:
        the number of steps that one iteration processes, the number of iterations, and the index of the first step."""
        count = self.schedule.steps_at_once
        if isinstance(run := run_length(self.conv), Extent):
            return [(1, quotient(self.b, self.b.plus(self.b.length(run), self.group - 1), self.group), 0)]
        whole, rest = divmod(self.run, count)
        found = [(count, whole, 0)] if whole else []
        if (count, whole) == (1, 2) and self.group < MATRIX:  # LLVM would load both iterations' pixels first, and spill
            found = [(count, 1, 0), (count, 1, count)]
        return [*found, (rest, 1, whole * count)] if rest else found

    def values(self, data: Index, pixels: int, count: int) -> list[list[Callable[[], SSAValue]]]:
        """Return, for each of `count` steps of the reduction, a list of functions that emit the data operand of the
        step's product: one for each of the `pixels` pixels, or for each pair if matrix instructions are used. `data`:
        the index of the first pixel's data in the buffer."""
        b, pitch, size = self.b, self.conv.strides[1] * self.conv.pitch, count * self.group
        if self.schedule.steps_at_once == 1 and not self.matrix:
            return [[partial(self.broadcast, data, m * pitch) for m in range(pixels)]]
        if self.group == 1 and count < self.schedule.steps_at_once:
            return [[partial(self.broadcast, b.plus(data, k), m * pitch) for m in range(pixels)] for k in range(count)]
        codes = [b.vector_load(self.data, [b.plus(data, m * pitch)], size) for m in range(pixels)]
        if self.group == 1:
            wide = [b.add(extension_of(self.conv)(each, vector_of(i16, size))).result for each in codes]
            return [[partial(self.widened, each, k) for each in wide] for k in range(count)]
        if self.matrix:
            pairs = [(codes[m], codes[min(m + 1, pixels - 1)]) for m in range(0, pixels, 2)]
            eight = [[*range(k, k + MATRIX), *range(size + k, size + k + MATRIX)] for k in range(0, size, MATRIX)]
            return [[partial(b.shuffle, *pair, lanes) for pair in pairs] for lanes in eight]
        if self.schedule.sign_flip == "loop":
            codes = [b.add(arith.XOrIOp(each, vector_constant(b, -128, i8, size))).result for each in codes]
        words = [b.bitcast(each, i32, count) for each in codes]
        return [[partial(self.spread, b.lane(each, number)) for each in words] for number in range(count)]

    def by_pixel(self, carried: Sequence[SSAValue], pixels: int, vectors: int) -> list[SSAValue]:
        """Split vectors that interleave the accumulators of two pixels, as matrix instructions compute them, into one
        vector of accumulators per pixel; the sums of each pixel's data, if the schedule has them, are split and
        broadcast likewise. Returns the accumulators, then the sums."""
        b, found, count = self.b, list[SSAValue](), -(-pixels // 2) * vectors
        for m in range(pixels):
            lanes = [4 * (n // 2) + 2 * (m % 2) + n % 2 for n in range(LANES)]
            found += [b.shuffle(value, value, lanes) for value in carried[m // 2 * vectors :][:vectors]]
        for m in range(pixels if self.schedule.sums_of_data else 0):
            total = carried[count + m // 2]
            found.append(b.shuffle(total, total, [2 * (m % 2)] * LANES))
        return found

    def step(
        self,
        carried: Sequence[SSAValue],
        values: Sequence[Callable[[], SSAValue]],
        weights: SSAValue,
        at: Index,
        vectors: int,
        summed: Index | None = None,
    ) -> list[SSAValue]:
        """Emit one step of the reduction for a whole tile, and return the values that it adds to: the accumulators
        (`vectors` for each pixel), then the sums of each pixel's data, if the schedule has them. `carried`: these
        before the step; `values`: functions that emit the data operand of each pixel; `at`: the index of the step's
        weights. `summed`: the number of the step, whose data is added to the sums; None leaves these unchanged."""
        b, group = self.b, 4 if summed is None else self.group
        columns = [self.weight(weights, b.plus(at, v * LANES * group), group) for v in range(vectors)]
        ones = None
        if self.schedule.sums_of_data and summed is not None:
            codes = b.vector_load(self.more[0], [b.times(summed, group)], group)
            twice = [*range(group)] * 2
            ones = b.shuffle(codes, codes, twice) if self.matrix else self.spread(b.bitcast(codes, i32, 1))
        result: list[SSAValue] = []
        totals: list[SSAValue] = []
        for m, emit in enumerate(values):
            value = emit()
            result += [self.multiply_add(carried[m * vectors + v], value, columns[v]) for v in range(vectors)]
            if ones is not None:
                totals.append(self.multiply_add(carried[len(values) * vectors + m], value, ones))
        return result + (totals or list(carried[len(values) * vectors :]))

    def weight(self, weights: SSAValue, at: Index, group: int) -> SSAValue:
        b = self.b
        vec = b.vector_load(weights, [at], LANES * group)
        if self.schedule.narrow_weights:
            return b.add(ExtSIOp(vec, vector_of(i16, LANES * group))).result
        if self.group > 1 or self.conv.is_float:
            return vec
        return b.add(ExtSIOp(vec, vector_of(i32, LANES))).result

    def widened(self, codes: SSAValue, number: int) -> SSAValue:
        """Return code number `number` broadcast to 16 lanes and extended to 32 bits."""
        return self.b.add(ExtSIOp(self.b.shuffle(codes, codes, [number] * LANES), vector_of(i32, LANES))).result

    def spread(self, word: SSAValue) -> SSAValue:
        """Return a word of four codes, or two of 16 bits, broadcast to 16 lanes."""
        element = i16 if self.group == 2 else i8
        return self.b.bitcast(self.b.broadcast(word, LANES), element, self.group * LANES)

    def broadcast(self, data: Index, ahead: int) -> SSAValue:
        """Return the data by which one step of the reduction multiplies all channels of a pixel, broadcast to all
        lanes: one element, or the 2 or 4 codes of a dot product with the signedness that it requires. They are loaded
        from index `data + ahead`."""
        b, conv, at = self.b, self.conv, self.b.plus(data, ahead)
        if conv.is_float and self.group == 1:
            return b.broadcast(b.load(self.data, [at]), LANES)
        extend = extension_of(conv)
        if self.group == 2:
            pair = b.vector_load(self.data, [at], 2)
            if buffer_of(self.data).element_type == i8:
                pair = b.add(extend(pair, vector_of(i16, 2))).result
            return b.bitcast(b.broadcast(b.bitcast(pair, i32, 1), LANES), i16, 2 * LANES)
        if self.group == 1:
            scalar = b.load(self.data, [at])
            return b.broadcast(b.add(extend(scalar, i32)).result, LANES)
        words = b.broadcast(b.bitcast(b.vector_load(self.data, [at], 4), i32, 1), LANES)
        if self.schedule.sign_flip == "loop":
            words = b.add(arith.XOrIOp(words, vector_constant(b, FLIP, i32, LANES))).result
        return b.bitcast(words, i8, 4 * LANES)

    def multiply_add(self, accumulator: SSAValue, data: SSAValue, weights: SSAValue) -> SSAValue:
        b = self.b
        if self.matrix and accumulator.type != vector_of(i32, LANES):
            return b.matrix_product(accumulator, data, weights, takes_unsigned(self.conv, self.schedule))
        if self.group > 1:
            return b.dot(accumulator, data, weights, takes_unsigned(self.conv, self.schedule))
        if self.conv.is_float:
            return b.add(vector.FMAOp(data, weights, accumulator)).results[0]
        return b.add(arith.AddiOp(accumulator, b.add(arith.MuliOp(data, weights)).result)).result
