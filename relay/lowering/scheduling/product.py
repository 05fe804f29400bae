"""Products of matrices that are both computed at run time: the second one is packed, then the micro-kernel is applied.

Packing copies every element once, which pays if the first matrix has more than a few rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Float32Type, IntegerType, i8, i16, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.dialects.amx import WORD
from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.indices import quotient, remainder, when
from relay.lowering.scheduling import zero_points
from relay.lowering.scheduling.affine import dims_of, kinds_of
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import Convolution, Operand, match_product
from relay.lowering.scheduling.contractions import emit_data
from relay.lowering.scheduling.epilogue import Epilogue, epilogue_of, operations_of, pick_masks
from relay.lowering.scheduling.matmul import Place
from relay.lowering.scheduling.packing import Block, all_groups
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import (
    MATRIX,
    Around,
    TileSchedule,
    data_offset,
    decide_tiles,
    dot_of,
    kernel_offset,
    takes_halves,
    takes_unsigned,
)
from relay.lowering.scheduling.strategy import Emission, Kernel, Started, moved, summed_from
from relay.lowering.scheduling.tile_products import emitter_of
from relay.lowering.scheduling.zero_points import Number
from relay.lowering.shaped import Extent, at_most, buffer_of, is_vector, shape_of, vector_of
from relay.target import LANES, CpuTarget


@dataclass(frozen=True)
class Product:
    """`out[b, m, n] += a[b, m, k] * b[b, k, n]` as a convolution of one row of m pixels; `turned`: the second matrix is
    [b, n, k]."""

    op: linalg.GenericOp
    conv: Convolution
    batch: int
    turned: bool
    epilogue: linalg.GenericOp | None = None


def recognise_product(op: linalg.GenericOp, target: CpuTarget) -> Product | None:
    """Return the product that the operation computes, if packing its second matrix pays; else None."""
    if len(op.inputs) != 2 or len(op.outputs) != 1 or not all(contiguous(v.type) for v in op.operands):
        return None
    sides, out = match_product(op.body.block), op.outputs[0]
    accumulator = buffer_of(out).element_type
    if sides is None or accumulator not in (i32, Float32Type()) or any(0 in shape_of(v) for v in op.operands):
        return None
    kinds = kinds_of(op)
    maps = [dims_of(m.data) for m in op.indexing_maps]
    if kinds == "ppr" and maps == [[0, 2], [1, 2], [0, 1]]:
        batch, turned = 1, True
    elif kinds == "pppr" and maps[0] == [0, 1, 3] and maps[1] in ([0, 2, 3], [0, 3, 2]) and maps[2] == [0, 1, 2]:
        batch, turned = shape_of(out)[0], maps[1] == [0, 2, 3]
    else:
        return None
    rows, inner, columns = shape_of(out)[-2], shape_of(op.inputs[0])[-1], shape_of(out)[-1]
    a, b = (Operand(value, *side) for value, side in zip(op.inputs, sides, strict=True))
    size = (1, 1, rows, inner, 1, rows, columns)
    conv = Convolution(a, b, out, *size, 1, 1, (1, 1), (1, 1), False, accumulator)
    codes = a.element == b.element == i8 and dot_of(conv, target) is not None
    runs = codes or conv.is_float and a.element == b.element and (not conv.halves or takes_halves(conv, target))
    least = target.costs.packed_turned_columns if turned else target.costs.packed_columns
    many = rows >= target.packed_rows(conv.is_float) and columns >= least
    return Product(op, conv, batch, turned) if runs and many else None


def started_product(fill: Operation, kernel: Kernel) -> Product | None:
    """Return the matrix product, with its epilogue, whose sums the fill sets to 0 first. Return None if the operation
    is not such a fill, or if packing the product's second matrix does not pay."""
    op = summed_from(fill, kernel)
    product = None if op is None else recognise_product(op, kernel.target)
    if product is None:
        return None
    return replace(product, epilogue=epilogue_of(product.conv.out, fill, product.op))


@dataclass(frozen=True, kw_only=True)
class ProductSchedule(TileSchedule):
    """The micro-kernel of each product, whose second matrix is packed at run time; `masks`: see `pick_masks`."""

    strategy = "product"
    masks: bool


