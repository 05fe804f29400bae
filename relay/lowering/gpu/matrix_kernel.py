"""Products by a GPU's matrix units: one block of threads computes a tile of the result, in one kernel.

Copies transfer both factors to shared memory, stage by stage (`async_copies`, `bulk_copies`), matrix units multiply a
stage (`warp_products`, `warpgroup_products`), and the operations that follow the sums are computed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import ROLLED, Index, LoopBuilder
from relay.lowering.gpu.async_copies import AsyncCopies
from relay.lowering.gpu.bulk_copies import BulkCopies
from relay.lowering.gpu.channel_tables import read
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.shared_memory import shared_view
from relay.lowering.gpu.tiles import GroupTile
from relay.lowering.gpu.warp_products import FloatProducts, WarpProducts
from relay.lowering.gpu.warpgroup_products import GroupProducts
from relay.lowering.indices import below, both, quotient, remainder, when
from relay.lowering.scheduling.padding import Span
from relay.lowering.scheduling.zero_points import wrapped
from relay.lowering.shaped import is_vector

QUAD = 4
"""The number of threads with sums of the same row, in neighbouring columns."""
WORDS = 4
"""The number of partial sums that are written at once, if the depth is split."""
VECTOR = 4
"""The number of sums that slices of the depth write, or read, at once."""


class MatrixKernel:
    """Emits the work of one thread. `buffers`: the data and the packed weights, both flat, and each channel's
    correction of its sums; `blocks`: the number of blocks of the launch, if they are persistent; `parts`: the buffer
    for partial sums, if the depth is split."""

    def __init__(
        self, builder: LoopBuilder, matrix: Matrix, points: PointEmitter, buffers: Sequence[SSAValue], blocks: int = 0
    ):
        self.blocks = blocks
        self.b, self.m, self.tile, self.conv = builder, matrix, matrix.tile, matrix.conv
        groups = isinstance(matrix.tile, GroupTile)
        self.units = GroupProducts if groups else WarpProducts if matrix.format.exact else FloatProducts
        self.copies = BulkCopies if matrix.bulk else AsyncCopies
        self.kind: Attribute = self.units.kind
        self.add = arith.AddiOp if self.kind == i32 else arith.AddfOp
        self.factors = self.copies.sources(builder, matrix, buffers[:2])
        self.offsets: list[SSAValue] = list(buffers[2:])
        self.points = points
        self.sums: SSAValue | None = None
        self.parts: SSAValue | None = None
        points.special = self.special

    def emit(self, block: Index, thread: Index, unravel: Callable[[Index], list[Index]]) -> None:
        """Emit the tile of a block, for one thread. `unravel` returns the indices in the result tensor of a row of the
        product."""
        b = self.b
        self.t = MatrixThread(b, self.m, block, thread)
        self.finish_tile(*self.products(), unravel)

    def finish_tile(
        self, sums: Sequence[SSAValue], rows: Sequence[SSAValue], unravel: Callable[[Index], list[Index]]
    ) -> None:
        """Emit the operations that follow a thread's sums; `rows`: sums of its rows of the data, if the weights have a
        zero point."""
        b, t, tile = self.b, self.t, self.tile
        self.quad, row_of_thread = t.rem(t.lane, QUAD), self.row()
        spots = [*product(range(tile.row_steps), range(tile.column_steps // tile.run), range(2))]
        groups = [self.neighbours(*spot) for spot in spots]
        exchange, starts = None, list[SSAValue]()
        if tile.slices > 1:
            starts, exchange = self.starting(), Exchange(t, groups)
            exchange.write(sums)
        for number, ((step, part, half), group) in enumerate(zip(spots, groups, strict=True)):
            row = b.plus(row_of_thread, tile.step_rows * step + 8 * half)
            inside = t.below(row, self.m.rows) if self.m.rows % tile.rows else None
            mine = exchange and b.compare(b.index(t.slice), "eq", b.index(number % tile.slices))

            def store(number: int = number, group: list[int] = group, row: Index = row, place: int = part) -> None:
                total = rows[group[0] // (4 * tile.column_steps) * 4 + group[0] % 4] if rows else None
                values = [sums[n] for n in group] if exchange is None else exchange.total(number)
                if starts:
                    pairs = zip(values, group, strict=True)
                    values = [b.add(arith.AddiOp(value, starts[n])).result for value, n in pairs]
                self.store(row, 8 * place * tile.run, values, total, unravel)

            when(b, both(b, [mine, inside]), store)

    def neighbours(self, step: int, part: int, half: int) -> list[int]:
        """Return the indices, in a thread's list of sums, of the sums in neighbouring columns of one row. Instructions
        compute the tile, each 16 rows by 8 columns of it. `step` says which 16 rows, `half` which of the two rows that
        the thread has in them, and `part` which of the groups of `tile.run` times 8 columns; all count from 0."""
        first = 4 * (step * self.tile.column_steps + part * self.tile.run) + 2 * half
        return [first + 4 * n + j for n in range(self.tile.run) for j in range(2)]

    # Products

    def products(self) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        """Emit the loop over the depth in which a thread's part of the matrix product is computed. Return two lists:
        the sums of products in the thread's registers, and the sums of codes by which these are corrected, such as
        those of the thread's rows of the data if the weights have a zero point; the second may be empty."""
        b, units = self.b, self.units(self.t)
        copies = self.copies(self.t, self.factors, self.m.tile.stages - units.behind, units.fenced)
        copies.prepare()
        units.prepare()
        zero = b.constant(0, self.kind)
        copies.start()
        sums = (self.starting() if self.tile.slices == 1 else []) or [zero] * self.tile.sums
        with b.loop(0, self.m.steps, carried=[*sums, *[zero] * units.rows]) as (step, state):
            copies.arrive(step)
            state.next = units.turn(step, state.args, copies.refill)
        if self.copies.rolled:
            self.rolled()
        found = units.finish(state.results)
        return found[: self.tile.sums], found[self.tile.sums :]

    def rolled(self) -> None:
        """Mark the last emitted loop so that the assembler does not unroll it."""
        if isinstance(loop := self.b.block.last_op, scf.ForOp):
            loop.attributes[ROLLED] = UnitAttr()

    def starting(self) -> list[SSAValue]:
        """Return the initial values of a thread's sums: the corrections of its channels (bias and zero points), or an
        empty list if they are 0 or are added later because the depth is split. A matrix instruction gives a thread sums
        of two rows; the buffer of corrections holds each correction twice, in the order of the thread's registers, so
        that no register moves are needed."""
        if not self.offsets or self.parts is not None:
            return []
        if self.m.bordered:
            return self.starting_of_rows(*self.offsets)
        b, t, (offsets,), run = self.b, self.t, self.offsets, 4 * self.tile.run
        place = b.plus(b.times(b.plus(t.first_column, t.warp_column), 2), b.times(t.rem(t.lane, QUAD), run))
        found = list[SSAValue]()
        for table, part in product(range(self.tile.starts), range(self.tile.column_steps // self.tile.run)):
            start = table * 2 * self.m.packed_columns + part * QUAD * run
            vector = read(b, offsets, b.plus(place, start), run, QUAD)
            found += [b.lane(vector, n) for n in range(run)]
        self.offsets = []
        return found * (self.tile.row_steps // self.tile.starts)

    def starting_of_rows(self, offsets: SSAValue) -> list[SSAValue]:
        """Return the initial values of a thread's sums for a convolution whose windows reach outside of the images.
        There, the initial values differ from row to row of the result, too, not only from column to column: they depend
        on which taps of the row's window are outside of the image (`border`)."""
        b, t, tile, lanes = self.b, self.t, self.tile, 2 * self.tile.run
        self.offsets, found = [], list[SSAValue]()
        column = b.plus(b.plus(t.first_column, t.warp_column), b.times(t.rem(t.lane, QUAD), lanes))
        for step in range(tile.row_steps):
            rows = list[list[SSAValue]]()
            for half in range(2):
                row = b.plus(self.row(), tile.step_rows * step + 8 * half)
                place = b.plus(self.border(row), column)
                vectors = [
                    read(b, offsets, b.plus(place, first), lanes, QUAD)
                    for first in range(0, tile.columns // tile.across, QUAD * lanes)
                ]
                rows.append([b.lane(vector, lane) for vector in vectors for lane in range(lanes)])
            for first in range(0, len(rows[0]), 2):
                found += [*rows[0][first : first + 2], *rows[1][first : first + 2]]
        return found

    def row(self) -> Index:
        """Return the index of the thread's first row: the first row of the result in which it computes sums."""
        t = self.t
        return self.b.plus(self.b.plus(t.first_row, t.warp_row), t.div(t.lane, QUAD))

    def border(self, row: Index) -> Index:
        """Return the offset, in the buffer of initial sums, of those for the result pixel `row`: they depend on which
        taps of its window are outside the image."""
        b, conv, borders = self.b, self.conv, self.m.borders
        pixel = remainder(b, row, conv.out_rows * conv.out_columns)
        y, x = quotient(b, pixel, conv.out_columns), remainder(b, pixel, conv.out_columns)
        first = b.times(span_number(b, borders.row_spans, y), len(borders.column_spans))
        return b.times(b.plus(first, span_number(b, borders.column_spans, x)), self.m.packed_columns)

    # Results

    def store(
        self,
        row: Index,
        column: int,
        values: Sequence[SSAValue],
        total: SSAValue | None,
        unravel: Callable[[Index], list[Index]],
    ) -> None:
        """Apply the epilogue to `values`, neighbouring sums of a thread in row `row` of the product, and store the
        results; if the sums are only parts, since the depth is split, store the sums themselves. `column`: the number
        of columns from the thread's first column in the tile to the first of these sums."""
        b, t, lanes, m = self.b, self.t, self.m.lanes, self.m
        start = b.plus(b.plus(t.first_column, t.warp_column), b.times(self.quad, len(values)))
        start = b.plus(start, column)
        if self.parts is not None:
            for number in range(0, len(values), WORDS):
                wide = self.vector([self.offset(value, total) for value in values[number : number + WORDS]])
                b.vector_store(wide, self.parts, [t.part, row, b.plus(start, number)])
            return
        at = unravel(row)
        for number in range(0, len(values), lanes):
            place = b.plus(start, number)
            group = values[number : number + lanes]
            inside = below(b, place, m.columns) if m.columns % self.tile.columns else None
            when(b, inside, partial(self.finish, [*at, place], group, total))

    def finish(self, dims: list[Index], group: Sequence[SSAValue], total: SSAValue | None) -> None:
        """Compute and store the results for some neighbouring channels from their sums."""
        self.result(dims, self.offset(self.vector(group), total))

    def vector(self, group: Sequence[SSAValue]) -> SSAValue:
        """Return some numbers as one vector; a single one unchanged."""
        return group[0] if len(group) == 1 else self.b.packed(group)

    def offset(self, value: SSAValue, total: SSAValue | None) -> SSAValue:
        """Subtract the weights' zero point times the sum `total` of a row of the data."""
        if total is None:
            return value
        b = self.b
        scaled = b.add(arith.MuliOp(total, b.constant(wrapped(self.conv.kernel.zero_point), i32))).result
        if is_vector(value.type):
            scaled = b.broadcast(scaled, value.type.get_shape()[0])
        return b.add(arith.SubiOp(value, scaled)).result

    def result(self, dims: list[Index], value: SSAValue, border: Index = 0) -> None:
        """Add the corrections for zero points to `value`, then compute and store the kernel's results. `value` is the
        sum of products at the indices `dims`, or a vector of the sums of neighbouring channels that begins there.
        `border`: the index in the buffer of corrections at which the row's corrections begin."""
        b, nest, points = self.b, self.m.nest, self.points
        column = dims[-1]
        if self.points.lanes > 1:
            points.wide.add(b.index(column))
        self.sums = value
        for offsets in self.offsets:
            place = b.plus(border, column)
            if self.points.lanes > 1:
                points.wide.add(b.index(place))
            self.sums = b.add(self.add(self.sums, points.load(offsets, [place]))).result
        points.results(nest, dims, points.nest(nest, dims))

    def add_parts(self, row: Index, column: Index, dims: list[Index]) -> None:
        """Compute and store the results at a point, or at some neighbours, from the sums of all parts of the depth."""
        b, lanes, parts = self.b, self.points.lanes, self.parts
        assert parts is not None
        found: SSAValue | None = None
        for part in range(self.m.splits):
            at: list[Index] = [part, row, column]
            read = b.load(parts, at) if lanes == 1 else b.vector_load(parts, at, lanes)
            found = read if found is None else b.add(self.add(found, read)).result
        assert found is not None
        self.result([*dims, column], found, self.border(row) if self.m.bordered else 0)

    def special(self, points: PointEmitter, nest: Nest, dims: list[Index]) -> SSAValue | None:
        """Return the current sums plus their initial value if `nest` is the reduction that the matrix units compute;
        None for other nests."""
        if nest.op is not self.m.sums.op:
            return None
        assert self.sums is not None
        if nest.starts_at_zero:
            return self.sums
        start, lanes = nest.started[0], self.points.lanes
        assert start is not None
        wide = start if lanes == 1 else self.b.broadcast(start, lanes)
        return self.b.add(self.add(self.sums, wide)).result


def span_number(b: LoopBuilder, spans: Sequence[Span], place: Index) -> Index:
    """Emit the number of the span that contains the output row or column `place`. A span is a range of output rows, or
    of output columns, whose windows have the same taps inside the image."""
    found: Index = 0
    for start, *_ in spans[1:]:
        behind = b.compare(b.index(place), "uge", b.index(start))
        found = b.plus(found, b.select(behind, b.index(1), b.index(0)))
    return found


class Exchange:
    """Emits one thread's part in adding the sums of all slices of the depth. Each slice is summed by other warps of the
    block; after all products, the warps exchange their sums through shared memory. `groups`: the indices of the
    thread's sums, in groups of neighbours; each group is added up and completed by the threads of one slice."""

    def __init__(self, thread: MatrixThread, groups: Sequence[Sequence[int]]):
        self.t, self.b, self.groups = thread, thread.b, groups
        self.each = len(groups[0]) // VECTOR
        words = thread.tile.slices * thread.tile.rows * thread.tile.columns
        self.words = shared_view(self.b, thread.shared, i32, words)

    def place(self, slice: Index, group: int, vector: int) -> Index:
        """Return the offset, in 32-bit words of shared memory, of a vector of `VECTOR` sums: vector `vector` of the
        thread's group `group`, as summed over slice `slice` of the depth. Neighbouring threads' vectors with the same
        three numbers are contiguous."""
        b, t = self.b, self.t
        number = b.plus(b.times(slice, len(self.groups) * self.each), group * self.each + vector)
        return b.times(b.plus(b.times(number, t.tile.threads), t.number), VECTOR)

    def write(self, sums: Sequence[SSAValue]) -> None:
        """Store all sums that this thread computed for its slice of the depth in shared memory, where `total` reads
        them, between two barriers of the block."""
        b = self.b
        b.add(BarrierOp.create())
        for number, group in enumerate(self.groups):
            for vector in range(self.each):
                values = [sums[place] for place in group[vector * VECTOR :][:VECTOR]]
                b.vector_store(b.packed(values), self.words, [self.place(self.t.slice, number, vector)])
        b.add(BarrierOp.create())

    def total(self, group: int) -> list[SSAValue]:
        """Emit the additions, over all slices of the depth, of the sums whose indices are `self.groups[group]`; return
        the totals. They are read from shared memory, where `write` stored them."""
        b, found = self.b, list[SSAValue]()
        for vector in range(self.each):
            total: SSAValue | None = None
            for slice in range(self.t.tile.slices):
                part = b.vector_load(self.words, [self.place(slice, group, vector)], VECTOR)
                total = part if total is None else b.add(arith.AddiOp(total, part)).result
            assert total is not None
            found += [b.lane(total, lane) for lane in range(VECTOR)]
        return found
