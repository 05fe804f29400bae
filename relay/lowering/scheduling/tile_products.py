"""The micro-kernel on tile registers of x86 (AMX): 16 pixels x 64 codes by 64 codes x 16 channels in one instruction.

Rows of a tile of data are pixels as stored in memory. Weights are packed as for dot products of four codes: each group
of four is a row of a tile of weights. All tiles of a kernel have one shape, because another shape would need another
configuration of the registers: if pixels are left over, the last tile overlaps the one before, and if codes of a
contiguous run are left over, the last step overlaps the one before, with weights of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import gcd

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import SSAValue

from relay.dialects.amx import WORD, TileLoadOp, TileMulIOp, TileStoreOp, TileType
from relay.lowering.builder import Index
from relay.lowering.indices import binary
from relay.lowering.scheduling.loops import parts
from relay.lowering.scheduling.matmul import MatmulEmitter
from relay.lowering.scheduling.packed_store import GROUP
from relay.lowering.scheduling.packing import Block, run_length
from relay.lowering.scheduling.plan import MATRIX, TileSchedule, tile_rows
from relay.lowering.scheduling.tiles import firsts
from relay.lowering.shaped import is_buffer
from relay.target import LANES


class TileEmitter(MatmulEmitter):
    """Emits one contraction and its epilogue with matrix instructions on tile registers (AMX). The accumulators are
    tile registers, one for each group of pixels and each vector of channels, in this order."""

    @property
    def rows(self) -> int:
        """The number of pixels of a tile register."""
        return tile_rows(self.conv, flat=self.schedule.flat)

    def load(self, source: SSAValue, at: Index, stride: Index, type: TileType) -> SSAValue:
        """Load a tile whose rows are `stride` elements apart."""
        return self.b.add(TileLoadOp(source, self.b.index(at), self.b.index(stride), type)).res

    def start(self, initial: Index, pixels: int, vectors: int) -> list[SSAValue]:
        type, b = TileType.of(self.rows, LANES, i32), self.b
        every = [b.plus(initial, v * LANES) for _ in firsts(pixels, self.rows) for v in range(vectors)]
        return [self.load(self.initial, at, 0, type) for at in every]

    def codes_before(self, step: Index) -> Index:
        codes, run = super().codes_before(step), run_length(self.conv)
        return (
            codes
            if run % self.group == 0 or run < self.group
            else binary(self.b, arith.MinUIOp, codes, run - self.group)
        )

    def values(self, data: Index, pixels: int, count: int) -> list[list[Callable[[], SSAValue]]]:
        b, pitch, type = self.b, self.conv.strides[1] * self.conv.pitch, TileType.of(self.rows, self.group, i8)
        places = [b.plus(data, first * pitch) for first in firsts(pixels, self.rows)]
        return [[partial(self.load, self.data, at, pitch, type) for at in places]]

    def step(
        self,
        carried: Sequence[SSAValue],
        values: Sequence[Callable[[], SSAValue]],
        weights: SSAValue,
        at: Index,
        vectors: int,
        summed: Index | None = None,
    ) -> list[SSAValue]:
        if summed is None:
            return super().step(carried, values, weights, at, vectors)
        b, type = self.b, TileType.of(self.group // WORD, LANES * WORD, i8)
        row = vectors * LANES * WORD
        columns = [self.load(weights, b.plus(at, v * LANES * WORD), row, type) for v in range(vectors)]
        result: list[SSAValue] = []
        for m, emit in enumerate(values):
            value, unsigned = emit(), self.conv.data.unsigned
            sums = carried[m * vectors : (m + 1) * vectors]
            result += [
                b.add(TileMulIOp(value, column, total, unsigned=unsigned)).res
                for column, total in zip(columns, sums, strict=True)
            ]
        return result

    def extra_steps(
        self, accumulators: Sequence[SSAValue], data: Index, block: Block, pixels: int
    ) -> Sequence[SSAValue]:
        """Store the sums of a tile in memory, and add the products with the outliers, the parts of weights that exceed
        8 bits, for a few pixels at a time. Returns the memory."""
        b, scratch, pitch = (
            self.b,
            self.stored(accumulators, pixels, block.vectors),
            self.conv.strides[1] * self.conv.pitch,
        )
        for first, turns, size in parts(pixels, GROUP):
            with b.loop(0, turns) as (turn, _):
                ahead = b.plus(first, b.times(turn, size))
                places = self.places(ahead, pixels, size, block.vectors)
                sums = [b.vector_load(scratch, [at], LANES) for at in places]
                sums = super().extra_steps(sums, b.plus(data, b.times(ahead, pitch)), block, size)
                for value, at in zip(sums, places, strict=True):
                    b.vector_store(value, scratch, [at])
        return [scratch]

    def finish(self, accumulators: Sequence[SSAValue], point: Sequence[Index], pixels: int, block: Block) -> None:
        """Emit the epilogue of a tile, whose sums are stored in memory, in loops over pixels."""
        b, vectors, (*outer, x) = self.b, block.vectors, point
        stored = is_buffer(accumulators[0].type)
        scratch = accumulators[0] if stored else self.stored(accumulators, pixels, vectors)
        assert isinstance(block.last, int)
        if self.packed is None or block.last % GROUP:
            self.columns(scratch, self.before(pixels) * vectors * LANES, point, pixels, block)
            return
        for first, turns, size in parts(pixels, GROUP // gcd(GROUP, vectors)):
            with b.loop(0, turns) as (turn, _):
                ahead = b.plus(first, b.times(turn, size))
                sums = [b.vector_load(scratch, [at], LANES) for at in self.places(ahead, pixels, size, vectors)]
                self.packed.tile(sums, [*outer, b.plus(x, ahead)], block.channel, vectors, block.last)

    def stored(self, accumulators: Sequence[SSAValue], pixels: int, vectors: int) -> SSAValue:
        """Store the sums of a tile in memory, `[pixel][channel]`, and return the memory. If the tile has fewer pixels
        than a tile register has rows, the register also has sums of `before(pixels)` pixels that precede the tile, and
        the memory begins with these."""
        b, row = self.b, vectors * LANES
        scratch = b.add(memref.AllocaOp.get(i32, 64, [self.room])).memref
        for number, value in enumerate(accumulators):
            m, v = divmod(number, vectors)
            at = (firsts(pixels, self.rows)[m] + self.before(pixels)) * row + v * LANES
            b.add(TileStoreOp(scratch, b.index(at), value, b.index(row)))
        return scratch

    def before(self, pixels: int) -> int:
        """Return the number of unused rows in the tile register of a tile with fewer pixels than a register has rows.
        These rows precede the pixels; the number is 0 for larger tiles."""
        return max(self.rows - pixels, 0)

    def places(self, first: Index, pixels: int, count: int, vectors: int) -> list[Index]:
        """Return the offsets of the vectors of pixels `first` to `first + count` of a tile in the memory that holds its
        sums."""
        start = self.b.times(self.b.plus(self.before(pixels), first), vectors * LANES)
        return [self.b.plus(start, n * LANES) for n in range(count * vectors)]


def emitter_of(schedule: TileSchedule) -> type[MatmulEmitter]:
    """Return the emitter for a contraction of this schedule."""
    return TileEmitter if schedule.codes_per_step > MATRIX else MatmulEmitter
