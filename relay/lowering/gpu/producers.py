"""Finds the buffers of a function that need no memory, because their elements are computed where they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects.attributes import to_numpy
from relay.lowering.builder import Index
from relay.lowering.scheduling.affine import dims_of, kinds_of
from relay.lowering.scheduling.elementwise import extents
from relay.lowering.scheduling.padding import Padding, padding_of
from relay.lowering.shaped import root, shape_of


@dataclass(frozen=True)
class Nest:
    """A `linalg.generic` that writes each element of its results once. `started`: the scalars to which fills set the
    outputs before, None for an output that was not filled."""

    op: linalg.GenericOp
    started: tuple[SSAValue | None, ...]

    @property
    def maps(self) -> list[AffineMap]:
        """The indexing maps of the operands."""
        return [m.data for m in self.op.indexing_maps]

    @property
    def parallel(self) -> list[int]:
        """The parallel dimensions, which index the results."""
        return [d for d, kind in enumerate(kinds_of(self.op)) if kind == "p"]

    @property
    def reduction(self) -> list[int]:
        """The reduction dimensions."""
        return [d for d, kind in enumerate(kinds_of(self.op)) if kind == "r"]

    @property
    def sizes(self) -> list[int]:
        """The size of each dimension."""
        return extents(self.op)

    @property
    def starts_at_zero(self) -> bool:
        """Whether the first output is filled with the constant 0 before the operation adds to it."""
        start = self.started[0]
        return start is not None and isinstance(start.owner, arith.ConstantOp) and not to_numpy(start.owner.value).any()

    @property
    def output_dims(self) -> list[int] | None:
        """For each dimension of the results, the number of the loop dimension that indexes it. None unless all results
        have the same indices, which are the parallel dimensions, each of them once."""
        maps = self.maps[len(self.op.inputs) :]
        first = dims_of(maps[0])
        known = [dim for dim in first if dim is not None]
        if len(known) != len(first) or sorted(known) != self.parallel or any(dims_of(m) != first for m in maps):
            return None
        return known

    @property
    def shape(self) -> list[int]:
        """The shape of the results. Only valid if `output_dims` is not None."""
        return [self.sizes[dim] for dim in self.output_dims or ()]

    def dims(self, at: Sequence[Index]) -> list[Index]:
        """Return the loop indices for a point of the results; 0 for reduction dimensions."""
        order = self.output_dims
        assert order is not None
        found: list[Index] = [0] * len(self.sizes)
        for dim, index in zip(order, at, strict=True):
            found[dim] = index
        return found


def nest_of(op: linalg.GenericOp, fills: Sequence[linalg.FillOp]) -> Nest:
    """Return the operation as a nest. Its initial values are the scalars to which `fills` set its outputs, and None for
    other outputs."""
    started = {fill.outputs[0]: fill.inputs[0] for fill in fills}
    return Nest(op, tuple(started.get(output) for output in op.outputs))


def starts(fill: linalg.FillOp, order: Sequence[Operation]) -> linalg.GenericOp | None:
    """Return the operation that accumulates into the filled buffer, if nothing accesses the buffer in between; else
    None."""
    target = fill.outputs[0]
    buffer = root(target)
    for op in order[order.index(fill) + 1 :]:
        if not any(root(operand) is buffer for inner in op.walk() for operand in inner.operands):
            continue
        if isinstance(op, linalg.GenericOp) and target in tuple(op.outputs):
            touched = [operand for inner in op.walk() for operand in inner.operands if root(operand) is buffer]
            return op if touched == [target] else None
        if not isinstance(op, memref.SubviewOp | memref.CollapseShapeOp | memref.ExpandShapeOp):
            return None
    return None


def reader(buffer: SSAValue, besides: Sequence[Operation]) -> tuple[linalg.GenericOp, int] | None:
    """Return the only operation that uses the buffer, not counting the operations `besides`, and the number of its
    operand; None if there are several such operations, or the only one does not read it as an input of a
    `linalg.generic`."""
    uses = [use for use in buffer.uses if use.operation not in besides]
    if len(uses) != 1:
        return None
    op, index = uses[0].operation, uses[0].index
    return (op, index) if isinstance(op, linalg.GenericOp) and index < len(op.inputs) else None


def padded(alloc: memref.AllocOp) -> Padding | None:
    """Return the buffer as a padded copy if a fill and a copy into a subview write it and it has a single reader; else
    None."""
    found = padding_of(alloc.memref)
    return None if found is None or reader(alloc.memref, found.ops[:2]) is None else found


def computed(alloc: memref.AllocOp, order: Sequence[Operation]) -> tuple[Nest, tuple[Operation, ...]] | None:
    """Return the nest that computes the buffer, and the nest's operations, if the buffer has a single reader, which
    reads each element once, and at most one of the nest and the reader has a reduction; else None."""
    value = alloc.memref
    writers = [
        use.operation
        for use in value.uses
        if isinstance(use.operation, linalg.GenericOp) and use.index >= len(use.operation.inputs)
    ]
    fills = [use.operation for use in value.uses if isinstance(use.operation, linalg.FillOp)]
    if len(writers) != 1 or len(fills) > 1:
        return None
    writer = writers[0]
    if len(writer.outputs) != 1 or (fills and starts(fills[0], order) is not writer):
        return None
    if not fills and any(writer.body.block.args[-1].uses):
        return None
    nest = nest_of(writer, fills)
    found = reader(value, (writer, *fills))
    if found is None or nest.output_dims is None or order.index(found[0]) < order.index(writer):
        return None
    consumer, index = found
    outer = nest_of(consumer, ())
    known = [dim for dim in dims_of(outer.maps[index]) if dim is not None]
    once = len(known) == len(outer.maps[index].results) == len(set(known))
    if not once or prod(outer.sizes) != prod(shape_of(value)) or (nest.reduction and outer.reduction):
        return None
    return nest, (writer, *fills)
