"""Products of floats by weights of few bits, in blocks that have a scale and a zero point each.

A word of 32 bits holds 16, 8 or 4 codes of a channel; the words of 16 channels lie side by side. The data of a block
are multiplied by codes, and their sum by the scale: `scale * (sum of x * code) - scale * zero_point * (sum of x)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.dialects.arith import SIToFPOp
from relay.dialects.attributes import Array, to_numpy
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import coefficients, dims_of
from relay.lowering.scheduling.arguments import argument_of
from relay.lowering.scheduling.body import dense_vector, vector_constant
from relay.lowering.scheduling.epilogue import Epilogue, epilogue_of, pick_masks
from relay.lowering.scheduling.loops import over
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, started_by
from relay.lowering.shaped import is_buffer, shape_of, vector_of
from relay.target import LANES

BODY = ["extui", "extui", "subi", "sitofp", "mulf", "mulf", "addf", "yield"]
"""The operations of `acc + x * ((code - zero point) * scale)`."""
MAPS = [[1, 2, 3], [1, 2], [1, 2], [0, 1]]
"""The dimensions (row, channel, block, place) of codes, scales, zero points and sums."""
LARGEST = (16, 8)
"""Rows and vectors of a tile, at most."""
TABLE = "llvm.x86.avx512.permvar.sf.512"
"""Reads a table of 16 floats by the last 4 bits of each lane."""


@dataclass(frozen=True, kw_only=True)
class WeightOnlySchedule(OpSchedule):
    """`tile`: rows, and vectors of 16 channels, whose sums are in registers; `table`: codes become floats by a table of
    16 numbers, else by conversions; `fused`: products are added without being rounded; `masks`: as in other products.
    """

    strategy = "weight_only"
    tile: tuple[int, int]
    table: bool
    fused: bool
    masks: bool


@dataclass(frozen=True)
class WeightOnly(Strategy[WeightOnlySchedule]):
    """A product by such weights, which are constants in all calls, and the elementwise operation after it. `given`:
    codes [channel, block, place], scales and zero points [channel, block] of each call."""

    record = WeightOnlySchedule
    op: linalg.GenericOp
    fill: linalg.FillOp
    epilogue: linalg.GenericOp | None
    arguments: Sequence[BlockArgument]
    given: Sequence[tuple[Array, Array, Array]]

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        started = started_by(op) if isinstance(op, linalg.FillOp) else None
        if started is None or started[1] != 0 or not kernel.given.calls or not is_such(product := started[0]):
            return None
        found = [argument_of(value) for value in product.inputs[1:]]
        arguments = [each for each in found if each is not None and kernel.given.constant(each)]
        if len(arguments) < 3:
            return None
        columns = [
            [to_numpy(constant.value).reshape(shape_of(value)) for constant in kernel.given.constants_of(argument)]
            for argument, value in zip(arguments, product.inputs[1:], strict=True)
        ]
        codes, scales, zeros = columns
        given = [(c.view(np.uint8), s, z.view(np.uint8)) for c, s, z in zip(codes, scales, zeros, strict=True)]
        assert isinstance(op, linalg.FillOp)
        epilogue = epilogue_of(product.outputs[0], op, product)
        found = cls(product, op, epilogue, arguments, given)
        return found if found.block % (32 // found.bits) == 0 else None

    @property
    def covers(self) -> Sequence[Operation]:
        return (self.fill, self.op, *([] if self.epilogue is None else [self.epilogue]))

    @property
    def block(self) -> int:
        """Weights that share a scale."""
        return self.given[0][0].shape[2]

    @property
    def bits(self) -> int:
        """Of a code: the fewest that hold those of all calls."""
        largest = max(int(codes.max(initial=0)) for codes, _, _ in self.given)
        return next(bits for bits in (2, 4, 8) if largest < 1 << bits)

    def decide(self, kernel: Kernel, pick: Picks) -> WeightOnlySchedule:
        rows, channels = shape_of(self.op.outputs[0])
        vectors = -(-channels // LANES)
        wide = kernel.target.whole_vectors
        tile = (1, 4) if rows == 1 else (8, 1) if wide else (4, 1)
        best = min(tile[0], rows), min(tile[1], vectors)
        tile = pick("tile", Tuples(*(range(1, 1 + most) for most in LARGEST)), best)
        can = wide and self.bits <= 4
        table = pick("table", (True, False) if can else (False,), can)
        fused = pick("fused", (kernel.target.fuses,), kernel.target.fuses)
        masks = pick_masks(pick, kernel.target, channels)
        steps = rows * channels * self.block * self.given[0][0].shape[1] / LANES
        cycles = round(steps * (1 + (1.5 if table else 3) / tile[0]) / (1 if wide else 0.5))
        why = f"codes of {self.bits} bits become floats in registers, for {tile[0]} rows at once"
        return WeightOnlySchedule(
            tile=(tile[0], tile[1]), table=table, fused=fused, masks=masks, cycles=cycles, why=why
        )

    def emit(self, emission: Emission, schedule: WeightOnlySchedule) -> None:
        data = self.op.inputs[0]
        emission.write(data)
        middle = 1 << (self.bits - 1) if schedule.table else 0
        packed = [pack(*each, self.bits, middle) for each in self.given]
        shifted = any(shifts.any() for *_, shifts in packed)
        buffers: list[SSAValue] = []
        for number, argument in enumerate(self.arguments):
            columns = [each[number : number + 1] if number < 2 or shifted else () for each in packed]
            buffers += emission.given.replace(argument, emission.given.constants_of(argument), columns)
        for value, argument in zip(self.op.inputs[1:], self.arguments, strict=True):
            while value is not argument:
                assert isinstance(view := value.owner, memref.CollapseShapeOp | memref.ExpandShapeOp)
                view.detach()
                emission.done.add(view)
                value = view.src
        out = self.op.outputs[0]
        epilogue = Epilogue(emission.builder, out, self.epilogue, shape_of(out)[1], schedule.masks)
        WeightOnlyEmitter(emission.builder, data, buffers, epilogue, schedule, self.bits).emit()


def is_such(op: linalg.GenericOp) -> bool:
    """Whether an operation is what `relay.nn.weight_only_dense` becomes."""
    types = [getattr(value.type, "element_type", None) for value in op.operands]
    if types != [f32, i8, f32, i8, f32] or [inner.name.split(".")[1] for inner in op.body.block.ops] != BODY:
        return False
    first, *maps = [map.data for map in op.indexing_maps]
    if [dims_of(map) for map in maps] != MAPS or not all(is_buffer(value.type) for value in op.operands):
        return False
    block = shape_of(op.inputs[1])[2]
    columns = [coefficients(result) for result in first.results]
    x, code, scale, zero, total = op.body.block.args
    wide, low, step, number, weight, product, result, _ = op.body.block.ops
    wired = [[code], [zero], [wide.results[0], low.results[0]], [step.results[0]], [number.results[0], scale],
             [x, weight.results[0]], [total, product.results[0]]]  # fmt: skip
    each = (wide, low, step, number, weight, product, result)
    return columns == [({0: 1}, 0), ({2: block, 3: 1}, 0)] and [[*inner.operands] for inner in each] == wired


def pack(codes: Array, scales: Array, zeros: Array, bits: int, middle: int) -> tuple[Array, Array, Array]:
    """Words [vector of channels, word of a channel, lane], the lowest bits first in a channel's order; scales, and what
    the sum of a block's data is multiplied by, [vector, block, lane]. Codes count from `middle`."""
    channels, blocks, _ = codes.shape
    vectors, per = -(-channels // LANES), 32 // bits
    room = (0, vectors * LANES - channels)
    shifts = np.arange(per, dtype=np.uint32) * bits
    words = np.bitwise_or.reduce(codes.reshape(channels, -1, per).astype(np.uint32) << shifts, axis=2)
    lanes = np.pad(words, (room, (0, 0))).reshape(vectors, LANES, -1).swapaxes(1, 2)

    def by_lane(numbers: Array) -> Array:
        wide = np.pad(numbers.astype(np.float32), (room, (0, 0)))
        return np.ascontiguousarray(wide.reshape(vectors, LANES, blocks).swapaxes(1, 2)).reshape(-1)

    offsets = -scales * (zeros.astype(np.float32) - middle)
    return np.ascontiguousarray(lanes).reshape(-1).view(np.int32), by_lane(scales), by_lane(offsets)


class WeightOnlyEmitter:
    """Emits one product with its epilogue. `constants`: words, scales, and what sums of data are multiplied by where
    that is not 0."""

    def __init__(
        self,
        builder: LoopBuilder,
        data: SSAValue,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        schedule: WeightOnlySchedule,
        bits: int,
    ):
        self.b, self.data, self.epilogue, self.schedule, self.bits = builder, data, epilogue, schedule, bits
        self.words, self.scales, *shifts = constants
        self.shifts = shifts[0] if shifts else None
        self.rows, self.depth = shape_of(data)
        self.vectors = -(-epilogue.channels // LANES)
        self.blocks = shape_of(self.scales)[0] // (self.vectors * LANES)
        self.block = self.depth // self.blocks
        self.per = 32 // bits
        middle = 1 << (bits - 1)
        numbers = [float(code % (1 << bits) - middle) for code in range(LANES)]
        self.table = builder.constant_attr(dense_vector(numbers, f32), vector_of(f32, LANES))

    def emit(self) -> None:
        b = self.b
        if self.shifts is None:
            over(b, self.rows, self.schedule.tile[0], lambda row, rows: self.channels(row, rows, None))
            return
        sums = b.add(memref.AllocOp.get(f32, 64, [self.rows, self.blocks])).memref
        with b.loop(0, self.rows) as (row, _), b.loop(0, self.blocks) as (block, _):
            start = b.times(block, self.block)
            with b.loop(0, self.block, carried=[b.constant(0.0, f32)]) as (k, state):
                x = b.load(self.data, [row, b.plus(start, k)])
                state.next = [b.add(arith.AddfOp(state.args[0], x)).result]
            b.store(state.results[0], sums, [row, block])
        over(b, self.rows, self.schedule.tile[0], lambda row, rows: self.channels(row, rows, sums))

    def channels(self, row: Index, rows: int, sums: SSAValue | None) -> None:
        """All channels of a tile of rows."""
        b, vectors = self.b, self.schedule.tile[1]
        whole = self.epilogue.channels // LANES
        over(b, whole, vectors, lambda v, count: self.tile(row, rows, v, count, LANES, sums), independent=True)
        if rest := self.epilogue.channels % LANES:
            self.tile(row, rows, whole, 1, rest, sums)

    def tile(self, row: Index, rows: int, first: Index, vectors: int, lanes: int, sums: SSAValue | None) -> None:
        """A tile: its totals over all blocks, then the epilogue."""
        b, zero = self.b, vector_constant(self.b, 0.0, f32, LANES)
        per_block = self.block // self.per
        with b.loop(0, self.blocks, carried=[zero] * (rows * vectors)) as (block, blocks):
            with b.loop(0, per_block, carried=[zero] * (rows * vectors)) as (word, steps):
                at = b.plus(b.times(block, per_block), word)
                steps.next = self.step(steps.args, row, rows, first, vectors, at)
            totals: list[SSAValue] = []
            places = [b.times(b.plus(b.times(b.plus(first, v), self.blocks), block), LANES) for v in range(vectors)]
            scales = [b.vector_load(self.scales, [place], LANES) for place in places]
            shifts = [] if self.shifts is None else [b.vector_load(self.shifts, [place], LANES) for place in places]
            for r in range(rows):
                sum = None if sums is None else b.broadcast(b.load(sums, [b.plus(row, r), block]), LANES)
                for v in range(vectors):
                    total = self.added(blocks.args[r * vectors + v], steps.results[r * vectors + v], scales[v])
                    totals.append(total if sum is None else self.added(total, sum, shifts[v]))
            blocks.next = totals
        for r in range(rows):
            for v in range(vectors):
                channel = b.times(b.plus(first, v), LANES)
                self.epilogue.apply(blocks.results[r * vectors + v], [b.plus(row, r)], channel, lanes)

    def step(
        self, sums: Sequence[SSAValue], row: Index, rows: int, first: Index, vectors: int, at: Index
    ) -> list[SSAValue]:
        """The sums with the products of one word of each channel: word `at` of the channel."""
        b, found = self.b, list(sums)
        apart = self.depth // self.per * LANES
        places = [b.plus(b.times(b.plus(first, v), apart), b.times(at, LANES)) for v in range(vectors)]
        words = [b.vector_load(self.words, [place], LANES) for place in places]
        column = b.times(at, self.per)
        for place in range(self.per):
            numbers = [self.number(word, place) for word in words]
            for r in range(rows):
                x = b.broadcast(b.load(self.data, [b.plus(row, r), b.plus(column, place)]), LANES)
                for v, number in enumerate(numbers):
                    found[r * vectors + v] = self.added(found[r * vectors + v], number, x)
        return found

    def number(self, words: SSAValue, place: int) -> SSAValue:
        """The codes at a place of 16 words, as floats."""
        b = self.b
        if place:
            words = b.add(arith.ShRUIOp(words, vector_constant(b, place * self.bits, i32, LANES))).result
        if self.schedule.table:
            return b.intrinsic(TABLE, [self.table, words], vector_of(f32, LANES))
        if place < self.per - 1:
            words = b.add(arith.AndIOp(words, vector_constant(b, (1 << self.bits) - 1, i32, LANES))).result
        return b.add(SIToFPOp(words, vector_of(f32, LANES))).result

    def added(self, total: SSAValue, a: SSAValue, c: SSAValue) -> SSAValue:
        """The total with a product more."""
        if self.schedule.fused:
            return self.b.add(vector.FMAOp(a, c, total)).results[0]
        return self.b.add(arith.AddfOp(total, self.b.add(arith.MulfOp(a, c)).result)).result
