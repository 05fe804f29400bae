"""The basic strategies: loops over a fill, a copy, padded copies, and any operation for which no better strategy
applies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Self

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import dims_of, kinds_of, uses
from relay.lowering.scheduling.body import clone_scalar
from relay.lowering.scheduling.elementwise import extents
from relay.lowering.scheduling.loops import can_flatten, emit_copy, emit_fill
from relay.lowering.scheduling.padding import Padding, emit_padding
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel, Strategy, estimate, moved
from relay.lowering.shaped import at_most, is_buffer

ORDERED = 4
"""The largest number of loops for which a schedule may have any order of the loops; with more, it has the order with
the result's last dimension innermost (`best_order`), or the order of the op with the reductions innermost."""


@dataclass(frozen=True, kw_only=True)
class FillSchedule(OpSchedule):
    """The decision about a fill. `flat`: one loop over all elements."""

    strategy = "fill"
    flat: bool


@dataclass(frozen=True)
class Fill(Strategy[FillSchedule]):
    """`linalg.fill`: every element is the scalar."""

    record = FillSchedule
    vectors = False
    any_length = True
    op: linalg.FillOp

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, linalg.FillOp) and op.outputs[0] not in kernel.waiting else None

    def decide(self, kernel: Kernel, pick: Picks) -> FillSchedule:
        target = self.op.outputs[0]
        why = "in one row" if pick.may("flat", can_flatten(target)) else "row by row"
        return pick.schedule(FillSchedule, moved(kernel, target), why)

    def emit(self, emission: Emission, schedule: FillSchedule) -> None:
        emit_fill(emission.builder, self.op, flat=schedule.flat)


@dataclass(frozen=True, kw_only=True)
class CopySchedule(OpSchedule):
    """The decision about a copy. `flat`: one loop over all elements."""

    strategy = "copy"
    flat: bool


@dataclass(frozen=True)
class Copy(Strategy[CopySchedule]):
    """`memref.copy`, element by element."""

    record = CopySchedule
    vectors = False
    any_length = True
    op: memref.CopyOp

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, memref.CopyOp) else None

    def decide(self, kernel: Kernel, pick: Picks) -> CopySchedule:
        sides = (self.op.source, self.op.destination)
        why = "in one row" if pick.may("flat", can_flatten(*sides)) else "row by row"
        return pick.schedule(CopySchedule, moved(kernel, *sides), why)

    def emit(self, emission: Emission, schedule: CopySchedule) -> None:
        emit_copy(emission.builder, self.op, flat=schedule.flat)


@dataclass(frozen=True, kw_only=True)
class PadSchedule(OpSchedule):
    """The decision about a padded copy. `by_rows`: each row is written once, with its edges; else the whole copy is
    filled with the padding value first, and the image copied into it."""

    strategy = "pad"
    by_rows: bool


@dataclass(frozen=True)
class Pad(Strategy[PadSchedule]):
    """Writes a padded copy of a tensor to memory, for a following operation that reads it there instead of padding the
    elements as it loads them."""

    record = PadSchedule
    vectors = False
    op: linalg.FillOp
    padding: Padding

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        padding = kernel.waiting.get(op.outputs[0]) if isinstance(op, linalg.FillOp) else None
        return None if padding is None or not isinstance(op, linalg.FillOp) else cls(op, padding)

    @property
    def covers(self) -> Sequence[Operation]:
        return self.padding.ops

    def decide(self, kernel: Kernel, pick: Picks) -> PadSchedule:
        source, target = self.padding.source, self.padding.buffer
        again = () if pick.may("by_rows", self.padding.of_image) else (source,)
        return pick.schedule(PadSchedule, moved(kernel, source, target, *again), "read as it is by what follows")

    def emit(self, emission: Emission, schedule: PadSchedule) -> None:
        if schedule.by_rows:
            emit_padding(emission.builder, self.padding)
            return
        fill, view, copy = self.padding.ops
        assert isinstance(fill, linalg.FillOp) and isinstance(copy, memref.CopyOp)
        emit_fill(emission.builder, fill)
        emission.done.discard(view)
        emission.builder.block.add_op(view)
        emit_copy(emission.builder, copy)


@dataclass(frozen=True, kw_only=True)
class NestSchedule(OpSchedule):
    """The decision about a loop nest. `order`: the numbers of the operation's loops, from the outermost on."""

    strategy = "nest"
    order: tuple[int, ...]


@dataclass(frozen=True)
class Nest(Strategy[NestSchedule]):
    """Any `linalg.generic`, element by element: parallel loops, then reductions, then the result's last dimension if
    that is a parallel loop."""

    record = NestSchedule
    vectors = False
    any_length = True
    op: linalg.GenericOp

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        return cls(op) if isinstance(op, linalg.GenericOp) else None

    def decide(self, kernel: Kernel, pick: Picks) -> NestSchedule:
        count, best = len(self.op.iterator_types), best_order(self.op)
        reductions = reductions_of(self.op)
        plain = (*[d for d in range(count) if d not in reductions], *reductions)
        pick("order", self.orders if count <= ORDERED else (best, plain), best)
        cycles = estimate(kernel, self.op, prod(map(at_most, extents(self.op))), 1)
        return pick.schedule(NestSchedule, cycles, "plain loops")

    @property
    def orders(self) -> Sequence[tuple[int, ...]]:
        """All orders of the loops that keep the relative order of the reductions."""
        reductions = reductions_of(self.op)
        every = permutations(range(len(self.op.iterator_types)))
        return [order for order in every if [d for d in order if d in reductions] == reductions]

    def emit(self, emission: Emission, schedule: NestSchedule) -> None:
        emit_nest(emission.builder, self.op, schedule.order)


def reductions_of(op: linalg.GenericOp) -> list[int]:
    """Return the numbers of the loops that are reductions."""
    return [d for d, kind in enumerate(kinds_of(op)) if kind == "r"]


def best_order(op: linalg.GenericOp) -> tuple[int, ...]:
    """Return the order: parallel loops, then reductions, then the result's last dimension if that is a parallel
    loop."""
    written, reductions = op.indexing_maps.data[-1].data, reductions_of(op)
    parallel = [d for d in range(len(op.iterator_types)) if d not in reductions]
    last = dims_of(written)[-1] if written.results else None
    inner = [last] if last is not None and last in parallel and reductions else []
    return (*[d for d in parallel if d not in inner], *reductions, *inner)


def emit_nest(builder: LoopBuilder, op: linalg.GenericOp, order: Sequence[int]) -> None:
    """Emit the operation element by element, with its loops in this order from the outermost on."""
    maps = [m.data for m in op.indexing_maps]
    sizes, reductions = extents(op), reductions_of(op)
    dims: list[Index] = [0] * len(sizes)
    with ExitStack() as stack:
        free = True
        for d in order:
            free = free and d not in reductions
            alone = free and all(uses(map, d) for map in maps[len(op.inputs) :])
            dims[d] = stack.enter_context(builder.loop(0, sizes[d], independent=alone))[0]
        values = [read(builder, v, m, dims) for v, m in zip(op.operands, maps, strict=True)]
        results = clone_scalar(builder, op.body.block, values, dims)
        for value, target, map in zip(results, op.outputs, maps[len(op.inputs) :], strict=True):
            builder.store(value, target, [builder.apply(r, dims) for r in map.results])


def read(builder: LoopBuilder, value: SSAValue, map: AffineMap, dims: list[Index]) -> SSAValue:
    """Return the element of an operand that the body reads, or the operand itself if it is a scalar."""
    if not is_buffer(value.type):
        return value
    return builder.load(value, [builder.apply(r, dims) for r in map.results])
