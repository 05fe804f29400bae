"""The plain schedule: a loop nest per operation, the last (contiguous) dimension innermost, in vectors where it can."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from xdsl.dialects import linalg, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, is_identity, uses
from relay.lowering.scheduling.body import Lifter, can_lift, clone_scalar

LANES = 16


def shape_of(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, MemRefType)
    return value.type.get_shape()


def extents(op: linalg.GenericOp) -> list[int]:
    """The size of each loop, read off the operands' shapes."""
    maps = [m.data for m in op.indexing_maps]
    result = [0] * maps[0].num_dims
    for map, value in zip(maps, op.operands, strict=True):
        if isinstance(value.type, MemRefType):
            for dim, size in zip(dims_of(map), shape_of(value), strict=True):
                if dim is not None:
                    result[dim] = size
    return result


def emit_fill(builder: LoopBuilder, op: linalg.FillOp) -> None:
    """linalg.fill: every element is the scalar."""
    target = op.outputs[0]
    if contiguous(target.type):
        flat = builder.flatten(target)
        with builder.loop(0, shape_of(flat)[0]) as (i, _):
            builder.store(op.inputs[0], flat, [i])
        return
    with ExitStack() as stack:
        indices = [stack.enter_context(builder.loop(0, d))[0] for d in shape_of(target)]
        builder.store(op.inputs[0], target, indices)


def emit_copy(builder: LoopBuilder, op: memref.CopyOp) -> None:
    """memref.copy: element by element; both as one dimension where they are contiguous."""
    source, target = op.source, op.destination
    if contiguous(source.type) and contiguous(target.type):
        source, target = builder.flatten(source), builder.flatten(target)
    with ExitStack() as stack:
        indices = [stack.enter_context(builder.loop(0, d))[0] for d in shape_of(target)]
        builder.store(builder.load(source, indices), target, indices)


def emit_generic(builder: LoopBuilder, op: linalg.GenericOp) -> None:
    """linalg.generic in its simplest good order."""
    if not emit_elementwise(builder, op):
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
    dims: list[Index] = [0] * len(sizes)
    with ExitStack() as stack:
        for d in order:
            dims[d] = stack.enter_context(builder.loop(0, sizes[d]))[0]
        values = [read(builder, v, m, dims) for v, m in zip(op.operands, maps, strict=True)]
        results = clone_scalar(builder, op.body.block, values, dims)
        for value, target, map in zip(results, op.outputs, maps[len(op.inputs) :], strict=True):
            builder.store(value, target, [builder.apply(r, dims) for r in map.results])


def read(builder: LoopBuilder, value: SSAValue, map: AffineMap, dims: list[Index]) -> SSAValue:
    if not isinstance(value.type, MemRefType):
        return value
    return builder.load(value, [builder.apply(r, dims) for r in map.results])


def emit_elementwise(builder: LoopBuilder, op: linalg.GenericOp) -> bool:
    """All-parallel with liftable body: vectors along the last dimension, the rest one by one. False if it is not so."""
    maps = [m.data for m in op.indexing_maps]
    rank = maps[0].num_dims
    block = op.body.block
    if rank == 0 or any(t.data is not IteratorType.PARALLEL for t in op.iterator_types) or not can_lift(block):
        return False
    operands = list(op.operands)
    if not all(is_identity(m, rank) for m in maps[len(op.inputs) :]):
        return False
    for value, map in zip(op.inputs, maps, strict=False):
        inner = dims_of(map)
        if uses(map, rank - 1) and (inner[-1] != rank - 1 or any(d == rank - 1 for d in inner[:-1])):
            return False
        if isinstance(value.type, MemRefType) and not contiguous(value.type) and uses(map, rank - 1):
            return False
    sizes = extents(op)
    flat = all(
        (is_identity(m, rank) and contiguous(v.type)) or prod(shape_of(v) if isinstance(v.type, MemRefType) else ()) == 1
        for v, m in zip(operands, maps, strict=True)
    )
    if flat:
        operands = [builder.flatten(v) if isinstance(v.type, MemRefType) and shape_of(v) else v for v in operands]
        one = AffineMap.identity(1)
        zero = AffineMap.from_callable(lambda _: (), dim_symbol_split=(1, 0))
        first = AffineMap.constant_map(0)
        maps = [
            one if is_identity(m, rank) and shape_of(v) else first if isinstance(v.type, MemRefType) and shape_of(v) else zero
            for v, m in zip(operands, maps, strict=True)
        ]
        sizes = [prod(sizes)]
    lifter = Lifter(builder, LANES)
    last = len(sizes) - 1
    inputs = len(op.inputs)
    whole = sizes[last] // LANES * LANES
    with ExitStack() as stack:
        outer: list[Index] = [stack.enter_context(builder.loop(0, d))[0] for d in sizes[:-1]]

        def emit(dims: list[Index], lanes: bool) -> None:
            values: list[SSAValue] = []
            for number, (value, map) in enumerate(zip(operands, maps, strict=True)):
                if not isinstance(value.type, MemRefType):
                    values.append(builder.broadcast(value, LANES) if lanes else value)
                    continue
                at = [builder.apply(r, dims) for r in map.results]
                if not any(block.args[number].uses):
                    values.append(value)
                elif lanes and uses(map, last):
                    values.append(builder.vector_load(value, at, LANES))
                else:
                    scalar = builder.load(value, at)
                    values.append(builder.broadcast(scalar, LANES) if lanes else scalar)
            results = lifter.emit(block, values) if lanes else clone_scalar(builder, block, values, dims)
            for result, target, map in zip(results, operands[inputs:], maps[inputs:], strict=True):
                at = [builder.apply(r, dims) for r in map.results]
                builder.vector_store(result, target, at) if lanes else builder.store(result, target, at)

        if whole:
            with builder.loop(0, whole, LANES) as (i, _):
                emit([*outer, i], True)
        if whole < sizes[last]:
            with builder.loop(whole, sizes[last]) as (i, _):
                emit([*outer, i], False)
    return True
