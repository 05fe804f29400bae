"""Products of two computed matrices, one of which has few rows: the scores of a query against all keys before it, and
the sums of values that its weights give.

Each row of the larger matrix is read once, from where it lies. For scores, a block of its rows goes against each row of
the smaller matrix: 16 partial sums each, whose lanes are added in pairs of rows, so that the last step gives a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
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

Places = Mapping[int, Index]
"""Where loops are, by their numbers."""


def row_sums(op: Operation) -> list[list[int]] | None:
    """The loops that the axes of each operand are, of an operation that sums products of float32 along its last loop
    and has a result for each of the others, in order; None for any other operation."""
    if not isinstance(op, linalg.GenericOp) or (found := operands_of(op)) is None or found[3] != f32:
        return None
    maps, last = [dims_of(m.data) for m in op.indexing_maps], len(op.iterator_types) - 1
    if kinds_of(op) != "p" * last + "r" or maps[2] != [*range(last)]:
        return None
    known = [[dim for dim in dims if dim is not None] for dims in maps]
    return known if known == maps else None


def opened(stack: ExitStack, b: LoopBuilder, sizes: Sequence[int], dims: Iterable[int]) -> Places:
    """Loops over results, the first outermost, that end with the stack."""
    return {dim: stack.enter_context(b.loop(0, sizes[dim], independent=True))[0] for dim in dims}


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
        """Products of a sum."""
        return shape_of(self.op.inputs[0])[-1]

    @property
    def larger(self) -> int:
        """The number of the operand that has more rows."""
        return max((0, 1), key=lambda number: prod(map(at_most, shape_of(self.op.inputs[number]))))

    def decide(self, kernel: Kernel, pick: Picks) -> RowProductsSchedule:
        target, own = kernel.target, self.maps[self.larger][:-1]
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
        outer = [dim for dim in self.maps[self.larger][:-1] if dim != inner]
        others = [dim for dim in range(len(sizes)) if dim not in (*outer, inner)]
        widths = (schedule.together, 1) if schedule.together > 1 else (1,)
        with ExitStack() as around:
            places = opened(around, b, sizes, outer)

            def block(at: Index, count: int) -> None:
                with ExitStack() as stack:
                    every = {**places, inner: at, **opened(stack, b, sizes, others)}
                    here = [every[dim] for dim in range(len(sizes))]
                    starts = [self.starts(b, number, here, inner, count) for number in (0, 1)]
                    found = joined_lanes(b, self.totals(b, rows, starts))
                    b.vector_store(b.add(arith.AddfOp(b.vector_load(out, here, count), found)).result, out, here)

            in_vectors(b, sizes[inner], widths, block, independent=True)

    def starts(self, b: LoopBuilder, number: int, here: Sequence[Index], inner: int, count: int) -> list[Index]:
        """Where the rows of an operand begin in its memory: one, or one for each of `count` neighbours."""
        first: Index = 0
        step = 0
        for dim, size in zip(self.maps[number][:-1], shape_of(self.op.inputs[number]), strict=False):
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
    maps: Sequence[Sequence[int]]

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp) or (maps := row_sums(op)) is None:
            return None
        last = len(maps[2])
        if maps[0][-1:] != [last] or last - 1 in maps[0] or maps[1][-2:] != [last, last - 1]:
            return None
        here, width = cls(op, maps), shape_of(op.outputs[0])[-1]
        return None if isinstance(width, Extent) or here.rows > kernel.target.costs.packed_rows else here

    @property
    def few(self) -> list[int]:
        """The loops over rows of `a` that take the same rows of `b`."""
        return [dim for dim in self.maps[2][:-1] if dim not in self.maps[1]]

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
        sizes = shape_of(out)
        inner = len(sizes) - 1
        rows = list(product(*(range(sizes[dim]) for dim in self.few)))
        with ExitStack() as around:
            places = opened(around, b, sizes, (dim for dim in self.maps[2][:-1] if dim not in self.few))

            def sums(at: Index, count: int) -> None:
                every = [{**places, inner: at, **dict(zip(self.few, row, strict=True))} for row in rows]
                outs = [[here[dim] for dim in self.maps[2]] for here in every]
                starts = [b.vector_load(out, here, count) for here in outs]
                with b.loop(0, shape_of(a)[-1], carried=starts) as (k, turn):
                    dims = [[*here, k] for here in outs]
                    read = b.vector_load(weighted, [dims[0][dim] for dim in self.maps[1]], count)
                    factors = [b.broadcast(b.load(a, [here[dim] for dim in self.maps[0]]), count) for here in dims]
                    fused = zip(factors, turn.args, strict=True)
                    turn.next = [b.add(vector.FMAOp(factor, read, total)).results[0] for factor, total in fused]
                for total, here in zip(turn.results, outs, strict=True):
                    b.vector_store(total, out, here)

            in_vectors(b, sizes[inner], schedule.lanes, sums, independent=True)
