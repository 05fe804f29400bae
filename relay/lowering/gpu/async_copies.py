"""Copies the two factors of a matrix product to shared memory in stages: threads start asynchronous copies of later
stages while earlier ones are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.ir import SSAValue

from relay.dialects import nvgpu
from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.tiles import CHUNK
from relay.lowering.gpu.warpgroup_products import VISIBLE, instruction
from relay.lowering.indices import both, when


@dataclass(frozen=True)
class Copied:
    """A row of the data of which a thread copies chunks: `start`: offset of its first element; `row` and `column`: its
    position in the image; `inside`: whether the row exists, None if it always does; `to`: its offset in a stage."""

    start: Index
    row: Index
    column: Index
    inside: SSAValue | None
    to: Index


class AsyncCopies:
    """Emits the copies of one thread. `sources`: the data and the packed weights, both flat. `ahead`: steps whose
    copies are in flight while one is multiplied. `fenced`: the instructions that read the stages need a fence after the
    copies."""

    rolled = False
    """Whether the assembler must not unroll the loop over steps: False, because without unrolling each thread would
    divide by the window's sizes in every step."""

    def __init__(self, thread: MatrixThread, sources: Sequence[SSAValue], ahead: int, fenced: bool):
        self.t, self.b, self.m, self.conv = thread, thread.b, thread.m, thread.conv
        self.data, self.weights = sources
        self.ahead, self.fenced = ahead, fenced

    @staticmethod
    def sources(b: LoopBuilder, matrix: Matrix, factors: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Return the launch's arguments for both factors: their buffers."""
        return factors

    def prepare(self) -> None:
        """Emit the computation of the addresses between which this thread copies in each step: it copies the same chunk
        of some rows of the data and of the weights to shared memory."""
        b, t, tile, conv = self.b, self.t, self.t.tile, self.conv
        self.chunk = t.rem(t.number, t.chunks)
        first = t.div(t.number, t.chunks)
        together = tile.threads // t.chunks
        self.copied: list[Copied] = []
        self.image = image = self.m.borders.image
        self.padded = (image.rows, image.columns) != (conv.rows, conv.columns)
        for part in range(tile.rows // together):
            row = b.plus(first, part * together)
            m = b.plus(t.first_row, row)
            inside = t.below(m, self.m.rows) if self.m.rows % tile.rows else None
            to = t.place(row, self.chunk)
            if conv.pointwise and not self.padded:
                self.copied.append(Copied(b.times(m, self.m.pitch), 0, 0, inside, to))
                continue
            number, pixel = t.div(m, conv.out_rows * conv.out_columns), t.rem(m, conv.out_rows * conv.out_columns)
            y = b.plus(b.times(t.div(pixel, conv.out_columns), conv.strides[0]), -image.top)
            x = b.plus(b.times(t.rem(pixel, conv.out_columns), conv.strides[1]), -image.left)
            line = b.plus(b.times(number, image.rows), y)
            start = b.times(b.plus(b.times(line, image.columns), x), self.m.pitch)
            self.copied.append(Copied(start, y, x, inside, to))
        self.weight_rows: list[tuple[Index, Index]] = []
        fold = self.m.format.fold
        pitch = self.m.packed_depth * self.m.format.data
        for number in range(tile.columns // fold // together):
            row = b.plus(first, number * together)
            start = b.plus(b.times(b.plus(t.div(t.first_column, fold), row), pitch), b.times(self.chunk, CHUNK))
            self.weight_rows.append((start, b.plus(t.place(row, self.chunk), tile.rows * tile.depth)))

    def start(self) -> None:
        """Start the copies of the first steps, each as a group."""
        for step in range(self.ahead):
            if step < self.m.steps:
                self.issue(step, step)
            self.b.add(nvgpu.DeviceAsyncCreateGroupOp())

    def arrive(self, step: Index) -> None:
        """Wait until the copies of a step have arrived, for all threads."""
        last = self.b.add(nvgpu.DeviceAsyncCreateGroupOp()).asyncToken
        self.b.add(nvgpu.DeviceAsyncWaitOp(last, self.ahead - 1))
        if self.fenced:
            instruction(self.b, VISIBLE)
        self.b.add(BarrierOp.create())

    def refill(self, step: Index) -> None:
        """Start the copies of the step that is `ahead` steps later, if there is one."""
        later = self.b.plus(step, self.ahead)
        if not isinstance(later, int):
            due = self.t.below(later, self.m.steps)
            when(self.b, due, lambda: self.issue(later, self.t.rem(later, self.m.tile.stages)))

    def issue(self, step: Index, stage: Index) -> None:
        """Start the copies of the parts of both factors that step number `step` of the sum multiplies, into stage
        number `stage`, one of several buffers in shared memory."""
        b, tile = self.b, self.t.tile
        start = b.plus(self.t.start, b.times(stage, tile.stage_bytes))
        step = b.plus(self.t.first_step, step)
        chunk = b.plus(b.times(step, self.m.deep), b.times(self.chunk, self.m.format.chunk))
        for piece in range(0, self.m.format.chunk, self.m.piece):
            self.issue_data(b.plus(chunk, piece), b.plus(start, piece * self.m.format.data))
        for source, at in self.weight_rows:
            place = b.plus(source, b.times(step, tile.depth))
            self.copy(self.t.shared, b.plus(start, at), self.weights, place, CHUNK)

    def issue_data(self, k: Index, start: Index) -> None:
        """Start the asynchronous copies of one piece (contiguous elements) of each row of the data for which this
        thread is responsible. `k`: the position of the piece along the axis that is summed; `start`: the byte in shared
        memory to which the destination offsets of the rows are relative."""
        b, t, conv = self.b, self.t, self.conv
        known = t.below(k, self.m.depth) if self.m.depth < self.m.packed_depth else None
        tap, channel = t.div(k, conv.channels), t.rem(k, conv.channels)
        if conv.kernel_rows * conv.kernel_columns == 1:
            tap, channel = 0, k
        i = b.times(t.div(tap, conv.kernel_columns), conv.dilation[0])
        j = b.times(t.rem(tap, conv.kernel_columns), conv.dilation[1])
        away = b.plus(b.times(b.plus(b.times(i, self.image.columns), j), self.m.pitch), channel)
        fill = self.fill(known)
        for row in self.copied:
            to = b.plus(start, row.to)
            conditions = [row.inside, known]
            if self.padded:
                conditions.append(t.below(b.plus(row.row, i), self.image.rows))
                conditions.append(t.below(b.plus(row.column, j), self.image.columns))
            when(b, both(b, conditions), partial(self.read, to, row, away), partial(self.set, fill, to))

    def fill(self, known: SSAValue | None) -> SSAValue:
        """Return the vector to store for a piece that is not copied: the padding value; zeros if there is no padding.
        If the weights have a zero point, also zeros where the condition `known` is false: the piece is behind the end
        of the depth."""
        zeros = self.b.broadcast(self.b.constant(0, self.conv.data.element), self.m.piece)
        if self.m.padding is None:
            return zeros
        padding = self.b.broadcast(self.m.padding.value, self.m.piece)
        if known is None or not self.conv.kernel.zero_point:
            return padding
        return self.b.select(known, padding, zeros)

    def copy(self, to: SSAValue, at: Index, source: SSAValue, start: Index, count: int) -> None:
        """Start an asynchronous copy of `count` elements, a chunk or a piece of one, from index `start` of `source` to
        index `at` of the shared memory `to`."""
        b = self.b
        b.add(nvgpu.DeviceAsyncCopyOp(to, b.index(at), source, b.index(start), count))

    def read(self, to: Index, row: Copied, away: Index) -> None:
        """Start a copy of the piece of the data that begins `away` elements after the start of `row`, to byte `to` of
        shared memory."""
        at = self.t.div(to, self.m.format.data)
        self.copy(self.t.numbers, at, self.data, self.b.plus(row.start, away), self.m.piece)

    def set(self, value: SSAValue, to: Index) -> None:
        """Store a vector of `m.piece` elements (the size of one asynchronous copy) at byte `to` of shared memory."""
        self.b.vector_store(value, self.t.numbers, [self.t.div(to, self.m.format.data)])
