"""The plain schedule: a loop nest per operation, the last (contiguous) dimension innermost, in vectors where it can."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntAttr, StridedLayoutAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, is_identity, uses
from relay.lowering.scheduling.body import Lifter, can_lift, clone_scalar
from relay.lowering.scheduling.reduction import emit_reduction
from relay.lowering.shaped import is_buffer, shape_of

LANES = 16


def extents(op: linalg.GenericOp) -> list[int]:
    """The size of each loop, read off the operands' shapes."""
    maps = [m.data for m in op.indexing_maps]
    result = [0] * maps[0].num_dims
    for map, value in zip(maps, op.operands, strict=True):
        if is_buffer(value.type):
            for dim, size in zip(dims_of(map), shape_of(value), strict=True):
                if dim is not None:
                    result[dim] = size
    return result


def emit_fill(builder: LoopBuilder, op: linalg.FillOp) -> None:
    """linalg.fill: every element is the scalar."""
    target = op.outputs[0]
    if contiguous(target.type):
        flat = builder.flatten(target)
        with builder.loop(0, shape_of(flat)[0], independent=True) as (i, _):
            builder.store(op.inputs[0], flat, [i])
        return
    with ExitStack() as stack:
        indices = [stack.enter_context(builder.loop(0, d, independent=True))[0] for d in shape_of(target)]
        builder.store(op.inputs[0], target, indices)


def emit_copy(builder: LoopBuilder, op: memref.CopyOp) -> None:
    """memref.copy: element by element; both as one dimension where they are contiguous."""
    source, target = op.source, op.destination
    if contiguous(source.type) and contiguous(target.type):
        source, target = builder.flatten(source), builder.flatten(target)
    with ExitStack() as stack:
        indices = [stack.enter_context(builder.loop(0, d, independent=True))[0] for d in shape_of(target)]
        builder.store(builder.load(source, indices), target, indices)


def emit_generic(builder: LoopBuilder, op: linalg.GenericOp, features: frozenset[str]) -> None:
    """linalg.generic in its simplest good order."""
    if not emit_elementwise(builder, op) and not emit_reduction(builder, op, features):
        emit_nest(builder, op)


def emit_nest(builder: LoopBuilder, op: linalg.GenericOp) -> None:
    """Parallel loops, reductions, then the result's last dimension if that is a parallel loop."""
    maps = [m.data for m in op.indexing_maps]
    sizes = extents(op)
    kinds = [t.data for t in op.iterator_types]
    parallel = [d for d, k in enumerate(kinds) if k is IteratorType.PARALLEL]
    reduction = [d for d, k in enumerate(kinds) if k is IteratorType.REDUCTION]
    last = dims_of(maps[-1])[-1] if maps[-1].results else None
    inner = [last] if last is not None and last in parallel and reduction else []
    order = [d for d in parallel if d not in inner] + reduction + inner
    free = {d for d in parallel if all(uses(map, d) for map in maps[len(op.inputs) :])} - {*inner}
    dims: list[Index] = [0] * len(sizes)
    with ExitStack() as stack:
        for d in order:
            dims[d] = stack.enter_context(builder.loop(0, sizes[d], independent=d in free))[0]
        values = [read(builder, v, m, dims) for v, m in zip(op.operands, maps, strict=True)]
        results = clone_scalar(builder, op.body.block, values, dims)
        for value, target, map in zip(results, op.outputs, maps[len(op.inputs) :], strict=True):
            builder.store(value, target, [builder.apply(r, dims) for r in map.results])


def read(builder: LoopBuilder, value: SSAValue, map: AffineMap, dims: list[Index]) -> SSAValue:
    if not is_buffer(value.type):
        return value
    return builder.load(value, [builder.apply(r, dims) for r in map.results])


def emit_elementwise(builder: LoopBuilder, op: linalg.GenericOp) -> bool:
    """All-parallel with a liftable body: vectors along the last dimension, what is left one by one.

    False, and nothing is emitted, where the operation is not of this kind.
    """
    if not in_rows(op) or not can_lift(op.body.block):
        return False
    Elementwise(builder, op).emit()
    return True


