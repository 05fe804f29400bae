"""Depthwise convolution by dot products of 4 codes, which are up to 4 rows of an image column in one channel.

A column of a block of 64 lanes (16 on AArch64) is read at most once per pixel: unpacking interleaves its rows, and
columns that neighbouring pixels share are carried from one to the next. The image need not be padded: for a row outside
it, another row is read and multiplied by zeros; columns outside are skipped; the initial accumulators of each kind of
border account for both. (The decision `padded` can choose a padded copy instead.) `depthwise_layout` defines the order
of weights and accumulators in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contractions import OfWeights, weighted_of
from relay.lowering.scheduling.depthwise import depthwise_cycles
from relay.lowering.scheduling.depthwise_layout import (
    GROUP,
    VECTORS,
    Layout,
    Section,
    best_strip,
    fits,
    image_of,
    layout_of,
    pack_depthwise_dot,
    width_of,
)
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.padding import Padding, is_border
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel
from relay.lowering.shaped import is_vector
from relay.target import LANES

CARRIED = 8
"""The most vectors of image columns that a loop keeps in registers. Every target with such dot products has 32 vector
registers."""

Column = list[SSAValue]
"""A column of the image with its rows interleaved: `VECTORS` vectors for each group of rows."""


@dataclass(frozen=True, kw_only=True)
class DepthwiseDotSchedule(OpSchedule):
    """The decisions about a depthwise convolution by dot products. `strip`: output rows that all blocks of channels
    process before the next rows; `padded`: the padded copy is read, not the image without borders; `lanes`: the number
    of lanes of a block; `unsigned`: whether the dot product's data operand is unsigned."""

    strategy = "depthwise_dot"
    strip: int
    padded: bool
    lanes: int
    unsigned: bool


@dataclass(frozen=True)
class DepthwiseDot(OfWeights[DepthwiseDotSchedule]):
    """A depthwise convolution of codes by dot products of up to 4 rows of an image column, 64 or 16 lanes at a time,
    with masks for fewer channels. `possible`: the values to choose from, the best one first: True to read a padded copy
    of the image, False to read the image without its borders."""

    record = DepthwiseDotSchedule
    padding: Padding | None
    possible: Sequence[bool]

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = weighted_of(op, kernel)
        if found is None or not found.conv.depthwise:
            return None
        conv, padding = found.conv, kernel.waiting.get(found.conv.data.value)
        if padding is None:
            return cls(found.op, found, None, (False,)) if fits(conv, image_of(conv, None), kernel.target) else None
        if not is_border(padding, conv) or not fits(conv, image_of(conv, padding), kernel.target):
            return None
        written = fits(conv, image_of(conv, None), kernel.target)
        return cls(found.op, found, padding, (False, True) if written else (False,))

    def decide(self, kernel: Kernel, pick: Picks) -> DepthwiseDotSchedule:
        conv, possible = self.found.conv, self.possible
        padded = pick("padded", possible, possible[0])
        image = image_of(conv, None if padded else self.padding)
        pick("strip", range(1, conv.out_rows + 1), best_strip(conv, image, kernel.target))
        lanes, dot = width_of(conv, kernel.target), kernel.target.dot(GROUP, conv.data.unsigned)
        pick.only("lanes", lanes)
        pick.only("unsigned", dot is None or dot.unsigned)
        why = f"dot products of up to 4 rows of a column, {lanes} lanes at a time"
        return pick.schedule(DepthwiseDotSchedule, depthwise_cycles(kernel, self.op, conv, 4), why)

    def emit(self, emission: Emission, schedule: DepthwiseDotSchedule) -> None:
        found, conv = self.found, self.found.conv
        epilogue, data = found.start(emission, masks=schedule.lanes > LANES), conv.data.value
        padding = emission.prepare_padding(data, pads=not schedule.padded)
        image, decisions = image_of(conv, padding), (schedule.strip, schedule.lanes, schedule.unsigned)
        layout = layout_of(conv, image, found.kernels, *decisions)
        given = zip(found.kernels, found.biases, strict=True)
        arguments = found.give(emission, [pack_depthwise_dot(layout, *one) for one in given])
        source = data if padding is None else padding.source
        DepthwiseDotEmitter(emission.builder, layout, source, arguments, epilogue).emit()


