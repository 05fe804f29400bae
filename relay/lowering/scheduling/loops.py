"""The plain schedule: a loop nest per operation, the last (contiguous) dimension innermost, in vectors where it can."""

from __future__ import annotations

from contextlib import ExitStack

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, uses
from relay.lowering.scheduling.body import clone_scalar
from relay.lowering.scheduling.elementwise import emit_elementwise, extents
from relay.lowering.scheduling.gathered import emit_gathered
from relay.lowering.scheduling.reduction import emit_reduction
from relay.lowering.scheduling.staged import emit_staged
from relay.lowering.scheduling.tables import emit_lookup
from relay.lowering.scheduling.transposes import emit_transpose
from relay.lowering.shaped import is_buffer, shape_of


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
    """linalg.generic as the first of these kinds that it is, else in its simplest good order."""
    kinds = (emit_lookup, emit_transpose, emit_gathered, emit_staged, emit_elementwise, emit_reduction)
    if not any(emit(builder, op, features) for emit in kinds):
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
