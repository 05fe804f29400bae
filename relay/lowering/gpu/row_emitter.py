"""Emits a thread's part of operations on a row that its team shares: elements stay in registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.points import PointEmitter
from relay.lowering.gpu.teams import SUMS, Members, join_of
from relay.lowering.indices import both, limited, when
from relay.lowering.scheduling.in_turn import Chain, Scheduled, is_number, is_reduction
from relay.lowering.scheduling.reduction import in_pairs
from relay.lowering.shaped import is_vector


def is_read_elsewhere(buffer: SSAValue, chain: Chain) -> bool:
    """Whether operations outside the chain use a buffer that the chain writes."""
    ours = set[Operation](chain.ops)
    return not isinstance(buffer.owner, memref.AllocOp) or any(use.operation not in ours for use in buffer.uses)


def pieces(size: int, lanes: int, team: int) -> int:
    """Return the largest number of vectors that a thread processes if `team` threads divide a row of `size` elements
    into vectors of `lanes` consecutive elements."""
    return -(-size // (lanes * team))


@dataclass(frozen=True)
class Piece:
    """A vector of adjacent row elements that one thread processes. `column`: the index of its first element. `inside`:
    an i1 that is true if the vector lies inside the row; None if it always does. A vector outside the row is replaced
    by the last vector of the row."""

    column: Index
    inside: SSAValue | None


class RowEmitter:
    """Emits the operations of `chain` on one row, for one thread of the team that computes the row. `numbers`: the
    row's value of each buffer with one value per row; `kept`: the thread's elements of each buffer of rows; `given`:
    the initial content of `kept`, for buffers that are not in memory. With `given`, results are kept in registers
    instead of being stored."""

    def __init__(
        self,
        builder: LoopBuilder,
        chain: Chain,
        points: PointEmitter,
        members: Members,
        dims: Sequence[Index],
        inside: SSAValue | None,
        given: Mapping[SSAValue, list[SSAValue]] = MappingProxyType({}),
    ):
        self.b, self.chain, self.points, self.members, self.dims, self.inside = (
            builder, chain, points, members, dims, inside,
        )  # fmt: skip
        self.pieces = [*self.find_pieces()]
        self.numbers: dict[SSAValue, SSAValue] = {}
        self.kept = {(buffer, ""): values for buffer, values in given.items()}
        self.in_memory = not given

    def find_pieces(self) -> Iterator[Piece]:
        """Yield the thread's parts of the row."""
        b, lanes, team = self.b, self.points.lanes, self.members.team.size
        whole = self.chain.size // lanes
        for number in range(pieces(self.chain.size, lanes, team)):
            at = b.plus(number * team, self.members.member)
            inside, place = limited(b, at, whole, (number + 1) * team <= whole)
            yield Piece(self.points.widened([place])[0], inside)

    def emit(self) -> None:
        """Emit all operations, and store the results that other operations read."""
        for op in self.chain.ops:
            self.compute(op)
            if self.in_memory and isinstance(op, linalg.GenericOp):
                for output in op.outputs:
                    if output not in self.numbers and is_read_elsewhere(output, self.chain):
                        self.store(output, self.kept[output, ""])
        if self.in_memory:
            self.store_numbers([buffer for buffer in self.numbers if is_read_elsewhere(buffer, self.chain)])

    def compute(self, op: Scheduled) -> None:
        """Emit one operation of the chain for the thread's elements of the row. Its results stay in registers: in
        `numbers` if there is one value per row, else in `kept`."""
        if isinstance(op, linalg.FillOp):
            self.numbers[op.outputs[0]] = op.inputs[0]
        elif is_reduction(op):
            reduce_rows(op, [self])
        elif is_number(op, self.chain.outer):
            self.numbers.update(zip(op.outputs, self.values(op, 0, ()), strict=True))
        else:
            found = [self.values(op, number, ()) for number in range(len(self.pieces))]
            for output, values in zip(op.outputs, zip(*found, strict=True), strict=True):
                self.kept[output, ""] = list(values)

    def store_numbers(self, buffers: Sequence[SSAValue]) -> None:
        """Store the row's values of buffers with one value per row, by the first thread."""
        b = self.b
        for buffer in buffers:
            first = b.compare(b.index(self.members.member), "eq", b.index(0))
            when(b, both(b, [first, self.inside]), partial(b.store, self.numbers[buffer], buffer, self.dims))

    def store(self, output: SSAValue, values: Sequence[SSAValue]) -> None:
        """Store the thread's elements of a row."""
        for piece, value in zip(self.pieces, values, strict=True):
            place = [*self.dims, piece.column]
            when(self.b, both(self.b, [self.inside, piece.inside]), partial(self.points.store, value, output, place))

    def values(self, op: linalg.GenericOp, number: int, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit the body of an operation for piece `number` of the thread's elements of the row (neighbours that it
        processes as a vector), and return the values that it yields. `carried`: the accumulators of a reduction;
        if it is empty, the operation's outputs are used."""
        dims = [*self.dims]
        if len(op.iterator_types) > len(dims):
            dims.append(self.pieces[number].column)
        block = op.body.block
        pairs = zip(op.inputs, op.indexing_maps, block.args, strict=False)
        read = [self.operand(v, m.data, number, dims) if any(a.uses) else v for v, m, a in pairs]
        return self.points.computed(block, [*read, *(carried or op.outputs)], dims)

    def operand(self, value: SSAValue, map: AffineMap, number: int, dims: Sequence[Index]) -> SSAValue:
        """Return an operand's elements in piece `number` (neighbours of the row that the thread processes as a vector),
        or its only value for the row. `dims`: the loop indices at which `map` is evaluated. An element that was read
        before is not read again."""
        if value in self.numbers:
            return self.numbers[value]
        key = (value, "" if (value, "") in self.kept else str(map))
        known = self.kept.setdefault(key, [])
        if number >= len(known):
            known.append(self.points.element(value, [self.b.apply(r, dims) for r in map.results]))
        return known[number]

    def start(self, op: linalg.GenericOp) -> SSAValue:
        """Return the initial value of a reduction of the row."""
        output = op.outputs[0]
        return self.numbers[output] if output in self.numbers else self.b.load(output, self.dims)

    def own(self, op: linalg.GenericOp, start: SSAValue) -> SSAValue:
        """Return the reduction of the thread's own elements; lanes are combined in pairs. If the thread has no
        elements, return 0 for a sum, and `start` for any other reduction."""
        b, lanes, join = self.b, self.points.lanes, join_of(op)
        assert join is not None
        neutral = b.constant(0, start.type) if join in SUMS else start
        total = b.broadcast(neutral, lanes) if lanes > 1 else neutral
        for number, piece in enumerate(self.pieces):
            (more,) = self.values(op, number, [total])
            same = piece.inside is None or (self.in_memory and join not in SUMS)
            total = more if same or piece.inside is None else b.select(piece.inside, more, total)

        def pair(x: SSAValue, y: SSAValue) -> SSAValue:
            return b.add(join(x, y)).results[0]

        if is_vector(total.type):
            total = in_pairs([b.lane(total, lane) for lane in range(lanes)], pair)
        return total


def reduce_rows(op: linalg.GenericOp, rows: Sequence[RowEmitter]) -> None:
    """Reduce some rows of the same team: combine their initial values with the partial results of all threads."""
    join, b, members = join_of(op), rows[0].b, rows[0].members
    assert join is not None
    starts = [row.start(op) for row in rows]
    totals = members.joined([row.own(op, start) for row, start in zip(rows, starts, strict=True)], join)
    for row, start, total in zip(rows, starts, totals, strict=True):
        row.numbers[op.outputs[0]] = b.add(join(start, total)).results[0] if join in SUMS else total