class DepthwiseDotEmitter:
    """Emits one depthwise convolution with its epilogue."""

    def __init__(
        self,
        builder: LoopBuilder,
        layout: Layout,
        data: SSAValue,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
    ):
        self.b, self.layout, self.conv, self.epilogue = builder, layout, layout.conv, epilogue
        self.data = builder.flatten(data)
        self.weights, self.initial, self.tables = constants

    def emit(self) -> None:
        conv, b, alone = self.conv, self.b, self.layout.strips == 1
        with (
            b.loop(0, conv.images, independent=True) as (n, _),
            b.loop(0, self.layout.strips, independent=True) as (strip, _),
        ):
            for section in self.layout.sections:
                first = b.times(strip, self.layout.steps(section))
                with b.loop(0, section.blocks, independent=alone) as (block, _):
                    channel = b.plus(b.times(block, section.channels), section.first)
                    start = (b.times(block, self.layout.block_bytes), b.times(block, self.layout.block_sums))
                    with b.loop(0, self.layout.steps(section), independent=alone) as (step, _):
                        Row(self, section, (n, b.plus(first, step)), channel, start).emit()

    def unpack(self, a: SSAValue, b: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
        """Interleave two vectors within each 128-bit part, which has `count` elements: return a vector of the
        interleaved first halves of all parts, and one of the second halves."""
        parts = self.layout.parts
        low = [lane for p in range(parts) for k in range(count // 2) for lane in _both(p * count + k, parts * count)]
        return self.b.shuffle(a, b, low), self.b.shuffle(a, b, [lane + count // 2 for lane in low])

    def transpose(self, parts: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the accumulators of a block in the order of its lanes, as vectors of 16. For a block of 64 lanes, part
        p (128 bits) of vector s becomes part s of vector p. For a block of 16 lanes, the four vectors are the quarters
        of the result."""
        if self.layout.parts == 1:
            return [self.b.joined(parts)]
        pairs = [self.b.shuffle(parts[k], parts[k + 1], range(2 * LANES)) for k in (0, 2)]
        quarter = LANES // VECTORS
        return [
            self.b.shuffle(pairs[0], pairs[1], [2 * LANES * h + LANES * v + quarter * s + k for h, v, k in _EACH])
            for s in range(VECTORS)
        ]


def _both(lane: int, count: int) -> tuple[int, int]:
    return lane, count + lane


_EACH = [(half, vector, lane) for half in range(2) for vector in range(2) for lane in range(LANES // VECTORS)]


class Row:
    """One iteration of the loop over rows of one block: the addresses that it reads, and the pixels that it
    computes."""

    def __init__(
        self,
        parent: DepthwiseDotEmitter,
        section: Section,
        at: tuple[Index, Index],
        channel: Index,
        start: tuple[Index, Index],
    ):
        self.p, self.b, self.section, self.channel = parent, parent.b, section, channel
        self.layout, self.conv, self.epilogue = parent.layout, parent.conv, parent.epilogue
        b, layout = self.b, parent.layout
        n, step = at
        entry = b.plus(b.times(step, layout.record(section)), layout.table_of(section))
        self.weights_at = b.plus(self.number(entry, 0), start[0])
        self.initial_at = b.plus(self.number(entry, 1), start[1])
        self.points: list[list[Index]] = []
        self.lines: list[list[Index]] = []
        image = b.plus(b.times(n, layout.image.rows * layout.image.columns * self.conv.channels), channel)
        for piece in range(section.rows):
            first = 2 + piece * (1 + self.conv.kernel_rows)
            self.points.append([n, self.number(entry, first)])
            numbers = range(first + 1, first + 1 + self.conv.kernel_rows)
            self.lines.append([b.plus(self.number(entry, number), image) for number in numbers])

    def number(self, entry: Index, ahead: int) -> Index:
        """Load entry `entry + ahead` of the table of offsets (`DepthwiseDotEmitter.tables`: where each row's weights,
        accumulators, results and image rows begin) as an index."""
        return self.b.load_index(self.p.tables, self.b.plus(entry, ahead))

    def emit(self) -> None:
        """Emit all pixels, in spans of pixels for which the same columns of taps are inside the image."""
        b, conv = self.b, self.conv
        operands = self.operands() if self.layout.parts == VECTORS and self.epilogue.packs() else None
        for kind, (first, end, left, right) in enumerate(self.layout.column_spans):
            taps = range(left, right)
            start = self.start(kind)
            pixels = tile_of(end - first)
            whole = first + (end - first) // pixels * pixels
            shared = self.shared(taps, pixels)
            carried = [self.column(first, offset - pixels * conv.strides[1]) for offset in shared]
            flat = [value for column in carried for value in column]
            with b.loop(first, whole, pixels, carried=flat) as (x, turn):
                known: dict[int, Column] = {}
                for number, offset in enumerate(shared):
                    size = self.layout.groups * VECTORS
                    known[offset - pixels * conv.strides[1]] = turn.args[number * size : (number + 1) * size]
                self.tile(x, pixels, taps, start, operands, known)
                turn.next = [value for offset in shared for value in known[offset]]
            if whole < end:
                self.tile(whole, end - whole, taps, start, operands, {})

    def shared(self, taps: range, pixels: int) -> list[int]:
        """Return the columns (relative to a tile's first) that the next tile needs too, if they are few enough to stay
        in registers."""
        conv = self.conv
        needed = {m * conv.strides[1] + j * conv.dilation[1] for m in range(pixels) for j in taps}
        found = sorted(o for o in needed if o - pixels * conv.strides[1] in needed)
        return found if len(found) * self.layout.groups * VECTORS <= CARRIED else []

    def operands(self) -> list[list[SSAValue | None]]:
        """Load the epilogue's operands per channel, in the order of the accumulators."""
        channels = [self.b.plus(self.channel, self.section.part(part)[1]) for part in range(VECTORS)]
        found = self.epilogue.channel_vectors(channels, self.section.lanes)
        result: list[list[SSAValue | None]] = []
        for parts in found:
            vectors = [part for part in parts if part is not None and is_vector(part.type)]
            result.append([*self.p.transpose(vectors)] if len(vectors) == VECTORS else parts)
        return result

    def start(self, kind: int) -> list[SSAValue]:
        """Load the initial accumulators for the pixels of span number `kind` of `layout.column_spans`: the pixels for
        which the same columns of taps are inside the image."""
        width, lanes = self.layout.width, self.layout.width // VECTORS
        places = [self.b.plus(self.initial_at, kind * width + s * lanes) for s in range(VECTORS)]
        return [self.b.vector_load(self.p.initial, [at], lanes) for at in places]

    def tile(
        self,
        x: Index,
        pixels: int,
        taps: range,
        start: Sequence[SSAValue],
        operands: Sequence[Sequence[SSAValue | None]] | None,
        known: dict[int, Column],
    ) -> None:
        """Emit the results of `pixels` neighbouring pixels of a row, the first at column `x`. `known` maps the offsets
        of image columns from the tile's first column to their codes in registers; columns that it lacks are loaded and
        added to it."""
        conv = self.conv
        for m in range(pixels):
            totals = list(start)
            for j in taps:
                offset = m * conv.strides[1] + j * conv.dilation[1]
                if offset not in known:
                    known[offset] = self.column(x, offset)
                for group in range(self.layout.groups):
                    codes = known[offset][group * VECTORS : (group + 1) * VECTORS]
                    self.accumulate(totals, codes, group * conv.kernel_columns + j)
                    if (group, j) in self.layout.second:
                        unit = self.layout.groups * conv.kernel_columns + sorted(self.layout.second).index((group, j))
                        self.accumulate(totals, codes, unit)
            self.finish(totals, self.b.plus(x, m), operands)

    def accumulate(self, totals: list[SSAValue], codes: Sequence[SSAValue], unit: int) -> None:
        """Add to `totals` the dot products of four vectors of codes and the four vectors of weights that begin at
        vector `4 * unit` of the block's weights."""
        b, width = self.b, self.layout.width
        for s, code in enumerate(codes):
            at = b.plus(self.weights_at, (unit * VECTORS + s) * width)
            totals[s] = b.dot(totals[s], code, b.vector_load(self.p.weights, [at], width), self.layout.unsigned)

    def column(self, x: Index, offset: int) -> Column:
        """Load the image's codes that the taps of one kernel column read, and return four vectors for each group of
        four kernel rows: the rows interleaved, so that the four codes of a channel are next to each other."""
        b, conv, p = self.b, self.conv, self.p
        pixel = b.plus(b.times(x, conv.strides[1] * conv.channels), (offset - self.layout.image.left) * conv.channels)
        result: Column = []
        width = self.layout.width
        zeros = vector_constant(b, 0, i8, width)
        for group in range(self.layout.groups):
            rows = [self.row(i, pixel) for i in range(group * GROUP, min((group + 1) * GROUP, conv.kernel_rows))]
            if self.layout.offset:
                flip = vector_constant(b, -128, i8, width)
                rows = list[SSAValue](b.add(arith.XOrIOp(row, flip)).result for row in rows)
            if len(rows) < GROUP:
                copied = self.layout.copied - group * GROUP
                rows.append(rows[copied] if 0 <= copied < len(rows) else zeros)
            rows += [zeros] * (GROUP - len(rows))
            first, second = p.unpack(rows[0], rows[1], LANES), p.unpack(rows[2], rows[3], LANES)
            for low, high in zip(first, second, strict=True):
                pairs = b.bitcast(low, i16, width // 2), b.bitcast(high, i16, width // 2)
                result += [b.bitcast(v, i32, width // 4) for v in p.unpack(pairs[0], pairs[1], LANES // 2)]
        return [b.bitcast(v, i8, width) for v in result]

    def row(self, i: int, pixel: Index) -> SSAValue:
        """Return a vector of the image's codes that row `i` of the kernel reads at offset `pixel` in an image row. If a
        block computes several output rows (`section.rows`), the vector holds the codes for one output row after
        another."""
        b, section = self.b, self.section
        pieces: list[SSAValue] = []
        for lines in self.lines:
            at = b.plus(lines[i], pixel)
            if section.lanes < LANES:
                pieces.append(self.epilogue.load(self.p.data, [at], section.lanes))
            else:
                pieces.append(b.vector_load(self.p.data, [at], section.channels))
        return b.joined(pieces)

    def finish(
        self, totals: Sequence[SSAValue], x: Index, operands: Sequence[Sequence[SSAValue | None]] | None
    ) -> None:
        """Apply the epilogue to a block's accumulators and store the results: all channels at once if the results
        become codes (`operands` is not None), else 16 channels at a time."""
        section, epilogue, b = self.section, self.epilogue, self.b
        if operands is None:
            for part, value in enumerate(self.p.transpose(totals)):
                piece, ahead = section.part(part)
                epilogue.apply(value, [*self.points[piece], x], b.plus(self.channel, ahead), section.lanes)
            return
        codes = epilogue.codes(totals, operands)
        for piece, point in enumerate(self.points):
            lanes = range(piece * section.channels, (piece + 1) * section.channels)
            part = codes if section.rows == 1 else self.b.shuffle(codes, codes, lanes)
            at = [*point, x, self.channel]
            if section.lanes == LANES:
                b.vector_store(part, epilogue.outputs[0].value, epilogue.place(epilogue.outputs[0], at))
            else:
                epilogue.store(part, epilogue.outputs[0].value, epilogue.place(epilogue.outputs[0], at), section.lanes)


def tile_of(width: int) -> int:
    """Return the number of pixels of a tile, for a row of `width` pixels: a divisor of `width` from 2 to 7 if there is
    one (4, 5 and 3 are preferred), else at most 4."""
    return next((t for t in (4, 5, 3, 6, 7, 2) if width % t == 0), min(4, width))
