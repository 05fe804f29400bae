"""Attention: a product of two computed matrices, operations on each row of it, and a product of those rows with a
matrix.

For each head, keys and values are packed once; then each block of queries goes through all three steps. The scores of a
block, and the results of the row operations on them, stay in scratch memory that fits the first-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from xdsl.dialects import memref
from xdsl.dialects.builtin import i8, i16
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, minus, remainder, when
from relay.lowering.scheduling.epilogue import Access, Epilogue, operations_of, pick_masks
from relay.lowering.scheduling.in_turn import InTurnSchedule, Row, RowsInTurn, emit_stages
from relay.lowering.scheduling.matmul import MatmulEmitter
from relay.lowering.scheduling.padding import CHUNK, copy_codes
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import Around, TileSchedule, conversion_of, decide_tiles, slack
from relay.lowering.scheduling.product import Product, ProductEmitter, ProductSchedule, started_product
from relay.lowering.scheduling.sharing import itemsize
from relay.lowering.scheduling.strategy import Emission, Kernel, Scheduled, Strategy, moved
from relay.lowering.shaped import Extent, at_most, buffer_of, shape_of
from relay.target import LANES, CpuTarget


@dataclass(frozen=True, kw_only=True)
class AttentionSchedule(InTurnSchedule):
    """The decisions about an attention. `rows`: the queries of a block, whose scores are in scratch memory together;
    `products`: the micro-kernels of the scores and of the sums of values; `masks`: see `pick_masks`. The other fields
    are decisions about the row operations (see `InTurnSchedule`)."""

    strategy = "attention"
    products: tuple[TileSchedule, ...]
    masks: bool


@dataclass(frozen=True)
class Attention(Strategy[AttentionSchedule]):
    """Two matrix products of a kernel and the chain of row operations between them. `starts`: the fills that set their
    accumulators to zero; `op`: the op of the first product."""

    record = AttentionSchedule
    any_length = True
    op: linalg.GenericOp
    starts: tuple[Operation, Operation]
    products: tuple[Product, Product]
    rows: RowsInTurn

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        scores = product_of(op, kernel)
        if scores is None:
            return None
        begin = next(scheduled_after(scores.epilogue or scores.op), None)
        rows = None if begin is None else RowsInTurn.match(begin, kernel)
        fill = None if rows is None else next(scheduled_after(rows.chain[-1]), None)
        values = None if fill is None else product_of(fill, kernel)
        if rows is None or fill is None or values is None:
            return None
        found = cls(scores.op, (op, fill), (scores, values), rows)
        return found if found.fits() else None

    def fits(self) -> bool:
        """Whether nothing is scheduled between the ops, the row operations work on the rows of the first product, the
        second product sums their result, and nothing else reads the intermediate buffers."""
        following = scheduled_after(self.op)
        if any(next(following, None) is not each for each in self.covers[2:]):
            return False
        scores, values = (product.conv for product in self.products)
        shape = (self.batch, scores.columns, scores.outputs)
        if (*self.rows.outer, self.rows.size) != shape or self.products[1].batch != self.batch:
            return False
        if (values.columns, values.channels) != shape[1:] or values.data.value is not self.rows.op.outputs[0]:
            return False
        inside = set(self.covers)
        return len(self.rows.op.outputs) == 1 and all(
            isinstance(buffer.owner, memref.AllocOp) and all(use.operation in inside for use in buffer.uses)
            for buffer in self.kept
        )

    @property
    def batch(self) -> int:
        """The number of pairs of matrices, which is batches times heads."""
        return self.products[0].batch

    @property
    def scores(self) -> SSAValue:
        """The buffer that the first product and its epilogue write."""
        conv, epilogue = self.products[0].conv, self.products[0].epilogue
        return conv.out if epilogue is None else epilogue.outputs[0]

    @property
    def kept(self) -> list[SSAValue]:
        """The buffers that the attention writes, except the last one, which holds its result."""
        scores, values = self.products
        writers = [scores.op, scores.epilogue, *self.rows.chain, values.op]
        found = [buffer for op in writers if op is not None for buffer in op.outputs]
        return found if values.epilogue is not None else found[:-1]

    @property
    def covers(self) -> Sequence[Operation]:
        groups = ((fill, each.op, each.epilogue) for fill, each in zip(self.starts, self.products, strict=True))
        first, last = [[op for op in group if op is not None] for group in groups]
        return [*first, *self.rows.chain, *last]

    def decide(self, kernel: Kernel, pick: Picks) -> AttentionSchedule:
        target, chosen = kernel.target, list[TileSchedule]()
        for product, inner in zip(self.products, pick.inner("products", 2), strict=True):
            length = operations_of(product.epilogue)
            inner.given.setdefault("flat", True)
            chosen.append(decide_tiles(inner, product.conv, [], target, Around((True,), epilogue=length)))
            inner.finish()
        count = at_most(self.products[0].conv.columns)
        rows = pick("rows", range(1, count + 1), self.best_rows(chosen, target))
        turn = self.rows.decide_vectors(kernel, pick)
        packing = 2 * moved(kernel, *(product.conv.kernel.value for product in self.products))
        cycles = round(sum(each.cycles for each in chosen) * self.batch + turn.cycles + packing)
        why = f"the scores of {rows} of {count} queries at once, {self.batch} times"
        pick_masks(pick, target, *(product.conv.outputs for product in self.products))
        return pick.schedule(AttentionSchedule, cycles, why, products=tuple(chosen))

    def best_rows(self, chosen: Sequence[TileSchedule], target: CpuTarget) -> int:
        """Return the number of queries that are processed together: the largest number of whole tiles whose scores fit
        the first-level cache, but at least one tile and at most all queries."""
        conv, tile = self.products[0].conv, max(each.tile[0] for each in chosen)
        tiles = target.costs.scratch_bytes // (tile * at_most(conv.outputs) * itemsize(self.scores))
        return min(max(tiles, 1) * tile, at_most(conv.columns))

    def emit(self, emission: Emission, schedule: AttentionSchedule) -> None:
        for product in self.products:
            for side in (product.conv.data, product.conv.kernel):
                emission.write(side.value)
        AttentionEmitter(emission.builder, self, schedule).emit()


def product_of(fill: Operation, kernel: Kernel) -> Product | None:
    """Return the batched matrix product, not of bf16, whose sums the operation `fill` initializes; None if there is
    none."""
    product = started_product(fill, kernel)
    if product is None or product.conv.halves or len(shape_of(product.conv.out)) != 3:
        return None
    return product


def scheduled_after(op: Operation) -> Iterator[Operation]:
    """Yield the fills, copies and generics after an operation in its block."""
    while (following := op.next_op) is not None:
        op = following
        if isinstance(op, Scheduled):
            yield op


class AttentionEmitter:
    """Emits the loops over heads and blocks of queries. `room`: for each intermediate buffer, scratch memory for one
    block of queries of each head."""

    def __init__(self, builder: LoopBuilder, attention: Attention, schedule: AttentionSchedule):
        self.b, self.attention, self.schedule = builder, attention, schedule
        self.emitters = [
            ProductEmitter(builder, product, ProductSchedule(**vars(tiles), masks=schedule.masks))
            for product, tiles in zip(attention.products, schedule.products, strict=True)
        ]
        conv = attention.products[0].conv
        self.count, self.keys = at_most(conv.columns), at_most(conv.outputs)
        self.weights = attention.rows.op.outputs[0]
        self.room: dict[SSAValue, SSAValue] = {}
        self.copies: list[SSAValue | None] = []
        self.constants: list[list[SSAValue]] = []

    def emit(self) -> None:
        b, rows = self.b, self.schedule.rows
        for emitter in self.emitters:
            emitter.allocate()
        self.allocate()
        self.copies = [self.copied(emitter) for emitter in self.emitters]
        self.constants = [emitter.constants() for emitter in self.emitters]
        with b.loop(0, self.attention.batch, independent=True) as (head, _):
            for emitter in self.emitters:
                emitter.pack_matrix(head)
            if isinstance(count := self.attention.products[0].conv.columns, Extent):
                self.open_blocks(head, b.length(count))
                return
            whole, rest = divmod(self.count, rows)
            with b.loop(0, whole + bool(rest)) as (block, _):
                body = [lambda size=size: self.block(head, b.times(block, rows), size) for size in (rows, rest)]
                when(b, below(b, block, whole) if rest else None, *body)

    def open_blocks(self, head: Index, end: Index) -> None:
        """Emit all blocks of queries of a head, the last one partial, for a number of queries `end` that is known only
        at run time."""
        b, rows = self.b, self.schedule.rows
        whole = minus(b, end, remainder(b, end, rows))
        with b.loop(0, whole, rows) as (start, _):
            self.block(head, start, rows)
        left = minus(b, end, whole)
        when(b, below(b, 0, left), lambda: self.block(head, whole, left))

    def allocate(self) -> None:
        """Allocate scratch memory for a block of rows; the result of an operation reuses the memory of an operand that
        no later operation reads."""
        b, attention = self.b, self.attention
        size, chain = attention.batch * self.schedule.rows * self.keys + CHUNK, attention.rows.chain
        last = {value: number for number, op in enumerate(chain) for value in op.operands}

        def room_of(buffer: SSAValue, number: int, op: Operation | None) -> SSAValue:
            element = buffer_of(buffer).element_type
            for value in () if op is None or self.keys % LANES else op.operands:
                if value in self.room and last[value] == number and buffer_of(value).element_type == element:
                    return self.room[value]
            return b.add(memref.AllocOp.get(element, 64, [size])).memref

        self.room[attention.scores] = room_of(attention.scores, 0, None)
        for number, op in enumerate(chain):
            for buffer in op.outputs:
                if len(shape_of(buffer)) == 3 and buffer not in self.room:
                    self.room[buffer] = room_of(buffer, number, op)

    def copied(self, emitter: ProductEmitter) -> SSAValue | None:
        """Allocate memory for a copy of a block of a product's data, if the micro-kernel takes the data in another
        form; else None."""
        schedule, conv = emitter.schedule, emitter.conv
        if schedule.sign_flip == "none" and not schedule.widen:
            if not slack(conv, schedule) or conv.data.value is self.weights:
                return None
        size = self.attention.batch * self.schedule.rows * at_most(conv.channels) + CHUNK
        return self.b.add(memref.AllocOp.get(i16 if schedule.widen else i8, 64, [size])).memref

    def block(self, head: Index, start: Index, count: Index) -> None:
        """Emit `count` queries of a head, starting at query `start`."""
        b, rows = self.b, self.schedule.rows
        queries = b.flatten(self.attention.products[0].conv.data.value)
        row = b.plus(b.times(head, self.count), start)
        self.product(0, head, start, count, queries, row)

        def row_of(x: Index) -> Row:
            kept = {
                buffer: (room, b.times(b.plus(b.times(head, rows), x), self.keys)) for buffer, room in self.room.items()
            }
            return Row(b, self.attention.rows, self.schedule, [head, b.plus(start, x)], kept)

        emit_stages(b, self.attention.rows, self.schedule, count, row_of)
        self.product(1, head, start, count, self.room[self.weights], b.times(head, rows))

    def product(self, number: int, head: Index, start: Index, count: Index, data: SSAValue, row: Index) -> None:
        """Emit one of the two products (`number` 0: scores, 1: sums of values) for `count` rows of `data`, from row
        `row` on."""
        b, emitter = self.b, self.emitters[number]
        conv, schedule = emitter.conv, emitter.schedule
        if (copy := self.copies[number]) is not None:
            first = b.times(head, self.schedule.rows)
            conversion = conversion_of(conv, schedule)
            read, write = b.times(row, conv.channels), b.times(first, conv.channels)
            if isinstance(conv.channels, Extent):
                with b.loop(0, count) as (line, _):
                    ahead = b.times(line, conv.channels)
                    places = b.plus(read, ahead), copy, b.plus(write, ahead)
                    copy_codes(b, data, *places, conv.channels, conversion)
            else:
                copy_codes(b, data, read, copy, write, b.times(count, conv.channels), conversion)
            data, row = copy, first
        written = self.room[self.attention.scores] if number == 0 else None
        epilogue = OfBlock(emitter, start, written, self.schedule.rows)
        part, place = conv, emitter.place(head, (head,), row)
        if isinstance(count, int):
            part = replace(conv, columns=count, out_columns=count)
        length = None if isinstance(count, int) else count
        MatmulEmitter(b, part, schedule, data, self.constants[number], epilogue, place, count=length).emit()


class OfBlock(Epilogue):
    """The epilogue of a product of a block of rows that starts at row `start`. The result is stored in scratch memory
    `room`, which has `rows` rows for each head; if `room` is None, in the result's own buffer."""

    def __init__(self, emitter: ProductEmitter, start: Index, room: SSAValue | None, rows: int):
        conv, masks = emitter.conv, emitter.schedule.masks
        super().__init__(emitter.b, conv.out, emitter.product.epilogue, conv.outputs, masks)
        self.start, self.room, self.rows = start, room, rows
        if room is not None:
            self.outputs = [replace(access, value=room) for access in self.outputs]

    def place(self, access: Access, dims: Sequence[Index]) -> list[Index]:
        b, (head, row, channel) = self.builder, dims
        if self.room is not None and access.value is self.room:
            line = b.plus(b.times(head, self.rows), row)
            return [b.plus(b.times(line, self.channels), channel)]
        return super().place(access, [head, b.plus(self.start, row), channel])
