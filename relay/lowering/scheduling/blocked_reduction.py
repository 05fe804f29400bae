"""Float convolutions and products whose reduction is cut into blocks of steps; each block is computed for many pixels
before the next one.

A step adds the products of one input channel at one tap (a position of the window). A strip is the pixels whose sums
are in scratch memory together. A block has so few steps that its weights stay in the first-level cache while the
register tiles of all pixels of a strip read them. So a strip loads each weight from memory once, whereas separate tiles
would each load all weights of their channels: for 512 channels these fill half of a second-level cache of 512 KiB, and
are evicted by other accesses. Each block prefetches the weights of the next one. Products are added in the same order
as without blocks. Strips and tiles are formed over the pixels of all rows and images in sequence, because single rows
of narrow images are no multiple of a tile. If each tap has blocks of its own, pixels whose tap lies in the border are
skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, both, quotient, unravelled
from relay.lowering.scheduling import prefetch, sharing
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.contractions import OfWeights, weighted_of
from relay.lowering.scheduling.epilogue import Epilogue, pick_masks
from relay.lowering.scheduling.loops import in_one_loop, parts
from relay.lowering.scheduling.packed import pack_floats
from relay.lowering.scheduling.packing import Block, groups_of, run_length
from relay.lowering.scheduling.padding import Padding, is_border
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.plan import LARGEST, STRIDES, problem_of
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel, moved
from relay.lowering.scheduling.tiles import Problem, choose, tile_cycles
from relay.lowering.shaped import shape_of
from relay.target import LANES, CpuCosts


@dataclass(frozen=True, kw_only=True)
class BlockedReductionSchedule(OpSchedule):
    """The decisions about a reduction in blocks. `tile`: pixels and channels of a register tile; `skip_border`: a tap's
    blocks skip the pixels for which that tap is in the border, and the image is not padded; `steps`: the most reduction
    steps of a block; `strip`: the pixels whose sums are in scratch memory together; `prefetch_stride`: bytes between
    prefetches of the next block's weights, 0 for no prefetches; `masks`: see `pick_masks`."""

    strategy = "blocked_reduction"
    keeps_order = frozenset({"tile", "steps", "strip", "prefetch_stride"})
    tile: tuple[int, int]
    skip_border: bool
    steps: int
    strip: int
    prefetch_stride: int
    masks: bool

    @property
    def vectors(self) -> int:
        """The number of vectors of 16 channels in a tile."""
        return self.tile[1] // LANES


@dataclass(frozen=True)
class Taps:
    """The taps of a convolution: `rows` x `columns` taps of `run` reduction steps each. The steps of a tap are divided
    into blocks, and no block has steps of two taps. `image`: rows and columns of the image; `before`: border rows above
    and border columns left of it; `pixels`: for each tap, the number of result pixels for which it is inside the
    image."""

    rows: int
    columns: int
    run: int
    image: tuple[int, int]
    before: tuple[int, int]
    pixels: Sequence[int]


def taps_of(conv: Convolution, padding: Padding | None) -> Taps:
    """Return the taps of a convolution. With `padding`, they are taps on the image without its border, because no
    padded copy is written; without `padding`, they are on the image as stored, where taps that are contiguous in memory
    count as one."""
    run = run_length(conv) if padding is None else conv.channels
    taps = conv.kernel_rows, conv.kernel_columns * conv.channels // run
    image, before = (conv.rows, conv.columns), (0, 0)
    inside = [[count] * each for count, each in zip((conv.out_rows, conv.out_columns), taps, strict=True)]
    if padding is not None:
        (_, *image, _), (_, *before, _) = shape_of(padding.source), padding.low
        axes = zip(image, before, (conv.out_rows, conv.out_columns), taps, conv.strides, conv.dilation, strict=True)
        inside = [results_inside(*axis) for axis in axes]
    pixels = [conv.images * rows * columns for rows in inside[0] for columns in inside[1]]
    return Taps(*taps, run, (image[0], image[1]), (before[0], before[1]), pixels)


def results_inside(size: int, before: int, outputs: int, taps: int, stride: int, dilation: int) -> list[int]:
    """Return, for each tap along an axis, the number of results for which the tap lies inside an image of size
    `size`."""
    starts = [position * stride - before for position in range(outputs)]
    return [sum(0 <= start + tap * dilation < size for start in starts) for tap in range(taps)]