def in_rows(op: linalg.GenericOp) -> bool:
    """Whether neighbours along the last of only parallel loops are neighbours in memory, or one element."""
    maps = [m.data for m in op.indexing_maps]
    rank = maps[0].num_dims
    if rank == 0 or any(t.data is not IteratorType.PARALLEL for t in op.iterator_types):
        return False
    if not all(is_identity(m, rank) for m in maps[len(op.inputs) :]):
        return False
    return all(last_is_contiguous(v, m, rank) for v, m in zip(op.operands, maps, strict=True))


def last_is_contiguous(value: SSAValue, map: AffineMap, rank: int) -> bool:
    """Whether neighbours along the last loop are neighbours in memory, or one element."""
    if not uses(map, rank - 1):
        return True
    dims = dims_of(map)
    return dims[-1] == rank - 1 and rank - 1 not in dims[:-1] and rows_contiguous(value.type)


def rows_contiguous(type: Attribute) -> bool:
    """Whether the elements of each row are neighbours in memory: a whole tensor, or part of one without steps."""
    if contiguous(type):
        return True
    if not is_buffer(type) or not isinstance(type.layout, StridedLayoutAttr):
        return False
    last = type.layout.strides.data[-1:]
    return [stride.data for stride in last if isinstance(stride, IntAttr)] == [1]


class Elementwise:
    """Emits one elementwise operation; as one long row where every operand is either whole or a single element."""

    def __init__(self, builder: LoopBuilder, op: linalg.GenericOp):
        self.b, self.op = builder, op
        self.operands = list(op.operands)
        self.maps = [m.data for m in op.indexing_maps]
        self.sizes = extents(op)
        self.inputs = len(op.inputs)
        rank = len(self.sizes)
        if all(
            not is_buffer(v.type) or (contiguous(v.type) and (is_identity(m, rank) or prod(shape_of(v)) == 1))
            for v, m in zip(self.operands, self.maps, strict=True)
        ):
            self.flatten(rank)
        self.lifter = Lifter(builder, LANES)

    def flatten(self, rank: int) -> None:
        """See everything as vectors of one dimension."""
        for number, (value, map) in enumerate(zip(self.operands, self.maps, strict=True)):
            if is_buffer(value.type) and shape_of(value):
                self.operands[number] = self.b.flatten(value)
                whole = is_identity(map, rank)
                self.maps[number] = (
                    AffineMap.identity(1) if whole else AffineMap(1, 0, AffineMap.constant_map(0).results)
                )
            else:
                self.maps[number] = AffineMap(1, 0, ())
        self.sizes = [prod(self.sizes)]

    def emit(self) -> None:
        size = self.sizes[-1]
        whole = size // LANES * LANES
        with ExitStack() as stack:
            outer: list[Index] = [stack.enter_context(self.b.loop(0, d, independent=True))[0] for d in self.sizes[:-1]]
            if whole:
                with self.b.loop(0, whole, LANES, independent=True) as (i, _):
                    self.point([*outer, i], lanes=True)
            if whole < size:
                with self.b.loop(whole, size) as (i, _):
                    self.point([*outer, i], lanes=False)

    def point(self, dims: list[Index], lanes: bool) -> None:
        """One element, or 16 neighbours."""
        b, block = self.b, self.op.body.block
        values = self.values(block, dims, lanes)
        self.write(self.lifter.emit(block, values) if lanes else clone_scalar(b, block, values, dims), dims, lanes)

    def values(self, block: Block, dims: list[Index], lanes: bool) -> list[SSAValue]:
        """What the block has as arguments for the operands: what is there, where it is used."""
        return [
            self.read(value, map, dims, lanes) if any(argument.uses) else value
            for value, map, argument in zip(self.operands, self.maps, block.args, strict=False)
        ]

    def write(self, results: Sequence[SSAValue], dims: list[Index], lanes: bool) -> None:
        """Store what the body yields."""
        b = self.b
        for result, target, map in zip(results, self.operands[self.inputs :], self.maps[self.inputs :], strict=True):
            at = [b.apply(r, dims) for r in map.results]
            if lanes:
                b.vector_store(result, target, at)
            else:
                b.store(result, target, at)

    def read(self, value: SSAValue, map: AffineMap, dims: list[Index], lanes: bool) -> SSAValue:
        b = self.b
        at = [b.apply(r, dims) for r in map.results]
        if lanes and uses(map, len(self.sizes) - 1):
            return b.vector_load(value, at, LANES)
        scalar = b.load(value, at) if is_buffer(value.type) else value
        return b.broadcast(scalar, LANES) if lanes else scalar
