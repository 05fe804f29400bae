"""Reductions along the last, contiguous dimension: several vectors of 16 partial results, joined at the end.

Only where the order of the operands does not matter to the last bit: maxima and minima, and sums of integers.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, is_identity, uses
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.shaped import buffer_of, is_vector, shape_of, vector_of

LANES = 16
PARTIAL = 4
"""Vectors of partial results: as many as hide the latency of joining them."""

IDEMPOTENT = (arith.MaximumfOp, arith.MinimumfOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)
"""Joining a result twice changes nothing: partial results may all start with what is there."""


@dataclass(frozen=True)
class Reduction:
    """`result[outer] = join(result[outer], data[outer, k])` for all k of `size`, one after the other in memory."""

    data: SSAValue
    result: SSAValue
    result_map: AffineMap
    outer: tuple[int, ...]
    size: int
    join: type[Operation]


def recognise_reduction(op: linalg.GenericOp) -> Reduction | None:
    """The reduction that the operation is, over one or more last dimensions of contiguous data; None if it is none."""
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        return None
    maps = [m.data for m in op.indexing_maps]
    kinds = [t.data for t in op.iterator_types]
    rank = len(kinds)
    outer = sum(kind is IteratorType.PARALLEL for kind in kinds)
    if outer == rank or any(kind is IteratorType.PARALLEL for kind in kinds[outer:]):
        return None
    data, result = op.inputs[0], op.outputs[0]
    if not is_identity(maps[0], rank) or not contiguous(data.type) or not contiguous(result.type):
        return None
    if any(uses(maps[1], dim) for dim in range(outer, rank)) or None in dims_of(maps[1]):
        return None
    block = op.body.block
    end, join = block.last_op, block.first_op
    if join is None or end is None or join.next_op is not end or not isinstance(join, (*IDEMPOTENT, arith.AddiOp)):
        return None
    if set(join.operands) != set(block.args) or tuple(end.operands) != tuple(join.results):
        return None
    shape = shape_of(data)
    size = prod(shape[outer:])
    return Reduction(data, result, maps[1], shape[:outer], size, type(join)) if size >= 2 * LANES else None


def emit_reduction(b: LoopBuilder, op: linalg.GenericOp) -> bool:
    """Emit the operation if it is such a reduction; False, and nothing is emitted, if it is not."""
    found = recognise_reduction(op)
    if found is None:
        return False
    data = b.flatten(found.data)
    with ExitStack() as stack:
        dims: list[Index] = [stack.enter_context(b.loop(0, size, independent=True))[0] for size in found.outer]
        start: Index = 0
        for dim, size in zip(dims, found.outer, strict=True):
            start = b.plus(b.times(start, size), dim)
        at = [b.apply(result, dims) for result in found.result_map.results]
        Row(b, found, data, b.times(start, found.size), at).emit()
    return True


class Row:
    """One reduction: `size` neighbours from `start` on into the element `at`."""

    def __init__(self, builder: LoopBuilder, reduction: Reduction, data: SSAValue, start: Index, at: list[Index]):
        self.b, self.reduction, self.data, self.start, self.at = builder, reduction, data, start, at
        self.element: Attribute = buffer_of(data).element_type

    def emit(self) -> None:
        b, size = self.b, self.reduction.size
        before = b.load(self.reduction.result, self.at)
        if self.reduction.join in IDEMPOTENT:
            neutral = b.broadcast(before, LANES)
        else:
            neutral = vector_constant(b, 0, self.element, LANES)
        count = min(PARTIAL, size // LANES)
        partial = self.several(0, size // (count * LANES) * count * LANES, [neutral] * count)
        whole = size // LANES * LANES
        partial[:1] = self.several(size // (count * LANES) * count * LANES, whole, partial[:1])
        while len(partial) > 1:
            pairs = [self.join(a, c) for a, c in zip(partial[::2], partial[1::2], strict=False)]
            partial = pairs + partial[2 * len(pairs) :]
        total = partial[0]
        for lanes in (8, 4, 2, 1):
            total = self.join(self.lanes(total, 0, lanes), self.lanes(total, lanes, lanes))
        b.vector_store(total, self.reduction.result, self.at)
        sum = b.load(self.reduction.result, self.at)
        with b.loop(whole, size, carried=[sum]) as (k, rest):
            if whole < size:
                rest.next = [self.join(rest.args[0], b.load(self.data, [b.plus(self.start, k)]))]
        if self.reduction.join not in IDEMPOTENT:
            rest.results = [self.join(rest.results[0], before)]
        b.store(rest.results[0], self.reduction.result, self.at)

    def several(self, first: int, end: int, partial: list[SSAValue]) -> list[SSAValue]:
        """Join so many vectors at a time, from one place to another."""
        if first == end:
            return partial
        b, step = self.b, len(partial) * LANES
        with b.loop(first, end, step, carried=partial) as (k, turn):
            at = b.plus(self.start, k)
            turn.next = [
                self.join(old, b.vector_load(self.data, [b.plus(at, n * LANES)], LANES))
                for n, old in enumerate(turn.args)
            ]
        return turn.results

    def join(self, a: SSAValue, c: SSAValue) -> SSAValue:
        """The operation, on scalars or vectors."""
        return self.b.add(self.reduction.join.create(operands=[a, c], result_types=[a.type])).results[0]

    def lanes(self, value: SSAValue, first: int, count: int) -> SSAValue:
        """Some lanes of a vector."""
        assert is_vector(value.type)
        mask = DenseArrayBase.from_list(i64, list(range(first, first + count)))
        return self.b.add(
            vector.ShuffleOp.create(
                operands=[value, value],
                result_types=[vector_of(self.element, count)],
                properties={"mask": mask},
            )
        ).result
