"""Products by a GPU's matrix units: one block of threads computes a tile of the result.

Layouts of the lanes: PTX ISA, "Matrix Fragments for mma.m16n8k32".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import nvgpu
from relay.dialects.attributes import to_numpy
from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.dots import ONES, wrapped
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.matrix_copies import CopyEmitter
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.shared_memory import align, shared_memory
from relay.lowering.indices import when
from relay.lowering.shaped import is_vector

WORDS = 4
"""Sums of a part of the depth that are written at once."""
TAP = 32
"""Bytes of a row that one product takes."""


class MatrixEmitter(CopyEmitter):
    """Emits what one thread does with codes."""

    kind: Attribute = i32
    """The type of the sums."""
    add: type[arith.AddiOp | arith.AddfOp] = arith.AddiOp

    def __init__(self, builder: LoopBuilder, matrix: Matrix, points: PointEmitter, buffers: Sequence[SSAValue]):
        super().__init__(builder, matrix, buffers)
        self.points = points
        self.sums: SSAValue | None = None
        self.parts: SSAValue | None = None
        points.special = self.special

    def emit(self, block: Index, thread: Index, unravel: Callable[[Index], list[Index]]) -> None:
        """The tile of a block. `unravel`: the point of the result that a row is."""
        b, tile = self.b, self.tile
        across = self.m.packed_columns // tile.columns
        tiles = across * -(-self.m.rows // tile.rows)
        self.part = self.div(block, tiles) if self.m.splits > 1 else 0
        block = self.rem(block, tiles) if self.m.splits > 1 else block
        self.first_row = b.times(self.div(block, across), tile.rows)
        self.first_column = b.times(self.rem(block, across), tile.columns)
        lane, warp = self.rem(thread, 32), self.div(thread, 32)
        self.warp_row = b.times(self.rem(warp, tile.down), tile.rows // tile.down)
        self.warp_column = b.times(self.div(warp, tile.down), tile.columns // tile.across)
        self.share(shared_memory(b, self.m.shared_bytes))
        sums, rows = self.products(thread, lane)
        group, self.quad = self.div(lane, 4), self.rem(lane, 4)
        for step, part, half in product(range(tile.row_steps), range(tile.column_steps // tile.run), range(2)):
            row = b.plus(b.plus(b.plus(self.first_row, self.warp_row), group), 16 * step + 8 * half)
            first = 4 * (step * tile.column_steps + part * tile.run) + 2 * half
            values = [sums[first + 4 * n + j] for n in range(tile.run) for j in range(2)]
            total = rows[4 * step + 2 * half] if rows else None
            store = partial(self.store, row, 8 * part * tile.run, values, total, unravel)
            when(b, self.below(row, self.m.rows) if self.m.rows % tile.rows else None, store)

    # Products

    def products(self, thread: Index, lane: Index) -> tuple[list[SSAValue], list[SSAValue]]:
        """The sums of a thread, and where the weights have a zero point the sums of its rows of the data."""
        b, tile, stages, steps = self.b, self.tile, self.m.stages, self.m.steps
        self.prepare(thread)
        self.sources(lane)
        zero = b.constant(0, self.kind)
        self.issue_first(stages - 1)
        count = 4 * tile.row_steps * tile.column_steps
        more = 4 * tile.row_steps if self.conv.kernel.zero_point else 0
        with b.loop(0, steps, carried=[*(self.starting(lane) or [zero] * count), *[zero] * more]) as (step, state):
            last = b.add(nvgpu.DeviceAsyncCreateGroupOp()).asyncToken
            b.add(nvgpu.DeviceAsyncWaitOp(last, stages - 2))
            b.add(BarrierOp.create())
            self.issue_later(step, stages - 1)
            state.next = self.multiply(b.times(self.rem(step, stages), tile.stage_bytes), state.args)
        return state.results[:count], state.results[count:]

    def starting(self, lane: Index) -> list[SSAValue]:
        """What the sums start from, if that is not 0: what they are off by, where nothing adds parts later."""
        if not self.offsets or self.parts is not None:
            return []
        b, (offsets,), run = self.b, self.offsets, 2 * self.tile.run
        column = b.plus(b.plus(self.first_column, self.warp_column), b.times(self.rem(lane, 4), run))
        found = list[SSAValue]()
        for number in range(0, 2 * self.tile.column_steps, WORDS):
            four = b.vector_load(offsets, [b.plus(column, number // run * 4 * run + number % run)], WORDS)
            align(four.owner)
            found += [b.lane(four, n) for n in range(WORDS)]
        self.offsets = []
        return [
            found[2 * n + j]
            for _ in range(self.tile.row_steps)
            for n in range(self.tile.column_steps)
            for j in (0, 1) * 2
        ]

    def sources(self, lane: Index) -> None:
        """Where in a stage the rows are that the lane gives for each half of the depth."""
        b, tile = self.b, self.tile
        row = b.plus(self.warp_row, self.rem(lane, 16))
        column = b.plus(self.warp_column, b.plus(self.rem(lane, 8), b.times(self.div(lane, 16), 8)))
        self.left = [self.place(row, b.plus(self.div(lane, 16), 2 * half)) for half in range(tile.depth // TAP)]
        right = self.rem(self.div(lane, 8), 2)
        self.right = [
            b.plus(self.place(column, b.plus(right, 2 * half)), tile.rows * tile.depth)
            for half in range(tile.depth // TAP)
        ]

    def multiply(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """All products of a stage added to the sums."""
        b, tile, found = self.b, self.tile, list(sums)
        for half in range(tile.depth // TAP):
            left = b.plus(stage, self.left[half])
            a = [self.factors(self.matrices(b.plus(left, 16 * tile.depth * n))) for n in range(tile.row_steps)]
            self.add_products(a, b.plus(stage, self.right[half]), found)
        return found

    def add_products(self, a: Sequence[Sequence[SSAValue]], right: Index, sums: list[SSAValue]) -> None:
        """Add products of all rows by all columns, whose weights start at `right`, to sums, and each row's own where
        weights have a zero point."""
        b, apart = self.b, 16 // self.m.format.fold * self.tile.depth
        pairs = [self.matrices(b.plus(right, apart * n)) for n in range(self.tile.column_steps // 2)]
        w = [pair[part : part + 2] for pair in pairs for part in (0, 2)]
        for row, factors in enumerate(a):
            for column, weights in enumerate(w):
                at = 4 * (row * len(w) + column)
                sums[at : at + 4] = self.product(factors, weights, sums[at : at + 4])
            if self.conv.kernel.zero_point:
                at = 4 * (len(a) * len(w) + row)
                sums[at : at + 4] = self.product(factors, [b.constant(ONES, i32)] * 2, sums[at : at + 4])

    def factors(self, words: list[SSAValue]) -> list[SSAValue]:
        """Words of the data as they are multiplied."""
        return words

    def matrices(self, at: Index) -> list[SSAValue]:
        """Four words of matrices in shared memory."""
        b = self.b
        read = b.add(nvgpu.LdMatrixOp(self.shared, [b.index(at)])).res
        return [self.word(read, number) for number in range(nvgpu.MATRICES)]

    def word(self, matrices: SSAValue, number: int) -> SSAValue:
        """Four bytes of the lane as one number."""
        return self.b.lane(self.b.bitcast(self.b.lane(matrices, number), i32, 1), 0)

    def product(self, a: Sequence[SSAValue], w: Sequence[SSAValue], sums: Sequence[SSAValue]) -> list[SSAValue]:
        """16 x 8 sums of 32 products more."""
        signs = [("u8" if side.unsigned else "s8") for side in (self.conv.data, self.conv.kernel)]
        name = signs[0] if signs[0] == signs[1] else ".".join(signs)
        return self.four(f"llvm.nvvm.mma.m16n8k32.row.col.{name}", [*a, *w, *sums])

    def four(self, intrinsic: str, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """The sums that an instruction of matrix units gives."""
        four = llvm.LLVMStructType.from_type_list([self.kind] * 4)
        return self.b.fields(self.b.add(llvm.CallIntrinsicOp(intrinsic, operands, [four])).results[0])

    # Results

    def store(
        self,
        row: Index,
        column: int,
        values: Sequence[SSAValue],
        total: SSAValue | None,
        unravel: Callable[[Index], list[Index]],
    ) -> None:
        """Everything that follows neighbouring sums of a thread in one row, from this column of its warp's on, and its
        results to memory; of a part of the depth, its sums."""
        b, lanes, m = self.b, self.m.lanes, self.m
        start = b.plus(b.plus(self.first_column, self.warp_column), b.times(self.quad, len(values)))
        start = b.plus(start, column)
        if self.parts is not None:
            for number in range(0, len(values), WORDS):
                wide = self.vector([self.offset(value, total) for value in values[number : number + WORDS]])
                b.vector_store(wide, self.parts, [self.part, row, b.plus(start, number)])
                align(b.block.last_op)
            return
        at = unravel(row)
        for number in range(0, len(values), lanes):
            place = b.plus(start, number)
            group = values[number : number + lanes]
            inside = self.below(place, m.columns) if m.columns % self.tile.columns else None
            when(b, inside, partial(self.finish, [*at, place], group, total))

    def finish(self, dims: list[Index], group: Sequence[SSAValue], total: SSAValue | None) -> None:
        """The results for some neighbouring channels from their sums."""
        self.result(dims, self.offset(self.vector(group), total))

    def vector(self, group: Sequence[SSAValue]) -> SSAValue:
        """Some numbers as one vector; a single one as it is."""
        return group[0] if len(group) == 1 else self.b.packed(group)

    def offset(self, value: SSAValue, total: SSAValue | None) -> SSAValue:
        """Sums less what the weights' zero point makes of the sum of a row."""
        if total is None:
            return value
        b = self.b
        scaled = b.add(arith.MuliOp(total, b.constant(wrapped(self.conv.kernel.zero_point), i32))).result
        if is_vector(value.type):
            scaled = b.broadcast(scaled, value.type.get_shape()[0])
        return b.add(arith.SubiOp(value, scaled)).result

    def result(self, dims: list[Index], value: SSAValue) -> None:
        """The results at a point, or some neighbours, whose sums are known."""
        b, nest, points = self.b, self.m.nest, self.points
        column = dims[-1]
        if self.points.lanes > 1:
            points.wide.add(b.index(column))
        self.sums = value
        for offsets in self.offsets:
            self.sums = b.add(self.add(self.sums, points.load(offsets, [column]))).result
        results = points.nest(nest, dims)
        for result, output, map in zip(results, nest.op.outputs, nest.maps[len(nest.op.inputs) :], strict=True):
            points.store(result, output, [b.apply(r, dims) for r in map.results])

    def add_parts(self, row: Index, column: Index, dims: list[Index]) -> None:
        """The results at a point, or some neighbours, from the sums of all parts of the depth."""
        b, lanes, parts = self.b, self.points.lanes, self.parts
        assert parts is not None
        found: SSAValue | None = None
        for part in range(self.m.splits):
            at: list[Index] = [part, row, column]
            read = b.load(parts, at) if lanes == 1 else b.vector_load(parts, at, lanes)
            if lanes > 1:
                align(read.owner, 4 * lanes)
            found = read if found is None else b.add(self.add(found, read)).result
        assert found is not None
        self.result([*dims, column], found)

    def special(self, points: PointEmitter, nest: Nest, dims: list[Index]) -> SSAValue | None:
        """The sums, where they are asked for."""
        if nest.op is not self.m.sums.op:
            return None
        assert self.sums is not None
        start = nest.started[0]
        assert start is not None
        if isinstance(start.owner, arith.ConstantOp) and not to_numpy(start.owner.value).any():
            return self.sums
        lanes = self.points.lanes
        wide = start if lanes == 1 else self.b.broadcast(start, lanes)
        return self.b.add(self.add(self.sums, wide)).result
