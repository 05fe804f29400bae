"""Products of two computed matrices, one of which has few rows: the scores of a query for all earlier keys, and the
weighted sums of values.

Each row of the larger matrix is read once, without packing. For scores, a block of its rows is multiplied by each row
of the smaller matrix. Each of these products has 16 partial sums in a vector; the vectors are combined in pairs, until
one vector has a finished sum in each lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Self

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import minus, quotient, remainder
from relay.lowering.scheduling.affine import dims_of, kinds_of
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import operands_of
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.reduction import last_lanes
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, moved
from relay.lowering.shaped import Extent, at_most, shape_of
from relay.target import LANES, CpuTarget

JOINING = 8
"""The estimated cycles for adding the lanes of a vector."""

PLACES = 4
"""The number of parts of a matrix whose rows are read in parallel: a processor prefetches several streams at once, but
each only to the end of a page. On a Zen 3, a C program with these loops reads 131 kB of keys at 21 GB/s with 4 parts,
and at 10.5 GB/s with one."""

BLOCK_BYTES = 16 << 10
"""The size of a block of rows in bytes: several tiles of sums process a block before the next one, so that its rows
stay in the first-level cache."""

Places = Mapping[int, Index]
"""The current index of each loop, by the loop's number."""


def row_sums(op: Operation) -> list[list[int]] | None:
    """Return, for each operand, the loops that index its axes, if the operation sums float32 products along its last
    loop and has a result for each of the other loops, in order; else None."""
    if not isinstance(op, linalg.GenericOp) or (found := operands_of(op)) is None or found[0].element != f32:
        return None
    maps, last = [dims_of(m.data) for m in op.indexing_maps], len(op.iterator_types) - 1
    if kinds_of(op) != "p" * last + "r" or maps[2] != [*range(last)]:
        return None
    known = [[dim for dim in dims if dim is not None] for dims in maps]
    return known if known == maps else None


def pick_places(pick: Picks, target: CpuTarget, most: int) -> int:
    """Choose the number of parts into which the rows of a matrix are divided: 4 (`PLACES`), 2 or 1, but at most `most`.
    One loop reads rows from all parts in turn, so that the processor prefetches several streams."""
    possible = [places for places in (PLACES, 2, 1) if places <= most]
    return pick("places", possible, possible[0] if target.has_caches else 1)


@dataclass(frozen=True, kw_only=True)
class RowProductsSchedule(OpSchedule):
    """The decisions about a kernel whose results are each the dot product of a row of one operand and a row of the
    other. `loop`: the index of the loop over results that is innermost. Its range is divided into `places` equal parts,
    and an iteration computes `together` results: the same number of neighbours from each part."""

    strategy = "row_products"
    loop: int
    together: int
    places: int