@dataclass(frozen=True)
class BlockedReduction(OfWeights[BlockedReductionSchedule]):
    """A float convolution or product of several tiles of pixels, whose weights exceed the first-level cache. It applies
    only on targets with registers of 8 floats: their tiles have only 16 channels, and so read the weights more often
    than the wider tiles of other targets."""

    record = BlockedReductionSchedule

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found, target = weighted_of(op, kernel), kernel.target
        if found is None or found.groups or found.conv.depthwise or found.conv.data.element != f32:
            return None
        if not found.by_points and len(shape_of(found.conv.out)) > 2:
            return None
        problem, narrow = problem_of(found.conv, target, 1, flat=True), target.register_bytes == 2 * LANES
        large = problem.bytes * problem.steps > target.costs.tile_weight_bytes
        pays = target.has_caches and narrow and large and problem.width > problem.most_pixels(1)
        return cls(found.op, found) if pays else None

    def decide(self, kernel: Kernel, pick: Picks) -> BlockedReductionSchedule:
        conv, target, costs = self.found.conv, kernel.target, kernel.target.costs
        problem, padding = problem_of(conv, target, 1, flat=True), kernel.waiting.get(conv.data.value)
        tiles, widest = choose(problem, costs), min(LARGEST, problem.width)
        possible = range(LANES, min(LARGEST, -(-conv.outputs // LANES)) * LANES + 1, LANES)
        best = (tiles.pixels[-1], tiles.vectors * LANES)
        pixels, channels = pick("tile", Tuples(range(1, widest + 1), possible), best)
        tile = pixels, channels
        size = problem.bytes * channels // LANES
        most = max(costs.inner_weight_bytes // size, 1)
        ways = {False: taps_of(conv, None)}
        if padding is not None and is_border(padding, conv):
            ways = {True: taps_of(conv, padding), **ways}
        every = {skip: cycles(problem, costs, tile, taps, part_size(taps.run, most)) for skip, taps in ways.items()}
        if padding is not None:
            every[False] += moved(kernel, padding.source, padding.buffer)
        skip = pick("skip_border", tuple(ways), min(ways, key=lambda each: every[each]))
        taps = ways[skip]
        steps = pick("steps", range(1, taps.run + 1), part_size(taps.run, most))
        room = min(max(costs.scratch_bytes // size, 1), problem.width)
        strip = -(-part_size(problem.width, room) // pixels) * pixels
        pick("strip", range(1, room + 1), min(strip, room))
        strides = tuple(dict.fromkeys((costs.cache_line, *STRIDES, 0)))
        pick("prefetch_stride", strides, strides[0])
        pick_masks(pick, target, conv.outputs)
        total = round(cycles(problem, costs, tile, taps, steps))
        return pick.schedule(BlockedReductionSchedule, total, f"{total:,} cycles, the least of all")

    def emit(self, emission: Emission, schedule: BlockedReductionSchedule) -> None:
        found, conv = self.found, self.found.conv
        epilogue = found.start(emission, schedule.masks)
        epilogue.flatten_points()
        padding = emission.prepare_padding(conv.data.value, pads=schedule.skip_border)
        data = emission.builder.flatten(conv.data.value if padding is None else padding.source)
        packed = found.biased([pack_floats(conv, schedule.vectors, kernel) for kernel in found.kernels])
        weights, initial, *_ = found.give(emission, packed)
        taps = taps_of(conv, padding)
        BlockedReductionEmitter(emission.builder, conv, schedule, taps, data, weights, initial, epilogue).emit()


def part_size(count: int, most: int) -> int:
    """Return the size of the parts if `count` is divided nearly evenly into parts of at most `most`."""
    return -(-count // -(-count // most))


def cycles(problem: Problem, costs: CpuCosts, tile: tuple[int, int], taps: Taps, steps: int) -> float:
    """Return the cycles of the contraction with blocks of `steps` reduction steps."""
    (pixels, channels), blocks = tile, -(-taps.run // steps)
    vectors, part = channels // LANES, replace(problem, steps=taps.run / blocks)
    count = sum(-(-each // pixels) for each in taps.pixels) * blocks
    sums = pixels * vectors * (1 + 1 / costs.loads_per_cycle)
    return count * problem.outputs / channels * (tile_cycles(part, costs, vectors, pixels) + sums)


@dataclass(frozen=True)
class Tables:
    """Tables for the `count` pixels of a strip. `places`: where the window of each pixel starts in the data; `lists`:
    for each tap, the pixels for which the tap is inside the image; list n starts at element n * `room`; `counts`: the
    length of each list. Each list is padded to whole tiles by repeating its last pixel, whose sums are then computed
    several times with equal results."""

    count: int
    room: int
    places: SSAValue
    lists: SSAValue
    counts: SSAValue


class BlockedReductionEmitter:
    """Emits one contraction with its epilogue; the points of the result form one row."""

    def __init__(
        self,
        builder: LoopBuilder,
        conv: Convolution,
        schedule: BlockedReductionSchedule,
        taps: Taps,
        data: SSAValue,
        weights: SSAValue,
        initial: SSAValue,
        epilogue: Epilogue,
    ):
        self.b, self.conv, self.schedule, self.taps, self.epilogue = builder, conv, schedule, taps, epilogue
        self.data, self.weights, self.initial = data, weights, initial
        self.depth = taps.rows * taps.columns * taps.run
        self.lists = taps.rows * taps.columns if schedule.skip_border else 1

    def emit(self) -> None:
        conv = self.conv
        points, apart = conv.images * conv.out_rows * conv.out_columns, sharing.of_pixels(conv, conv.outputs)
        in_one_loop(self.b, points, self.schedule.strip, self.strip, independent=True, apart=apart)

    def strip(self, first: Index, count: int) -> None:
        """Emit code for a strip of `count` pixels from `first` on: for each tap of the window, it lists the pixels for
        which the tap is inside the image; then it computes the results, one block of channels after the other."""
        tables = self.tables(first, count)
        apart = sharing.of_blocks(self.conv, self.schedule.tile[1], self.epilogue.itemsize)
        for group in groups_of(self.conv.outputs, self.schedule.vectors):
            group.loop(self.b, apart, partial(self.block, tables, first))

    def tables(self, first: Index, count: int) -> Tables:
        """Emit the tables for the `count` pixels of a strip from `first` on, and return them: where the window of each
        pixel starts in the data, and for each tap the pixels for which it is inside the image."""
        b, conv, (rows, columns) = self.b, self.conv, self.taps.image
        pixels = self.schedule.tile[0]
        room = count + pixels - 1
        places, lists, counts = (self.numbers(size) for size in (count, self.lists * room, self.lists))
        corners = [self.numbers(count) for _ in "yx"] if self.schedule.skip_border else []
        with b.loop(0, count) as (m, _):
            n, y, x = unravelled(b, b.plus(first, m), (conv.images, conv.out_rows, conv.out_columns))
            y = b.plus(b.times(y, conv.strides[0]), -self.taps.before[0])
            x = b.plus(b.times(x, conv.strides[1]), -self.taps.before[1])
            row = b.plus(b.times(n, rows), y)
            self.store_index(b.times(b.plus(b.times(row, columns), x), conv.pitch), places, m)
            for value, table in zip((y, x), corners, strict=False):
                self.store_index(value, table, m)
        zero = b.index(0)
        with b.loop(0, self.lists) as (tap, _):
            i, j = unravelled(b, tap, (self.taps.rows, self.taps.columns))
            start = b.times(tap, room)
            with b.loop(0, count, carried=[zero, zero]) as (m, found):
                inside = [
                    below(b, b.plus(b.load_index(table, m), b.times(at, dilation)), size)
                    for table, at, dilation, size in zip(corners, (i, j), conv.dilation, self.taps.image, strict=False)
                ]
                length, last = found.args
                self.store_index(m, lists, b.plus(start, length))
                more, m = b.index(b.plus(length, 1)), b.index(m)
                if (truth := both(b, inside)) is not None:
                    more, m = b.select(truth, more, length), b.select(truth, m, last)
                found.next = [more, m]
            length, last = found.results
            for ahead in range(pixels - 1):
                self.store_index(last, lists, b.plus(start, b.plus(length, ahead)))
            self.store_index(length, counts, tap)
        return Tables(count, room, places, lists, counts)

    def numbers(self, count: int) -> SSAValue:
        """Allocate memory for `count` indices of 32 bits."""
        return self.b.add(memref.AllocaOp.get(i32, 64, [count])).memref

    def store_index(self, number: Index, table: SSAValue, at: Index) -> None:
        """Write an index to a table."""
        b = self.b
        b.store(b.add(arith.IndexCastOp(b.index(number), i32)).result, table, [at])

    def block(self, tables: Tables, first: Index, block: Block) -> None:
        """Emit a block of channels for all pixels of a strip."""
        b, conv, taps, vectors, pixels = self.b, self.conv, self.taps, block.vectors, self.schedule.tile[0]
        pitch = vectors * LANES
        sums = b.add(memref.AllocaOp.get(conv.accumulator, 64, [tables.count * pitch])).memref
        start = [b.vector_load(self.initial, [b.plus(block.channel, v * LANES)], LANES) for v in range(vectors)]
        with b.loop(0, tables.count) as (m, _):
            for v, value in enumerate(start):
                b.vector_store(value, sums, [b.plus(b.times(m, pitch), v * LANES)])
        with b.loop(0, taps.rows) as (i, _), b.loop(0, taps.columns) as (j, _):
            tap = b.plus(b.times(i, taps.columns), j)
            number = tap if self.lists > 1 else 0
            row = b.times(i, conv.dilation[0] * taps.image[1])
            base = b.times(b.plus(row, b.times(j, conv.dilation[1])), conv.pitch)
            length = b.plus(b.load_index(tables.counts, number), pixels - 1)
            for done, count, size in parts(taps.run, self.schedule.steps):
                with b.loop(0, count) as (k, _):
                    step = b.plus(b.times(k, size), done)
                    at = b.plus(
                        b.times(block.channel, self.depth), b.times(b.plus(b.times(tap, taps.run), step), pitch)
                    )
                    with b.loop(0, quotient(b, length, pixels)) as (turn, _):
                        x = b.times(turn, pixels)
                        slots = [
                            b.load_index(tables.lists, b.plus(b.times(number, tables.room), b.plus(x, m)))
                            for m in range(pixels)
                        ]
                        ahead = b.plus(base, step)
                        data = [b.plus(b.load_index(tables.places, slot), ahead) for slot in slots]
                        self.tile(sums, slots, data, at, x, size, vectors, self.share(tables.count, size * pitch, size))
        with b.loop(0, tables.count) as (m, _):
            for v in range(vectors):
                value = b.vector_load(sums, [b.plus(b.times(m, pitch), v * LANES)], LANES)
                lanes = block.last if v == vectors - 1 else LANES
                self.epilogue.apply(value, [b.plus(first, m)], b.plus(block.channel, v * LANES), lanes)

    def share(self, count: int, size: int, steps: int) -> prefetch.Share:
        """Return the share of the `size` elements of the next block that each step of a tile prefetches. It is the
        same for all taps, and large enough for the tap with the fewest pixels inside the image to prefetch the whole
        block."""
        conv = self.conv
        points = max(count * min(self.taps.pixels) // (conv.images * conv.out_rows * conv.out_columns), 1)
        return prefetch.share_of(size, points, min(self.schedule.tile[0], points), steps)

    def tile(
        self,
        sums: SSAValue,
        slots: Sequence[SSAValue],
        data: Sequence[Index],
        weights: Index,
        x: Index,
        size: int,
        vectors: int,
        share: prefetch.Share,
    ) -> None:
        """Emit one block of `size` reduction steps for some pixels: load their sums, add the products and store the
        sums."""
        b, pitch = self.b, vectors * LANES
        at = [b.plus(b.times(slot, pitch), v * LANES) for slot in slots for v in range(vectors)]
        following = b.plus(b.plus(weights, size * pitch), b.times(x, share.pixel))
        with b.loop(0, size, carried=[b.vector_load(sums, [place], LANES) for place in at]) as (k, turn):
            if self.schedule.prefetch_stride:
                ahead = b.plus(following, b.times(k, share.step))
                prefetch.prefetch_share(b, self.weights, ahead, share, self.schedule.prefetch_stride)
            here = b.plus(weights, b.times(k, pitch))
            columns = [b.vector_load(self.weights, [b.plus(here, v * LANES)], LANES) for v in range(vectors)]
            turn.next = []
            for m, start in enumerate(data):
                value = b.broadcast(b.load(self.data, [b.plus(start, k)]), LANES)
                for v in range(vectors):
                    turn.next.append(b.add(vector.FMAOp(value, columns[v], turn.args[m * vectors + v])).results[0])
        for place, value in zip(at, turn.results, strict=True):
            b.vector_store(value, sums, [place])
