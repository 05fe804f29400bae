"""Reads from, and writes to, positions that depend on data.

No element is stored at a data-dependent position: every element of a result searches the updates for those at its own
position, in order. So sums do not depend on how loops are divided, and positions out of range are harmless.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerType, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import DYNAMIC, TensorOp, axis_of, rank, shape
from relay.dialects.op import tensor as ranked
from relay.lowering.linalg.emitter import INDEX, Emitter, axes, dims, element, identity, kind
from relay.lowering.linalg.movement import position
from relay.lowering.linalg.scalar import BINARY


def gather(e: Emitter, op: relay.GatherOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    source, indices = operands
    axis, result = axis_of(op.axis.value.data, rank(op.input), op.name), shape(op.result)
    type = ranked(op.indices).element_type

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        places = [e.index(d) for d in range(len(result))]
        places[axis] = position(e, args[0], type, dims(source)[axis])
        return [e.extract(source, places)]

    return e.map([(indices, identity(len(result)))], result, [element(source)], body)


def reverse_sequence(e: Emitter, op: relay.ReverseSequenceOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    source, lengths = operands
    (sequence, batch), result = op.axes(), shape(op.result)
    type = ranked(op.seq_lengths).element_type

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        places = [e.index(d) for d in range(len(result))]
        here, length = places[sequence], position(e, args[0], type, result[sequence] + 1)
        last = e(arith.SubiOp(e(arith.SubiOp(length, e.constant(1, INDEX))), here))
        inside = e(arith.CmpiOp(here, length, "slt"))
        places[sequence] = e(arith.SelectOp(inside, last, here))
        return [e.extract(source, places)]

    return e.map([(lengths, axes(len(result), batch))], result, [element(source)], body)


JOINED: dict[str, type[TensorOp]] = {
    "add": relay.AddOp, "mul": relay.MultiplyOp, "min": relay.MinimumOp, "max": relay.MaximumOp,
}  # fmt: skip
"""The op by which an update is combined with the current value; modes that are not listed replace the value."""


def joined(e: Emitter, mode: str, hit: SSAValue, update: SSAValue, known: SSAValue, type: Attribute) -> SSAValue:
    """Return the current value, combined with the update where `hit` is true."""
    changed = e(BINARY[JOINED[mode]][kind(type)](known, update)) if mode in JOINED else update
    return e(arith.SelectOp(hit, changed, known))


def scatter(e: Emitter, op: relay.ScatterOp | relay.ScatterAddOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to a copy of the data and a loop nest over the dimensions of the result and, innermost, the position of an
    update along the axis: an element changes if that update's index is its own."""
    source, indices, updates = operands
    whole = shape(op.result)
    axis, width = axis_of(op.axis.value.data, len(whole), op.name), len(whole)
    mode = "add" if isinstance(op, relay.ScatterAddOp) else "update"
    type, index_type = ranked(op.input).element_type, ranked(op.indices).element_type
    if 0 in whole or 0 in dims(updates):
        return [source]
    read = axes(width + 1, *(width if d == axis else d for d in range(width)))

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        index, update, known = args
        wanted = e.widen(index, index_type, i64)
        here = e(arith.IndexCastOp(e.index(axis), i64))
        if kind(index_type) == "signed":
            below = e(arith.CmpiOp(wanted, e.constant(0, i64), "slt"))
            from_end = e(arith.AddiOp(wanted, e.constant(whole[axis], i64)))
            wanted = e(arith.SelectOp(below, from_end, wanted))
        hit = e(arith.CmpiOp(wanted, here, "eq"))
        return [joined(e, mode, hit, update, known, type)]

    initial = e.copy(source, identity(width), whole)
    output = axes(width + 1, *range(width))
    return e.generic([(indices, read), (updates, read)], [(initial, output)], 1, body)


def scatter_nd(e: Emitter, op: relay.ScatterNdOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over the dimensions of the result, and those of the updates' positions."""
    source, indices, updates = operands
    whole, outer, coordinates = shape(op.result), rank(op.indices) - 1, shape(op.indices)[-1]
    width = len(whole)
    type, index_type = ranked(op.input).element_type, ranked(op.indices).element_type
    if 0 in whole or 0 in dims(updates):
        return [source]
    places = range(width, width + outer)
    read = axes(width + outer, *places, *range(coordinates, width))

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        update, known = args
        row, hit = [e.index(d) for d in places], None
        for c in range(coordinates):
            wanted = e.widen(e.extract(indices, [*row, e.constant(c, INDEX)]), index_type, i64)
            here = e(arith.CmpiOp(wanted, e(arith.IndexCastOp(e.index(c), i64)), "eq"))
            hit = here if hit is None else e(arith.AndIOp(hit, here))
        if hit is None:
            return [joined(e, op.mode.data, e.constant(1, IntegerType(1)), update, known, type)]
        return [joined(e, op.mode.data, hit, update, known, type)]

    initial = e.copy(source, identity(width), whole)
    output = axes(width + outer, *range(width))
    return e.generic([(updates, read)], [(initial, output)], outer, body)


def strided_set(e: Emitter, op: relay.StridedSetOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Insert the value into a copy of the source."""
    source, value = operands
    whole = e.copy(source, identity(rank(op.input)), shape(op.result))
    begin, strides = int_values(op.begin), int_values(op.strides)
    if 0 in dims(value):
        return [whole]
    return [e(tensor.InsertSliceOp.get(value, whole, dims(value), begin, strides))]


def dynamic_update_slice(
    e: Emitter, op: relay.DynamicUpdateSliceOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Insert the update at a computed offset, clamped to the source's size, along each axis where the update is
    smaller."""
    source, update, start = operands
    whole, part = shape(op.result), dims(update)
    if 0 in part:
        return [source]
    type, places, offsets = ranked(op.start).element_type, list[SSAValue](), list[int]()
    for axis, (size, own) in enumerate(zip(whole, part, strict=True)):
        offsets.append(0 if size == own else DYNAMIC)
        if size != own:
            wanted = e.widen(e.extract(start, [e.constant(axis, INDEX)]), type, i64)
            if kind(type) == "signed":
                wanted = e(arith.MaxSIOp(wanted, e.constant(0, i64)))
            smaller = arith.MinSIOp if kind(type) == "signed" else arith.MinUIOp
            places.append(e.to_index(e(smaller(wanted, e.constant(size - own, i64)))))
    return [e(tensor.InsertSliceOp.get(update, source, part, offsets, offsets=places))]
