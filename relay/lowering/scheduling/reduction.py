"""Reductions along the last, contiguous dimension: several vectors of 16 partial results, combined at the end.

Maxima, minima and sums. Floats are added in the order of this code, which is the same on every processor; partial sums
also have smaller rounding errors than one long sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.op import created
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.indices import below, either, minus, remainder
from relay.lowering.scheduling.affine import dims_of, is_identity, kinds_of, uses
from relay.lowering.scheduling.body import LIFTED_DIALECTS, Lifter, dense_vector, vector_constant
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.saturate import EXTENDS
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, estimate
from relay.lowering.shaped import Extent, at_most, buffer_of, is_vector, leads, shape_of, vector_of
from relay.target import LANES

GROUP = 4
"""The number of codes that a dot product adds to a sum."""

MAPPED = 256
"""The most elements of a row if each is computed before it is reduced: the row is unrolled, 16 elements at a time, so
this bounds the code size."""

IDEMPOTENT = (arith.MaximumfOp, arith.MinimumfOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)
"""Ops for which combining an element twice changes nothing, so that all partial results may start with the initial
value."""


@dataclass(frozen=True)
class Reduction:
    """`result[outer] = join(result[outer], extend(data[outer, k]))` for all k below `size`; the data for all k is
    contiguous in memory."""

    data: SSAValue
    result: SSAValue
    result_map: AffineMap
    outer: tuple[int, ...]
    size: int
    join: Operation
    extend: type[Operation] | None = None


def recognise_reduction(op: linalg.GenericOp) -> Reduction | None:
    """Return the reduction that the operation computes, over one or more last dimensions of contiguous data; else
    None."""
    if not reduces_last(op):
        return None
    data, outer, block = op.inputs[0], kinds_of(op).count("p"), op.body.block
    end, join = block.last_op, block.first_op
    if (
        join is None
        or end is None
        or join.next_op is not end
        or not isinstance(join, (*IDEMPOTENT, arith.AddiOp, arith.AddfOp))
    ):
        return None
    if set(join.operands) != set(block.args) or tuple(end.operands) != tuple(join.results):
        return None
    shape = shape_of(data)
    if not leads(shape[outer:]):
        return None
    size, extend = prod(shape[outer:]), None
    if isinstance(join, arith.AddiOp):
        data, extend = before_widening(op, data)
    if size < LANES:
        return None
    return Reduction(data, op.outputs[0], op.indexing_maps.data[1].data, shape[:outer], size, join, extend)


def reduces_last(op: linalg.GenericOp) -> bool:
    """Whether the operation reduces one or more last dimensions of contiguous data, each element once, to a contiguous
    result. Every index of the result must be one of the other dimensions, not an expression of them."""
    kinds = kinds_of(op)
    rank, outer = len(kinds), kinds.count("p")
    if len(op.inputs) != 1 or len(op.outputs) != 1 or outer == rank or "p" in kinds[outer:]:
        return False
    read, written = (map.data for map in op.indexing_maps)
    if not is_identity(read, rank) or not all(contiguous(value.type) for value in op.operands):
        return False
    return not any(uses(written, dim) for dim in range(outer, rank)) and None not in dims_of(written)


def before_widening(op: linalg.GenericOp, data: SSAValue) -> tuple[SSAValue, type[Operation] | None]:
    """If a preceding operation only widens `data` for `op`, return the data before it was widened, and the widening op;
    else `data` and None."""
    others = {use.operation for use in data.uses} - {op}
    if len(others) != 1:
        return data, None
    (writer,) = others
    if not isinstance(writer, linalg.GenericOp) or (found := widening(writer)) is None:
        return data, None
    return writer.inputs[0], found


def widening(op: linalg.GenericOp) -> type[Operation] | None:
    """Return the op by which the operation widens 8-bit codes, if it does nothing else; else None."""
    block = op.body.block
    first, end = block.first_op, block.last_op
    if len(op.inputs) != 1 or len(op.outputs) != 1 or first is None or end is None or first.next_op is not end:
        return None
    if first.name not in EXTENDS or block.args[0].type != i8 or end.operands[0] is not first.results[0]:
        return None
    whole = all(is_identity(m.data, len(op.iterator_types)) for m in op.indexing_maps)
    return EXTENDS[first.name] if whole and all(contiguous(v.type) for v in op.operands) else None


def recognise_mapped(op: linalg.GenericOp) -> Reduction | None:
    """Return a reduction over the last dimension, `join(result, f(data, index))`, whose values are computed from data
    and the index; None for any other operation."""
    if not reduces_last(op) or kinds_of(op).count("r") != 1:
        return None
    *outer, size = shape_of(op.inputs[0])
    if not LANES <= size <= MAPPED or isinstance(size, Extent):
        return None
    last, block = len(outer), op.body.block
    end = block.last_op
    join = None if end is None else end.operands[0].owner
    if not isinstance(join, IDEMPOTENT) or join.next_op is not end:
        return None
    if block.args[1] not in join.operands or not block.args[1].has_one_use():
        return None
    if not all(
        placed(inner, last) or inner.name.startswith(LIFTED_DIALECTS) for inner in block.ops if inner is not end
    ):
        return None
    return Reduction(op.inputs[0], op.outputs[0], op.indexing_maps.data[1].data, tuple(outer), size, join)


def placed(op: Operation, dim: int) -> bool:
    """Whether the operation is `linalg.index` of this dimension, and is used only by casts to an integer."""
    return (
        isinstance(op, linalg.IndexOp)
        and op.dim.value.data == dim
        and all(isinstance(use.operation, arith.IndexCastOp) for use in op.result.uses)
    )


@dataclass(frozen=True, kw_only=True)
class ReductionSchedule(OpSchedule):
    """The decisions about a reduction. `partial`: the number of vectors of partial results; `codes_per_step`: 4 if a
    dot product with ones adds codes, else 1; `unsigned`: whether the dot product's first factor is unsigned."""

    strategy = "reduction"
    partial: int
    codes_per_step: int
    unsigned: bool


