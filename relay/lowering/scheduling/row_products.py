"""Sums of products along rows of two computed matrices, of which one has few rows: a query and the keys before it.

Each row of the larger matrix is read once, from where it lies. A block of its rows goes against each row of the smaller
matrix: 16 partial sums each, whose lanes are added in pairs of rows, so that the last step gives a vector of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Self

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import kinds_of, operands_of
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.reduction import last_lanes
from relay.lowering.scheduling.rows import in_vectors
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, moved
from relay.lowering.shaped import Extent, at_most, shape_of
from relay.target import LANES

JOINING = 8
"""Cycles in which the lanes of a vector are added."""


@dataclass(frozen=True, kw_only=True)
class RowProductsSchedule(OpSchedule):
    """`loop`: the innermost loop over results, along which `together` neighbours are computed at once."""

    strategy = "row_products"
    loop: int
    together: int


@dataclass(frozen=True)
class RowProducts(Strategy[RowProductsSchedule]):
    """`out[...] += a[..., k] * b[..., k]` for all k of the last loop, of float32."""

    record = RowProductsSchedule
    any_length = True
    op: linalg.GenericOp

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (found := operands_of(op)) is None or found[3] != f32:
            return None
        kinds, maps = kinds_of(op), [dims_of(m.data) for m in op.indexing_maps]
        last = len(kinds) - 1
        if kinds != "p" * last + "r" or any(dims[-1:] != [last] for dims in maps[:2]) or maps[2] != [*range(last)]:
            return None
        size = shape_of(op.inputs[0])[-1]
        return None if isinstance(size, Extent) or size < LANES else cls(op)

    @property
    def size(self) -> int:
        """Products of a sum."""
        return shape_of(self.op.inputs[0])[-1]

    @property
    def larger(self) -> int:
        """The number of the operand that has more rows."""
        return max((0, 1), key=lambda number: prod(map(at_most, shape_of(self.op.inputs[number]))))

    def dims(self, number: int) -> list[int | None]:
        """The loops over the rows of an operand."""
        return dims_of(self.op.indexing_maps.data[number].data)[:-1]

    def decide(self, kernel: Kernel, pick: Picks) -> RowProductsSchedule:
        target, own = kernel.target, [dim for dim in self.dims(self.larger) if dim is not None]
        loop = pick("loop", own, own[-1])
        together = pick("together", (16, 8, 4, 2, 1), 16 if target.register_bytes == 4 * LANES else 4)
        sums = prod(map(at_most, shape_of(self.op.outputs[0])))
        registers = LANES * 4 / target.register_bytes
        turns = -(-self.size // LANES) * registers * (1 + 1 / together) / target.costs.loads_per_cycle
        cycles = sums * (turns + registers * JOINING / together) + moved(kernel, self.op.inputs[self.larger])
        why = f"{sums} sums of {self.size} products of rows as they lie, {together} at once"
        return RowProductsSchedule(loop=loop, together=together, cycles=round(cycles), why=why)

    def emit(self, emission: Emission, schedule: RowProductsSchedule) -> None:
        b, out, inner = emission.builder, self.op.outputs[0], schedule.loop
        rows, sizes = [b.flatten(value) for value in self.op.inputs], shape_of(out)
        outer = [dim for dim in self.dims(self.larger) if dim != inner]
        others = [dim for dim in range(len(sizes)) if dim not in (*outer, inner)]
        widths = (schedule.together, 1) if schedule.together > 1 else (1,)

        def loops(
            dims: Sequence[int | None], places: dict[int, Index], body: Callable[[dict[int, Index]], None]
        ) -> None:
            if not dims or (dim := dims[0]) is None:
                body(places)
                return
            with b.loop(0, sizes[dim], independent=True) as (place, _):
                loops(dims[1:], {**places, dim: place}, body)

        def sums(places: dict[int, Index], count: int) -> None:
            here = [places[dim] for dim in range(len(sizes))]
            starts = [self.places(b, number, here, inner, count) for number in (0, 1)]
            found = joined_lanes(b, self.totals(b, rows, starts))
            b.vector_store(b.add(arith.AddfOp(b.vector_load(out, here, count), found)).result, out, here)

        def blocks(places: dict[int, Index]) -> None:
            def block(at: Index, count: int) -> None:
                loops(others, {**places, inner: at}, lambda found: sums(found, count))

            in_vectors(b, sizes[inner], widths, block, independent=True)

        loops(outer, {}, blocks)

    def places(self, b: LoopBuilder, number: int, here: Sequence[Index], inner: int, count: int) -> list[Index]:
        """Where the rows of an operand begin in its memory: one, or one for each of `count` neighbours."""
        start, step, shape = 0, 0, shape_of(self.op.inputs[number])
        first: Index = start
        for dim, size in zip(self.dims(number), shape, strict=False):
            assert dim is not None
            first, step = b.plus(b.times(first, at_most(size)), here[dim]), step * at_most(size) + (dim == inner)
        first = b.times(first, self.size)
        return [b.plus(first, n * step * self.size) for n in range(count if step else 1)]

    def totals(self, b: LoopBuilder, rows: Sequence[SSAValue], starts: Sequence[Sequence[Index]]) -> list[SSAValue]:
        """Sums of products of pairs of rows, 16 partial ones each. One side may be one row for all."""
        zero, size, count = vector_constant(b, 0, f32, LANES), self.size, max(map(len, starts))

        def added(first: Index, totals: Sequence[SSAValue], mask: SSAValue | None = None) -> list[SSAValue]:
            loaded = [
                [b.vector_load(value, [b.plus(start, first)], LANES) for start in places]
                for value, places in zip(rows, starts, strict=True)
            ]
            if mask is not None:
                loaded[0] = [b.select(mask, value, zero) for value in loaded[0]]
            one, other = (side * (count // len(side)) for side in loaded)
            triples = zip(one, other, totals, strict=True)
            return [b.add(vector.FMAOp(x, y, total)).results[0] for x, y, total in triples]

        with b.loop(0, size // LANES * LANES, LANES, carried=[zero] * count) as (k, turn):
            turn.next = added(k, turn.args)
        totals = list(turn.results)
        return added(size - LANES, totals, last_lanes(b, size % LANES)) if size % LANES else totals


def joined_lanes(b: LoopBuilder, totals: Sequence[SSAValue]) -> SSAValue:
    """A vector with the sum of the lanes of each: always of the lower half and the upper half, whose order does not
    depend on how many there are."""
    width, lanes, found = LANES, LANES, list(totals)
    while width > 1:
        half, lanes = width // 2, lanes * min(len(found), 2)
        lower, upper = ([group + k for group in range(at, lanes, width) for k in range(half)] for at in (0, half))
        pairs = [(found[n], found[min(n + 1, len(found) - 1)]) for n in range(0, len(found), 2)]
        found = [b.add(arith.AddfOp(b.shuffle(*pair, lower), b.shuffle(*pair, upper))).result for pair in pairs]
        width, lanes = half, lanes // 2
    return found[0]


@dataclass(frozen=True, kw_only=True)
class WeightedRowsSchedule(OpSchedule):
    """`lanes`: widths of the vectors of sums, each for what is left by those before."""

    strategy = "weighted_rows"
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class WeightedRows(Strategy[WeightedRowsSchedule]):
    """`out[..., j] += a[..., k] * b[..., k, j]` for all k of the last loop, of float32 and few rows of `a`: each row of
    `b` is read once, from where it lies, while sums stay in registers."""

    record = WeightedRowsSchedule
    any_length = True
    op: linalg.GenericOp

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (found := operands_of(op)) is None or found[3] != f32:
            return None
        kinds, maps = kinds_of(op), [dims_of(m.data) for m in op.indexing_maps]
        last = len(kinds) - 1
        if kinds != "p" * last + "r" or maps[2] != [*range(last)] or None in (*maps[0], *maps[1]):
            return None
        if maps[0][-1:] != [last] or last - 1 in maps[0] or maps[1][-2:] != [last, last - 1]:
            return None
        here = cls(op)
        width = shape_of(op.outputs[0])[-1]
        return None if isinstance(width, Extent) or here.rows > kernel.target.costs.packed_rows else here

    @property
    def few(self) -> list[int]:
        """The loops over rows of `a` that take the same rows of `b`."""
        own = dims_of(self.op.indexing_maps.data[1].data)
        return [dim for dim in range(len(shape_of(self.op.outputs[0])) - 1) if dim not in own]

    @property
    def rows(self) -> int:
        """Rows of `a` that take the same rows of `b`."""
        return prod(at_most(shape_of(self.op.outputs[0])[dim]) for dim in self.few)

    def decide(self, kernel: Kernel, pick: Picks) -> WeightedRowsSchedule:
        target, out = kernel.target, shape_of(self.op.outputs[0])
        room = max(target.vector_registers * 3 // 4 // self.rows, 1)
        best = tuple(LANES * count for count in (4, 2, 1) if count <= room and LANES * count <= out[-1])
        possible = [(*best[skipped:], 1) for skipped in range(len(best) + 1)]
        lanes = pick("lanes", possible, possible[0])
        products = prod(map(at_most, out)) * at_most(shape_of(self.op.inputs[0])[-1])
        turns = products * 4 / target.register_bytes * (1 + 1 / self.rows) / target.costs.loads_per_cycle
        why = f"{self.rows} rows of sums in registers"
        return WeightedRowsSchedule(lanes=lanes, cycles=round(turns + moved(kernel, self.op.inputs[1])), why=why)

    def emit(self, emission: Emission, schedule: WeightedRowsSchedule) -> None:
        b, (a, weighted), out = emission.builder, self.op.inputs, self.op.outputs[0]
        sizes, maps = shape_of(out), [m.data for m in self.op.indexing_maps]
        inner, last = len(sizes) - 1, len(sizes)
        rows = list(product(*(range(sizes[dim]) for dim in self.few)))

        def sums(places: dict[int, Index], at: Index, count: int) -> None:
            every = [{**places, inner: at, **dict(zip(self.few, row, strict=True))} for row in rows]
            outs = [[here[dim] for dim in range(last)] for here in every]
            zeros = [b.vector_load(out, here, count) for here in outs]
            with b.loop(0, shape_of(a)[-1], carried=zeros) as (k, turn):
                dims = [[*here, k] for here in outs]
                read = b.vector_load(weighted, [b.apply(e, dims[0]) for e in maps[1].results], count)
                factors = [b.broadcast(b.load(a, [b.apply(e, here) for e in maps[0].results]), count) for here in dims]
                fused = zip(factors, turn.args, strict=True)
                turn.next = [b.add(vector.FMAOp(factor, read, total)).results[0] for factor, total in fused]
            for total, here in zip(turn.results, outs, strict=True):
                b.vector_store(total, out, here)

        def loops(outer: Sequence[int], places: dict[int, Index]) -> None:
            if outer:
                with b.loop(0, sizes[outer[0]], independent=True) as (place, _):
                    loops(outer[1:], {**places, outer[0]: place})
                return
            in_vectors(b, sizes[inner], schedule.lanes, lambda at, n: sums(places, at, n), independent=True)

        loops([dim for dim in range(inner) if dim not in self.few], {})