@dataclass(frozen=True)
class RowProducts(Strategy[RowProductsSchedule]):
    """`out[...] += a[..., k] * b[..., k]` for all k of the last loop; all are float32."""

    record = RowProductsSchedule
    any_length = True
    op: linalg.GenericOp
    maps: Sequence[Sequence[int]]

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (maps := row_sums(op)) is None:
            return None
        size, last = shape_of(op.inputs[0])[-1], len(maps[2])
        along = all(dims[-1:] == [last] for dims in maps[:2])
        return cls(op, maps) if along and not isinstance(size, Extent) and size >= LANES else None

    @property
    def size(self) -> int:
        """The number of products in a sum."""
        return shape_of(self.op.inputs[0])[-1]

    @property
    def larger(self) -> int:
        """The index, 0 or 1, of the operand that has more rows."""
        return max((0, 1), key=lambda number: prod(map(at_most, shape_of(self.op.inputs[number]))))

    def decide(self, kernel: Kernel, pick: Picks) -> RowProductsSchedule:
        target, own = kernel.target, self.maps[self.larger][:-1]
        pick("loop", own, own[-1])
        together = pick("together", (16, 8, 4, 2, 1), 16 if target.register_bytes == 4 * LANES else 4)
        pick_places(pick, target, together)
        sums = prod(map(at_most, shape_of(self.op.outputs[0])))
        registers = LANES * 4 / target.register_bytes
        turns = -(-self.size // LANES) * registers * (1 + 1 / together) / target.costs.loads_per_cycle
        cycles = sums * (turns + registers * JOINING / together) + moved(kernel, self.op.inputs[self.larger])
        why = f"{sums} sums of {self.size} products of rows as they lie, {together} at once"
        return pick.schedule(RowProductsSchedule, round(cycles), why)

    def emit(self, emission: Emission, schedule: RowProductsSchedule) -> None:
        b, out, inner = emission.builder, self.op.outputs[0], schedule.loop
        rows, sizes = [b.flatten(value) for value in self.op.inputs], shape_of(out)
        outer = [dim for dim in self.maps[self.larger][:-1] if dim != inner]
        others = [dim for dim in range(len(sizes)) if dim not in (*outer, inner)]
        step = schedule.together // schedule.places
        size = b.length(sizes[inner])
        part = b.times(quotient(b, size, schedule.together), step)
        with b.loops([sizes[dim] for dim in outer]) as outside:

            def block(first: Sequence[Index], count: int) -> None:
                """For each position in `first`, an index of the loop `inner`, emit the results of `count` iterations of
                this loop from the position on."""
                with b.loops([sizes[dim] for dim in others]) as indices:
                    inside = dict(zip([*outer, *others], [*outside, *indices], strict=True))
                    points = [{**inside, inner: at} for at in first]
                    starts = [self.starts(b, number, points, inner, count) for number in (0, 1)]
                    found = joined_lanes(b, self.totals(b, rows, starts))
                    for number, point in enumerate(points):
                        here = [point[dim] for dim in range(len(sizes))]
                        lanes = range(number * count, (number + 1) * count)
                        sums = found if len(points) == 1 else b.shuffle(found, found, lanes)
                        b.vector_store(b.add(arith.AddfOp(b.vector_load(out, here, count), sums)).result, out, here)

            most = None if isinstance(size, int) else at_most(sizes[inner]) // schedule.together
            with b.loop(0, part, step, independent=True, turns=most) as (at, _):
                block([b.plus(at, b.times(part, place)) for place in range(schedule.places)], step)
            if schedule.together > 1:
                with b.loop(b.times(part, schedule.places), size, independent=True) as (at, _):
                    block([at], 1)

    def starts(self, b: LoopBuilder, number: int, points: Sequence[Places], inner: int, count: int) -> list[Index]:
        """Return the offsets of the rows of operand `number` that products read: for each of `points`, which are
        positions in the loops, the offsets for `count` consecutive iterations of the loop `inner` from the point on. If
        the operand does not depend on this loop, return a single offset."""
        found = list[Index]()
        for point in points:
            first, step = 0, 0
            for dim, size in zip(self.maps[number][:-1], shape_of(self.op.inputs[number]), strict=False):
                first, step = b.plus(b.times(first, at_most(size)), point[dim]), step * at_most(size) + (dim == inner)
            first = b.times(first, self.size)
            if not step:
                return [first]
            found += [b.plus(first, n * step * self.size) for n in range(count)]
        return found

    def totals(self, b: LoopBuilder, rows: Sequence[SSAValue], starts: Sequence[Sequence[Index]]) -> list[SSAValue]:
        """Emit dot products of pairs of rows; return for each pair a vector of 16 partial sums. `rows`: the buffers of
        the two operands, as one dimension; `starts`: the offsets of each operand's rows, one for each pair, or a
        single one for all pairs."""
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
    """Return a vector whose lane n is the sum of all lanes of vector n. In each step, the upper half of the lanes is
    added to the lower half, so that the order does not depend on the number of vectors."""
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
    """The decisions about sums of rows of `b`, weighted by the elements of rows of `a`. `lanes`: the widths of the
    vectors that hold the sums, in descending order; narrower ones process the rest of a row. `rows`: the number of rows
    of sums in registers at once. `places`: the number of equal parts into which the rows of `b` are divided; an
    iteration adds one row of each part."""

    strategy = "weighted_rows"
    lanes: tuple[int, ...]
    rows: int
    places: int


@dataclass(frozen=True)
class WeightedRows(Strategy[WeightedRowsSchedule]):
    """`out[..., j] += a[..., k] * b[..., k, j]` for all k of the last loop, of float32 and few rows of `a`: each row of
    `b` is read once, without packing, while sums stay in registers."""

    record = WeightedRowsSchedule
    any_length = True
    op: linalg.GenericOp
    maps: Sequence[Sequence[int]]

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (maps := row_sums(op)) is None:
            return None
        last = len(maps[2])
        if maps[0][-1:] != [last] or last - 1 in maps[0] or maps[1][-2:] != [last, last - 1]:
            return None
        here, width = cls(op, maps), shape_of(op.outputs[0])[-1]
        return None if isinstance(width, Extent) or here.rows >= kernel.target.packed_rows(floats=True) else here

    @property
    def few(self) -> list[int]:
        """The loops over results, without the innermost one, that index `a` but not `b`: they run over the few rows of
        `a` that are multiplied by the same matrix of `b`."""
        return [dim for dim in self.maps[2][:-1] if dim not in self.maps[1]]

    @property
    def rows(self) -> int:
        """The number of rows of `a` that are multiplied by the same rows of `b`."""
        return prod(at_most(shape_of(self.op.outputs[0])[dim]) for dim in self.few)

    def decide(self, kernel: Kernel, pick: Picks) -> WeightedRowsSchedule:
        target, out = kernel.target, shape_of(self.op.outputs[0])
        room = target.vector_registers * 3 // 4
        vectors = -(-out[-1] // LANES)
        rows = pick("rows", range(1, self.rows + 1), min(max(room // vectors, 1), self.rows))
        best = tuple(
            LANES * count for count in (4, 2, 1) if count * rows <= max(room, rows) and LANES * count <= out[-1]
        )
        possible = [(*best[skipped:], 1) for skipped in range(len(best) + 1)]
        pick("lanes", possible, possible[0])
        pick_places(pick, target, PLACES)
        products = prod(map(at_most, out)) * at_most(shape_of(self.op.inputs[0])[-1])
        turns = products * 4 / target.register_bytes * (1 + 1 / rows) / target.costs.loads_per_cycle
        cycles, why = round(turns + moved(kernel, self.op.inputs[1])), f"{rows} rows of sums in registers"
        return pick.schedule(WeightedRowsSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: WeightedRowsSchedule) -> None:
        b, out = emission.builder, self.op.outputs[0]
        sizes, places = shape_of(out), schedule.places
        size = b.length(shape_of(self.op.inputs[0])[-1])
        part, row = quotient(b, size, places), sizes[-1]
        once = schedule.rows >= self.rows and row <= schedule.lanes[0]
        block = max(BLOCK_BYTES // (4 * row * places), 1)
        whole = 0 if once else minus(b, part, remainder(b, part, block))
        loops = [dim for dim in self.maps[2][:-1] if dim not in self.few]
        with b.loops([sizes[dim] for dim in loops]) as indices:
            outside = dict(zip(loops, indices, strict=True))

            def turns(start: Index, end: Index, count: int) -> None:
                self.add_rows(b, outside, schedule, (start, end), [b.times(part, place) for place in range(count)])

            with b.loop(0, whole, block) as (start, _):
                turns(start, b.plus(start, block), places)
            turns(whole, part, places)
            if places > 1:
                turns(b.times(part, places), size, 1)

    def add_rows(
        self,
        b: LoopBuilder,
        outside: Places,
        schedule: WeightedRowsSchedule,
        turns: tuple[Index, Index],
        first: Sequence[Index],
    ) -> None:
        """Emit loops that add `a[..., k] * b[..., k, j]` to the sums `out[..., j]`, where `a` and `b` are the product's
        operands. For each t from `turns[0]` to `turns[1]`, this is done for all k in `[start + t for start in first]`.
        `outside` gives the indices of the loops around these."""
        (a, weighted), out = self.op.inputs, self.op.outputs[0]
        sizes, inner = shape_of(out), len(shape_of(out)) - 1
        every = list(product(*(range(sizes[dim]) for dim in self.few)))

        def sums(rows: Sequence[tuple[int, ...]], at: Index, count: int) -> None:
            points = [{**outside, inner: at, **dict(zip(self.few, row, strict=True))} for row in rows]
            outs = [[point[dim] for dim in self.maps[2]] for point in points]
            with b.loop(*turns, carried=[b.vector_load(out, here, count) for here in outs]) as (turn, body):
                totals: Sequence[SSAValue] = body.args
                for k in [b.plus(turn, start) for start in first]:
                    dims = [[*here, k] for here in outs]
                    read = b.vector_load(weighted, [dims[0][dim] for dim in self.maps[1]], count)
                    factors = [b.broadcast(b.load(a, [here[dim] for dim in self.maps[0]]), count) for here in dims]
                    fused = zip(factors, totals, strict=True)
                    totals = [b.add(vector.FMAOp(factor, read, total)).results[0] for factor, total in fused]
                body.next = [*totals]
            for total, here in zip(body.results, outs, strict=True):
                b.vector_store(total, out, here)

        for start in range(0, len(every), schedule.rows):
            rows = every[start : start + schedule.rows]
            in_vectors(b, sizes[inner], schedule.lanes, partial(sums, rows), independent=True)