@dataclass(frozen=True)
class ReductionRows(Strategy[ReductionSchedule]):
    """A reduction along the last dimension; `body`: the region that computes the reduced values from the data, if
    any."""

    record = ReductionSchedule
    any_length = True
    op: linalg.GenericOp
    found: Reduction
    body: Block | None

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        if not isinstance(op, linalg.GenericOp):
            return None
        if (found := recognise_reduction(op)) is not None:
            return cls(op, found, None)
        found = recognise_mapped(op)
        return None if found is None else cls(op, found, op.body.block)

    def decide(self, kernel: Kernel, pick: Picks) -> ReductionSchedule:
        found, extend = self.found, self.found.extend
        element, dot = buffer_of(found.result).element_type, kernel.target.dot(GROUP)
        sums = dot is not None and (extend is ExtSIOp or (extend is ExtUIOp and dot.unsigned)) and element == i32
        codes = pick("codes_per_step", (GROUP, 1) if sums else (1,), GROUP if sums else 1)
        first = dot is not None and codes > 1 and dot.unsigned
        pick.only("unsigned", first)
        exact = self.body is None and (isinstance(found.join, IDEMPOTENT) or element == i32)
        best = kernel.target.costs.partial_results if self.body is None else 1
        partial = pick("partial", (1, 2, 4, 8) if exact else (best,), best)
        count = prod(map(at_most, found.outer)) * at_most(found.size)
        cycles = estimate(kernel, self.op, count, LANES * codes, 4 // codes)
        why = f"{LANES * codes} elements at a time, {partial} vectors of partial results"
        return pick.schedule(ReductionSchedule, cycles, why)

    def emit(self, emission: Emission, schedule: ReductionSchedule) -> None:
        b, found = emission.builder, self.found
        data = b.flatten(found.data)
        with b.loops(found.outer) as dims:
            start: Index = 0
            for dim, size in zip(dims, found.outer, strict=True):
                start = b.plus(b.times(start, size), dim)
            at = [b.apply(result, dims) for result in found.result_map.results]
            row = Row(b, found, data, b.times(start, found.size), at, schedule)
            if self.body is None:
                row.emit()
            else:
                row.emit_mapped(self.body)


class Row:
    """Emits the reduction of one row: of `size` contiguous elements of `data`, from `start` on, into the element at the
    indices `at` of the result."""

    def __init__(
        self,
        builder: LoopBuilder,
        reduction: Reduction,
        data: SSAValue,
        start: Index,
        at: list[Index],
        schedule: ReductionSchedule,
    ):
        self.b, self.reduction, self.data, self.start, self.at = builder, reduction, data, start, at
        self.element: Attribute = buffer_of(reduction.result).element_type
        self.schedule = schedule

    def emit(self) -> None:
        b, size = self.b, self.reduction.size
        if isinstance(size, Extent):
            self.emit_any(size)
            return
        before = b.load(self.reduction.result, self.at)
        if isinstance(self.reduction.join, IDEMPOTENT):
            neutral = b.broadcast(before, LANES)
        else:
            neutral = vector_constant(b, 0, self.element, LANES)
        whole, done, partial = size // LANES * LANES, 0, [neutral]
        for codes in (GROUP * LANES, LANES) if self.schedule.codes_per_step > 1 else (LANES,):
            most = min(self.schedule.partial, (size - done) // codes)
            partial += [neutral] * (most - len(partial))
            for count in (most, 1) if most else ():
                end = done + (size - done) // (count * codes) * count * codes
                partial[:count] = self.several(done, end, partial[:count], codes)
                done = end
        total = in_pairs(partial, self.join)
        if whole < size:
            total = self.join(total, self.rest(size - LANES, size - whole))
        b.vector_store(across_lanes(b, total, self.join), self.reduction.result, self.at)
        if not isinstance(self.reduction.join, IDEMPOTENT):
            b.store(self.join(b.load(self.reduction.result, self.at), before), self.reduction.result, self.at)

    def emit_any(self, size: Extent) -> None:
        """Emit a reduction whose size is only known at run time. It combines elements in the same order as `emit`,
        which emits reductions of a known size."""
        b, end, repeats = self.b, self.b.length(size), isinstance(self.reduction.join, IDEMPOTENT)
        before = b.load(self.reduction.result, self.at)
        zero = vector_constant(b, 0, self.element, LANES)
        neutral = b.broadcast(before, LANES) if repeats else zero

        def vector(first: Index) -> SSAValue:
            return self.extended(b.vector_load(self.data, [b.plus(self.start, first)], LANES))

        def one_by_one() -> SSAValue:
            with b.loop(0, end, carried=[before]) as (k, turn):
                value = self.extended(b.load(self.data, [b.plus(self.start, k)]))
                turn.next = [self.join(turn.args[0], value)]
            return turn.results[0]

        def in_vectors() -> SSAValue:
            def joined(first: Index, total: SSAValue) -> SSAValue:
                return self.join(total, vector(first))

            total = partial_results(b, end, self.schedule.partial, neutral, joined, self.join, in_first=True)
            rest = remainder(b, end, LANES)

            def with_rest() -> SSAValue:
                last = vector(minus(b, end, LANES))
                return self.join(total, last if repeats else b.select(last_lanes_of(b, rest), last, zero))

            total = either(b, below(b, 0, rest), with_rest, lambda: total)
            found = b.lane(across_lanes(b, total, self.join), 0)
            return found if repeats else self.join(found, before)

        b.store(either(b, below(b, end, LANES), one_by_one, in_vectors), self.reduction.result, self.at)

    def rest(self, first: int, count: int) -> SSAValue:
        """Return the last vector of the row, only `count` elements of which were not combined before; in a sum, the
        other elements are replaced by 0."""
        b = self.b
        values = self.extended(b.vector_load(self.data, [b.plus(self.start, first)], LANES))
        if isinstance(self.reduction.join, IDEMPOTENT):
            return values
        return b.select(last_lanes(b, count), values, vector_constant(b, 0, self.element, LANES))

    def emit_mapped(self, body: Block) -> None:
        """Emit a reduction of values that the body computes; the last vector may overlap the one before it."""
        b, size = self.b, self.reduction.size
        lifter, total = Lifter(b, LANES), b.broadcast(b.load(self.reduction.result, self.at), LANES)
        for first in [*range(0, size - LANES, LANES), size - LANES]:
            values = b.vector_load(self.data, [b.plus(self.start, first)], LANES)
            total = lifter.emit(body, [values, total], positions=range(first, first + LANES))[0]
        b.vector_store(across_lanes(b, total, self.join), self.reduction.result, self.at)

    def several(self, first: int, end: int, partial: list[SSAValue], codes: int) -> list[SSAValue]:
        """Emit a loop over the row's elements from `first` to `end`. Each iteration loads as many vectors as `partial`
        has, each of `codes` elements, and combines each loaded vector with one vector of `partial`. Return the new
        `partial`."""
        if first == end:
            return partial
        b, step = self.b, len(partial) * codes
        with b.loop(first, end, step, carried=partial) as (k, turn):
            at = b.plus(self.start, k)
            loaded = [b.vector_load(self.data, [b.plus(at, n * codes)], codes) for n in range(len(partial))]
            add = self.joined if codes == LANES else self.summed
            turn.next = [add(old, new) for old, new in zip(turn.args, loaded, strict=True)]
        return turn.results

    def joined(self, old: SSAValue, data: SSAValue) -> SSAValue:
        """Combine each partial result with one element."""
        return self.join(old, self.extended(data))

    def summed(self, old: SSAValue, codes: SSAValue) -> SSAValue:
        """Add four codes to each partial sum, as a dot product with ones."""
        ones = vector_constant(self.b, 1, i8, GROUP * LANES)
        unsigned = self.schedule.unsigned
        data, weights = (ones, codes) if unsigned and self.reduction.extend is ExtSIOp else (codes, ones)
        return self.b.dot(old, data, weights, unsigned)

    def extended(self, value: SSAValue) -> SSAValue:
        """Return data, a scalar or vector, extended to the element type of the result."""
        if self.reduction.extend is None:
            return value
        wide = vector_of(self.element, LANES) if is_vector(value.type) else self.element
        return self.b.add(created(self.reduction.extend, [value], [wide])).results[0]

    def join(self, a: SSAValue, c: SSAValue) -> SSAValue:
        """Combine two scalars or vectors by the op of the reduction."""
        return joined_by(self.b, self.reduction.join, a, c)


def joined_by(b: LoopBuilder, join: Operation, a: SSAValue, c: SSAValue) -> SSAValue:
    """Combine two scalars or vectors by an op of the same kind as `join`."""
    op = created(join.__class__, [a, c], [a.type])
    op.attributes.update(join.attributes)
    return b.add(op).results[0]


Join = Callable[[SSAValue, SSAValue], SSAValue]
"""A function that combines two scalars or vectors by the op of a reduction."""
Joined = Callable[[Index, SSAValue], SSAValue]
"""A function that combines the vector of a row's elements from an index on with a partial result."""


def in_pairs(partial: Sequence[SSAValue], join: Join) -> SSAValue:
    """Combine vectors of partial results into one: neighbours first, then pairs of these."""
    while len(partial) > 1:
        pairs = [join(a, c) for a, c in zip(partial[::2], partial[1::2], strict=False)]
        partial = [*pairs, *partial[2 * len(pairs) :]]
    return partial[0]


def across_lanes(b: LoopBuilder, total: SSAValue, join: Join) -> SSAValue:
    """Combine the lanes of a vector into a vector of one lane, the upper half with the lower half each time."""
    for lanes in (8, 4, 2, 1):
        total = join(b.shuffle(total, total, range(lanes)), b.shuffle(total, total, range(lanes, 2 * lanes)))
    return total


def partial_results(
    b: LoopBuilder, end: Index, count: int, neutral: SSAValue, joined: Joined, join: Join, in_first: bool = False
) -> SSAValue:
    """Combine the elements of a row up to `end`, which is known only at run time, into `count` vectors of partial
    results, each `neutral` at first, and return their combination by `in_pairs`. `joined(k, old)` combines the vector
    from element k on with a partial result.

    The order is the same as for a row of known size. Each iteration of a loop combines one vector with each of the
    partial results. Fewer than `count` vectors remain, which are combined with one partial result each; but if
    `in_first` is true and the loop had an iteration, all of them are combined with the first partial result. The last
    elements, fewer than a vector, are left to the caller.
    """
    step = count * LANES
    stop, whole = (minus(b, end, remainder(b, end, size)) for size in (step, LANES))
    with b.loop(0, stop, step, carried=[neutral] * count) as (k, turn):
        turn.next = [joined(b.plus(k, n * LANES), old) for n, old in enumerate(turn.args)]
    partial = list(turn.results)
    start: Index = stop
    if in_first and count > 1:
        few = below(b, end, step)
        start = b.select(few, b.index(0), b.index(whole))
        with b.loop(b.select(few, b.index(whole), b.index(stop)), whole, LANES, carried=partial[:1]) as (k, turn):
            turn.next = [joined(k, turn.args[0])]
        partial[0] = turn.results[0]
    for n in range(count - 1):
        first, old = b.plus(start, n * LANES), partial[n]
        partial[n] = either(b, below(b, first, whole), partial_of(joined, first, old), partial_of(None, first, old))
    return in_pairs(partial, join)


def partial_of(joined: Joined | None, first: Index, old: SSAValue) -> Callable[[], SSAValue]:
    """Return a function that emits the new value of a partial result `old`: combined, by `joined`, with the vector of
    elements from `first` on, or unchanged if `joined` is None."""
    return (lambda: old) if joined is None else lambda: joined(first, old)


def last_lanes_of(b: LoopBuilder, count: Index) -> SSAValue:
    """Return a mask that is true in the last `count` lanes, for a count that is known only at run time."""
    lanes = b.constant_attr(dense_vector(list(range(LANES)), i32), vector_of(i32, LANES))
    narrow = b.add(arith.IndexCastOp(b.index(minus(b, LANES, count)), i32)).result
    return b.compare(lanes, "sge", b.broadcast(narrow, LANES))


def last_lanes(b: LoopBuilder, count: int) -> SSAValue:
    """Return a mask that is true in the last `count` lanes."""
    return b.constant_attr(dense_vector([lane >= LANES - count for lane in range(LANES)], i1), vector_of(i1, LANES))
