"""Stages of rows of both factors, as threads copy them into shared memory while earlier ones are multiplied.

A row of 64 bytes lies there as four chunks of 16, number c of row r at c xor (r / 2 mod 4), so that eight rows' chunks
are in all banks; one of 128 bytes as eight, number c at c xor (r mod 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from relay.dialects import nvgpu
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import CHUNK, Matrix
from relay.lowering.gpu.shared_memory import align
from relay.lowering.indices import below, binary, both, quotient, remainder, when
from relay.lowering.shaped import shape_of

BANKS = 128
"""Bytes of shared memory that are read at once."""


@dataclass(frozen=True)
class Copied:
    """A row of the data that a thread copies chunks of: where its first number is, where its image's rows and columns
    start, and where it goes in a stage."""

    start: Index
    row: Index
    column: Index
    inside: SSAValue | None
    to: Index


class CopyEmitter:
    """Emits the copies of one thread. `buffers`: the data and the packed weights, both of one dimension, and what each
    channel's sums are off by."""

    part: Index
    """Which part of the depth the block sums."""
    first_row: Index
    first_column: Index

    def __init__(self, builder: LoopBuilder, matrix: Matrix, buffers: Sequence[SSAValue]):
        self.b, self.m = builder, matrix
        self.tile, self.conv = matrix.tile, matrix.conv
        self.chunks = self.tile.depth // CHUNK
        self.data, self.weights = buffers[:2]
        self.offsets: list[SSAValue] = list(buffers[2:])

    def share(self, shared: SSAValue) -> None:
        """The memory that the block shares: as bytes, and as numbers of the data."""
        self.shared = self.numbers = shared

    # Indices

    def div(self, a: Index, c: int) -> Index:
        """`a / c`."""
        return quotient(self.b, a, c)

    def rem(self, a: Index, c: int) -> Index:
        """`a mod c`."""
        return remainder(self.b, a, c)

    def below(self, a: Index, bound: int) -> SSAValue:
        """Whether `0 <= a < bound`."""
        return below(self.b, a, bound)

    def place(self, row: Index, chunk: Index) -> Index:
        """Where a chunk of a row is in a stage."""
        twist = self.rem(self.div(row, BANKS // self.tile.depth), self.chunks)
        turned = binary(self.b, arith.XOrIOp, chunk, twist)
        return self.b.plus(self.b.times(row, self.tile.depth), self.b.times(turned, CHUNK))

    # Copies

    def prepare(self, thread: Index) -> None:
        """What a thread copies in each step: its chunk of some rows of both factors."""
        b, tile, conv = self.b, self.tile, self.conv
        self.chunk = self.rem(thread, self.chunks)
        first = self.div(thread, self.chunks)
        together = tile.threads // self.chunks
        self.copied: list[Copied] = []
        padding = self.m.padding
        top, left = (padding.offsets[1], padding.offsets[2]) if padding else (0, 0)
        height, width = shape_of(padding.source)[1:3] if padding else (conv.rows, conv.columns)
        self.height, self.width = height, width
        self.padded = bool(padding and (height != conv.rows or width != conv.columns))
        for number in range(tile.rows // together):
            row = b.plus(first, number * together)
            m = b.plus(self.first_row, row)
            inside = self.below(m, self.m.rows) if self.m.rows % tile.rows else None
            to = self.place(row, self.rem(thread, self.chunks))
            if conv.pointwise and not self.padded:
                self.copied.append(Copied(b.times(m, self.m.pitch), 0, 0, inside, to))
                continue
            image, pixel = self.div(m, conv.out_rows * conv.out_columns), self.rem(m, conv.out_rows * conv.out_columns)
            y = b.plus(b.times(self.div(pixel, conv.out_columns), conv.strides[0]), -top)
            x = b.plus(b.times(self.rem(pixel, conv.out_columns), conv.strides[1]), -left)
            line = b.plus(b.times(image, height), y)
            start = b.times(b.plus(b.times(line, width), x), self.m.pitch)
            self.copied.append(Copied(start, y, x, inside, to))
        self.weight_rows: list[tuple[Index, Index]] = []
        fold = self.m.format.fold
        pitch = self.m.packed_depth * self.m.format.data
        for number in range(tile.columns // fold // together):
            row = b.plus(first, number * together)
            start = b.plus(b.times(b.plus(self.div(self.first_column, fold), row), pitch), b.times(self.chunk, CHUNK))
            at = self.place(row, self.rem(thread, self.chunks))
            self.weight_rows.append((start, b.plus(at, tile.rows * tile.depth)))

    def issue(self, step: Index, stage: Index) -> None:
        """Start the copies of a step into a stage."""
        b = self.b
        start = b.times(stage, self.tile.stage_bytes)
        step = b.plus(b.times(self.part, self.m.steps), step)
        chunk = b.plus(b.times(step, self.m.deep), b.times(self.chunk, self.m.chunk))
        for piece in range(0, self.m.chunk, self.m.piece):
            self.issue_data(b.plus(chunk, piece), b.plus(start, piece * self.m.format.data))
        for source, at in self.weight_rows:
            place = b.plus(source, b.times(step, self.tile.depth))
            self.copy(self.shared, b.plus(start, at), self.weights, place, CHUNK)

    def issue_first(self, count: int) -> None:
        """Start the copies of the first steps, each as a group."""
        for step in range(count):
            if step < self.m.steps:
                self.issue(step, step)
            self.b.add(nvgpu.DeviceAsyncCreateGroupOp())

    def issue_later(self, step: Index, ahead: int, only: SSAValue | None = None) -> None:
        """Start the copies of a step that is so far ahead, if there is one; where `only` holds."""
        later = self.b.plus(step, ahead)
        if not isinstance(later, int):
            due = both(self.b, [only, self.below(later, self.m.steps)])
            when(self.b, due, lambda: self.issue(later, self.rem(later, self.m.stages)))

    def issue_data(self, k: Index, start: Index) -> None:
        """Start the copies of the data from a place in the depth on, to places from `start` on."""
        b, conv = self.b, self.conv
        known = self.below(k, self.m.depth) if self.m.depth < self.m.packed_depth else None
        tap, channel = self.div(k, conv.channels), self.rem(k, conv.channels)
        if conv.kernel_rows * conv.kernel_columns == 1:
            tap, channel = 0, k
        i = b.times(self.div(tap, conv.kernel_columns), conv.dilation[0])
        j = b.times(self.rem(tap, conv.kernel_columns), conv.dilation[1])
        away = b.plus(b.times(b.plus(b.times(i, self.width), j), self.m.pitch), channel)
        fill = self.fill(known)
        for row in self.copied:
            to = b.plus(start, row.to)
            conditions = [row.inside, known]
            if self.padded:
                conditions += [
                    self.below(b.plus(row.row, i), self.height),
                    self.below(b.plus(row.column, j), self.width),
                ]
            when(b, both(b, conditions), partial(self.read, to, row, away), partial(self.set, fill, to))

    def fill(self, known: SSAValue | None) -> SSAValue:
        """A piece of padding; zeros behind the end of a row."""
        zeros = self.b.broadcast(self.b.constant(0, self.conv.data.element), self.m.piece)
        if self.m.padding is None:
            return zeros
        padding = self.b.broadcast(self.m.padding.value, self.m.piece)
        if known is None or not self.conv.kernel.zero_point:
            return padding
        return self.b.select(known, padding, zeros)

    def copy(self, to: SSAValue, at: Index, source: SSAValue, start: Index, count: int) -> None:
        """Start a copy of so many numbers: one chunk, or a piece of one."""
        b = self.b
        b.add(nvgpu.DeviceAsyncCopyOp(to, b.index(at), source, b.index(start), count))

    def read(self, to: Index, row: Copied, away: Index) -> None:
        """Start a copy of a piece of the data."""
        at = self.div(to, self.m.format.data)
        self.copy(self.numbers, at, self.data, self.b.plus(row.start, away), self.m.piece)

    def set(self, value: SSAValue, to: Index) -> None:
        """Write one piece."""
        self.b.vector_store(value, self.numbers, [self.div(to, self.m.format.data)])
        align(self.b.block.last_op, self.m.piece * self.m.format.data)
