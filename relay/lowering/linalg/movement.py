"""Ops that move elements without computing on them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerType, TensorType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.op import axis_of, rank, shape
from relay.dialects.op import tensor as ranked
from relay.lowering.linalg.division import integer_divide, rest_of
from relay.lowering.linalg.emitter import INDEX, Emitter, axes, dims, element, identity, kind
from relay.lowering.linalg.scalar import is_scalar


def constant(e: Emitter, op: relay.ConstantOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    label = "constant" if op.label is None else op.label.data
    return [e.tensor_constant(to_numpy(op.value), label)]


def reshape(e: Emitter, op: relay.ReshapeOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e.reshape(operands[0], shape(op.result))]


def pad(e: Emitter, op: relay.PadOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e.pad(operands[0], op.widths(), to_numpy(op.pad_value).item())]


def concatenate(e: Emitter, op: relay.ConcatenateOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Insert each operand into one tensor, at its offset."""
    result = shape(op.result)
    axis = axis_of(op.axis.value.data, len(result), op.name)
    whole = e.empty(result, element(operands[0]))
    offsets = [0] * len(result)
    for value in operands:
        if 0 in dims(value):  # an empty operand: a kernel would write an element
            continue
        whole = e(tensor.InsertSliceOp.get(value, whole, dims(value), offsets, [1] * len(result)))
        offsets[axis] += dims(value)[axis]
    return [whole]


def strided_slice(e: Emitter, op: relay.StridedSliceOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit `tensor.extract_slice`, and a copy unless elementwise code reads it; negative strides become computed
    positions."""
    source, result = operands[0], shape(op.result)
    begin, strides = int_values(op.begin), int_values(op.strides)
    if min(strides, default=1) > 0:
        type = TensorType(element(source), result)
        part = e(tensor.ExtractSliceOp(source, begin, result, strides, type))
        if all(is_scalar(use.operation) for use in op.result.uses):
            return [part]
        return [e.copy(part, identity(len(result)), result)]

    def body(e: Emitter, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        positions: list[SSAValue] = []
        for dimension, (first, step) in enumerate(zip(begin, strides, strict=True)):
            scaled = e(arith.MuliOp(e.index(dimension), e.constant(step, INDEX)))
            positions.append(e(arith.AddiOp(scaled, e.constant(first, INDEX))))
        return [e.extract(source, positions)]

    return e.map([], result, [element(source)], body)


def position(e: Emitter, value: SSAValue, type: Attribute, size: int) -> SSAValue:
    """Return an index of `relay` element type `type`, clamped to an axis of `size`."""
    assert isa(type, IntegerType)
    wide = e.widen(value, type, i32) if type.width.data < 32 else value
    last = e.constant(size - 1, wide.type)
    if kind(type) == "unsigned":
        return e.to_index(e(arith.MinUIOp(wide, last)))
    return e.to_index(e(arith.MinSIOp(e(arith.MaxSIOp(wide, e.constant(0, wide.type))), last)))


def wrapped(e: Emitter, value: SSAValue, type: Attribute, size: int) -> SSAValue:
    """Return an index of `relay` element type `type`, modulo an axis's size."""
    assert isa(type, IntegerType)
    wide = e.widen(value, type, i32) if type.width.data < 32 else value
    whole, zero = e.constant(size, wide.type), e.constant(0, wide.type)
    rest = rest_of(e, wide, whole, integer_divide(e, wide, whole, kind(type) == "signed"))
    if kind(type) == "unsigned":
        return e.to_index(rest)
    below = e(arith.CmpiOp(rest, zero, "slt"))
    return e.to_index(e(arith.SelectOp(below, e(arith.AddiOp(rest, whole)), rest)))


def take(e: Emitter, op: relay.TakeOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    seen, axis = op.lines()
    source, indices = e.reshape(operands[0], seen), operands[1]
    result, inner = shape(op.result), rank(op.indices)
    type = ranked(op.indices).element_type
    place = wrapped if op.mode.data == "wrap" else position

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        here = place(e, args[0], type, dims(source)[axis])
        before = [e.index(d) for d in range(axis)]
        after = [e.index(d) for d in range(axis + inner, len(result))]
        return [e.extract(source, [*before, here, *after])]

    read = axes(len(result), *range(axis, axis + inner))
    return e.map([(indices, read)], result, [element(source)], body)


def gather_nd(e: Emitter, op: relay.GatherNdOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    source, indices = operands
    result, outer, coordinates = shape(op.result), rank(op.indices) - 1, shape(op.indices)[-1]
    type = ranked(op.indices).element_type

    def body(e: Emitter, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        row = [e.index(d) for d in range(outer)]
        leading = [
            position(e, e.extract(indices, [*row, e.constant(c, INDEX)]), type, dims(source)[c])
            for c in range(coordinates)
        ]
        return [e.extract(source, [*leading, *(e.index(d) for d in range(outer, len(result)))])]

    return e.map([], result, [element(source)], body)