@dataclass(frozen=True)
class PackedProduct(Started[ProductSchedule]):
    """Products of two computed matrices, the second of which is packed first."""

    record = ProductSchedule
    any_length = True
    op: linalg.GenericOp
    product: Product

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        product = started_product(op, kernel)
        return None if product is None else cls(product.op, op, product.epilogue, product)

    def decide(self, kernel: Kernel, pick: Picks) -> ProductSchedule:
        product = self.product
        around = Around(flat=(True,), epilogue=operations_of(product.epilogue), matrices=True)
        chosen = decide_tiles(pick, product.conv, [], kernel.target, around)
        packing = 2 * moved(kernel, product.conv.kernel.value)
        pick_masks(pick, kernel.target, product.conv.outputs)
        why = f"{chosen.why}, the second matrix packed at run time"
        return pick.schedule(ProductSchedule, chosen.cycles * at_most(product.batch) + packing, why)

    def emit(self, emission: Emission, schedule: ProductSchedule) -> None:
        for side in (self.product.conv.data, self.product.conv.kernel):
            emission.write(side.value)
        ProductEmitter(emission.builder, self.product, schedule).emit(emission)


class ProductEmitter:
    """Packs the second matrices, one after the other, and emits the micro-kernel for each."""

    def __init__(self, builder: LoopBuilder, product: Product, schedule: ProductSchedule):
        self.b, self.product, self.conv, self.schedule = builder, product, product.conv, schedule
        size, depth = schedule.codes_per_step, at_most(self.conv.channels)
        self.matrices = size > MATRIX
        self.group = WORD if self.matrices else size
        self.steps = -(-depth // size) * (size // self.group)
        self.left = depth % size // WORD if self.matrices and depth > size else 0
        self.width = -(-at_most(self.conv.outputs) // LANES) * LANES
        self.size = self.width * self.steps * self.group

    def emit(self, emission: Emission) -> None:
        """Emit a loop that packs the second matrix of each product of the batch, then a loop that computes the
        products."""
        b, conv, product = self.b, self.conv, self.product
        self.allocate()
        with b.loop(0, product.batch, independent=True) as (number, _):
            self.pack_matrix(number)
        constants = self.constants()
        data = emit_data(emission, conv, self.schedule)
        epilogue = Epilogue(b, conv.out, product.epilogue, conv.outputs, self.schedule.masks)
        with b.loop(0, product.batch, independent=True) as (number, _):
            outer = (number,) if len(shape_of(conv.out)) == 3 else ()
            place = self.place(number, outer, b.times(number, conv.columns))
            emitter_of(self.schedule)(b, conv, self.schedule, data, constants, epilogue, place).emit()

    def allocate(self) -> None:
        """Allocate buffers for the packed right-hand matrices of all batch elements, and for the numbers with which the
        sums of their columns start."""
        b, conv, batch = self.b, self.conv, self.product.batch
        element = i16 if self.group == 2 else buffer_of(conv.kernel.value).element_type
        self.source = b.flatten(conv.kernel.value)
        self.packed = b.add(memref.AllocOp.get(element, 64, [batch * self.size])).memref
        self.initial = b.add(memref.AllocOp.get(conv.accumulator, 64, [batch * self.width])).memref

    def pack_matrix(self, number: Index) -> None:
        """Emit code that packs the second matrix of product `number` of the batch, block of columns by block, into the
        buffer that the micro-kernel reads."""
        for group in all_groups(self.b, self.conv.outputs, self.schedule.vectors):
            group.loop(self.b, None, partial(self.pack, number))

    def constants(self) -> list[SSAValue]:
        """Return the micro-kernel's operands other than the data."""
        return [self.packed, self.initial, *([self.ones()] if self.schedule.sums_of_data else [])]

    def place(self, number: Index, outer: tuple[Index, ...], row: Index) -> Place:
        """Return where the product with packed matrix `number` of the batch starts: the given outer
        indices and row, and the offsets in the packed weights and in the initial accumulators."""
        b = self.b
        return Place(outer, row, b.times(number, self.size), b.times(number, self.width))

    def times_channels(self, factor: Number) -> SSAValue:
        """Return the factor times the size of the reduction, in every lane, as a wrapping 32-bit integer."""
        b, channels = self.b, self.conv.channels
        count: Number = at_most(channels)
        if factor != 0 and isinstance(channels, Extent):
            count = b.add(arith.IndexCastOp(b.length(channels), i32)).result
        return zero_points.spread(b, zero_points.times(b, count, factor), LANES)

    def ones(self) -> SSAValue:
        """Return a new buffer with the code 1 for each element of a row, followed by zeros."""
        b, size, count = self.b, self.steps * self.group, self.conv.channels
        buffer = b.add(memref.AllocOp.get(i8, 64, [size])).memref
        for value, first, end in ((1, 0, count), (0, b.length(count), size)):
            with b.loop(first, end) as (k, _):
                b.store(b.constant(value, i8), buffer, [k])
        return buffer

    def pack(self, number: Index, block: Block) -> None:
        """Pack a block of columns of matrix `number` as [steps][vectors][16 columns][group].

        The products of the lanes beyond the last vector's columns are never stored. The rows of the last step that
        exceed the matrix are zeros.
        """
        b, channels = self.b, self.conv.channels
        start = b.plus(b.times(number, self.size), b.times(block.channel, self.steps * self.group))
        pack = partial(self.pack_step, number, block, start)
        if isinstance(channels, Extent):
            end = b.length(channels)
            steps, left = quotient(b, end, self.group), remainder(b, end, self.group)
            with b.loop(0, steps, independent=True) as (step, _):
                pack(step, self.group)
            for count in range(1, self.group):
                when(b, b.compare(b.index(left), "eq", b.index(count)), partial(pack, steps, count))
            self.start(number, block, start)
            return
        whole, rest = divmod(channels, self.group)
        with b.loop(0, whole - self.left, independent=True) as (step, _):
            pack(step, self.group)
        if self.left:
            self.pack_row(number, block, start, whole)
        if rest:
            pack(whole, rest)
        self.start(number, block, start)

    def pack_row(self, number: Index, block: Block, start: Index, whole: int) -> None:
        """Pack the part of the second matrix that is multiplied by a tile register's last row of data, where this row
        overlaps the row before it (see `packing.rows_of_codes`). First come zeros for the steps (4 codes each) that
        both rows contain, then the last `self.left` steps of the reduction, which end at step `whole`."""
        b, size = self.b, block.vectors * LANES * self.group
        begin, ahead = whole - self.left, self.steps - whole
        with b.loop(0, ahead * size, LANES * self.group) as (at, _):
            zeros = vector_constant(b, 0, i8, LANES * self.group)
            b.vector_store(zeros, self.packed, [b.plus(b.plus(start, begin * size), at)])
        with b.loop(begin, whole, independent=True) as (step, _):
            self.pack_step(number, block, b.plus(start, ahead * size), step, self.group)

    def pack_step(self, number: Index, block: Block, start: Index, step: Index, count: int) -> None:
        """Pack the `count` rows of the second matrix that step `step` of the reduction multiplies, of one block of
        columns. `number`: the matrix in the batch; `start`: the block's offset in the packed buffer."""
        b, group, first, vectors, last = self.b, self.group, block.channel, block.vectors, block.last
        target = b.plus(start, b.times(step, vectors * LANES * group))
        if self.product.turned:
            with b.loop(0, b.plus(last, (vectors - 1) * LANES)) as (lane, _):
                place = b.plus(target, b.times(lane, group))
                if count == group:
                    self.move(number, b.plus(first, lane), step, place)
                else:
                    self.column(number, b.plus(first, lane), step, place, count)
            return
        whole = vectors if last == LANES else vectors - 1
        for v in range(whole):
            self.row(number, b.plus(first, v * LANES), step, b.plus(target, v * LANES * group), count)
        if whole < vectors:
            with b.loop(whole * LANES, b.plus(last, whole * LANES)) as (lane, _):
                self.column(number, b.plus(first, lane), step, b.plus(target, b.times(lane, group)), count)

    def move(self, number: Index, column: Index, step: Index, target: Index) -> None:
        """Copy `group` elements of column `column` to offset `target` of the packed buffer: those that step `step` of
        the reduction multiplies. `number`: the number of the second matrix in the batch. It is stored as [column, row],
        so that these elements are contiguous."""
        b, group = self.b, self.group
        at = self.at(number, step, 0, column)
        if group == 1:
            b.store(b.load(self.source, [at]), self.packed, [target])
        else:
            b.vector_store(self.taken(b.vector_load(self.source, [at], group), group), self.packed, [target])

    def at(self, number: Index, step: Index, row: int, column: Index) -> Index:
        """Return the offset of an element in the flat buffer of all second matrices of the batch: matrix `number`,
        column `column`, row `step * group + row`. Each step of the reduction multiplies `group` rows."""
        b, conv = self.b, self.conv
        k = b.plus(b.times(step, self.group), row)
        if self.product.turned:
            return b.plus(b.times(b.plus(b.times(number, conv.outputs), column), conv.channels), k)
        return b.plus(b.times(b.plus(b.times(number, conv.channels), k), conv.outputs), column)

    def row(self, number: Index, first: Index, step: Index, target: Index, count: int) -> None:
        """Pack 16 columns of the `count` rows of a matrix [k, n] that belong to one step, interleaved by row."""
        b, group = self.b, self.group
        rows = [b.vector_load(self.source, [self.at(number, step, r, first)], LANES) for r in range(count)]
        rows += [self.none(LANES)] * (group - count) if count < group else []
        while len(rows) > 1:
            half = len(rows) // 2
            rows = [self.interleave(low, high) for low, high in zip(rows[:half], rows[half:], strict=True)]
        b.vector_store(self.taken(rows[0], LANES * group), self.packed, [target])

    def interleave(self, low: SSAValue, high: SSAValue) -> SSAValue:
        """Interleave the lanes of two vectors of codes."""
        type = low.type
        assert is_vector(type)
        lanes = type.get_shape()[0]
        order = [lane for k in range(lanes) for lane in (k, lanes + k)]
        return self.b.shuffle(low, high, order)

    def column(self, number: Index, column: Index, step: Index, target: Index, count: int) -> None:
        """Pack a step's `count` elements of one column, one by one, then zeros."""
        b = self.b
        for r in range(self.group):
            code = b.load(self.source, [self.at(number, step, r, column)]) if r < count else self.none(1)
            b.store(self.taken(code), self.packed, [b.plus(target, r)])

    def none(self, lanes: int) -> SSAValue:
        """Return the code that `taken` converts to 0, so that the dot product ignores it: it pads the columns of the
        second matrix. The code is a scalar if `lanes` is 1, else all lanes of a vector have it."""
        b, kernel = self.b, self.conv.kernel
        if self.group == 2 and kernel.given is not None:
            code = b.add(arith.TruncIOp(kernel.given, i8)).result
            return code if lanes == 1 else b.broadcast(code, lanes)
        code = -128 if kernel.unsigned else 0
        if self.group == 2:
            code = (kernel.zero_point + 128) % 256 - 128
        return b.constant(code, i8) if lanes == 1 else vector_constant(b, code, i8, lanes)

    def taken(self, codes: SSAValue, lanes: int = 1) -> SSAValue:
        """Convert codes for the dot product: with groups of 4, signed codes (unsigned ones minus 128); with groups of
        2, 16-bit integers minus the zero point."""
        b, kernel = self.b, self.conv.kernel

        def constant(value: int, element: IntegerType) -> SSAValue:
            return b.constant(value, element) if lanes == 1 else vector_constant(b, value, element, lanes)

        if self.group == 2 and not self.conv.halves:
            wide = (ExtUIOp if kernel.unsigned else ExtSIOp)(codes, i16 if lanes == 1 else vector_of(i16, lanes))
            number = b.add(wide).result
            if kernel.given is not None:
                zero = b.add(arith.TruncIOp(kernel.given, i16)).result
                return b.add(arith.SubiOp(number, zero if lanes == 1 else b.broadcast(zero, lanes))).result
            if not kernel.zero_point:
                return number
            return b.add(arith.SubiOp(number, constant(kernel.zero_point, i16))).result
        if self.group == 1 or not kernel.unsigned:
            return codes
        return b.add(arith.XOrIOp(codes, constant(-128, i8))).result

    def start(self, number: Index, block: Block, packed: Index) -> None:
        """Store the initial accumulators of a block of columns: `-za * sum(b - zb)`, where b is the column of the
        second matrix and za and zb are the zero points of the two matrices; 0 if za is 0 or is subtracted elsewhere."""
        b, conv, vectors = self.b, self.conv, block.vectors
        at = b.plus(b.times(number, self.width), block.channel)
        zero = vector_constant(b, 0, conv.accumulator, LANES)
        values = [zero] * vectors
        offset = zero_points.plus(b, conv.data, data_offset(conv, self.schedule))
        if self.group > 1 and offset != 0:
            unsigned, width = self.matrices or takes_unsigned(conv, self.schedule), self.group * LANES
            ones = vector_constant(b, 1, buffer_of(self.packed).element_type, width)
            steps: Index = self.steps
            if isinstance(conv.channels, Extent):
                steps = quotient(b, b.plus(b.length(conv.channels), self.group - 1), self.group)
            with b.loop(0, steps, carried=values) as (step, sums):
                line = b.plus(packed, b.times(step, vectors * width))
                columns = [b.vector_load(self.packed, [b.plus(line, v * width)], width) for v in range(vectors)]
                sums.next = [
                    b.dot(total, ones, column, unsigned) for total, column in zip(sums.args, columns, strict=True)
                ]
            factor = zero_points.spread(b, zero_points.times(b, offset, -1), LANES)
            left = zero_points.plus(b, conv.kernel, -kernel_offset(conv)) if self.group == 4 else 0
            more = self.times_channels(zero_points.times(b, offset, left))
            scaled = [b.add(arith.MuliOp(total, factor)).result for total in sums.results]
            values = [b.add(arith.AddiOp(value, more)).result for value in scaled]
        for v, value in enumerate(values):
            b.vector_store(value, self.initial, [b.plus(at, v * LANES)])
