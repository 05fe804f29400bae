"""Ops that move numbers without computing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import Access, broadcast, copy, dense, nest, row_major, wrap
from relay.byoc.c.program import Tensor
from relay.byoc.c.rows import pointwise
from relay.dialects import qnn, relay
from relay.dialects.attributes import elements, int_values, to_numpy
from relay.errors import Unsupported
from relay.interpreters.meaning import number
from relay.transforms.location import place


def constant(e: Emitter, op: relay.ConstantOp) -> None:
    label = op.label.data if op.label is not None else "constant"
    e.tensors[op.result] = e.constant(to_numpy(op.value), role(op), label, weight=True)


def role(op: relay.ConstantOp) -> str:
    """What the first user calls the constant."""
    use = next(iter(op.result.uses), None)
    if isinstance(user := use and use.operation, relay.Conv2dBase | relay.DenseBase):
        return "kernel"
    return "bias" if isinstance(user, relay.BiasAddOp) else "constant"


def reshape(e: Emitter, op: relay.ReshapeOp) -> None:
    e.shape(op.result)
    e.alias(op.result, op.input)


def move(e: Emitter, op: Operation, source: Access, target: Access, extents: Sequence[int]) -> None:
    """One nest that copies an operand's elements to the result's."""
    type = e.type(op.operands[0]).name
    function = e.function(op.name, parameters(type, type), copy(extents, source, target))
    e.call(op, function, e.read(op.operands[0]), e.write(op.results[0]))


def parameters(input: str, output: str) -> list[str]:
    """Of a function from one tensor to another."""
    return [f"const {input} *restrict input", f"{output} *restrict output"]


def transpose(e: Emitter, op: relay.TransposeOp) -> None:
    strides, extents = row_major(e.shape(op.input)), e.shape(op.result)
    move(e, op, Access(tuple(strides[axis] for axis in int_values(op.axes))), dense(extents), extents)


def broadcast_to(e: Emitter, op: relay.BroadcastToOp) -> None:
    extents = e.shape(op.result)
    move(e, op, broadcast(e.shape(op.input), extents), dense(extents), extents)


def strided_slice(e: Emitter, op: relay.StridedSliceOp) -> None:
    dense_strides, extents = row_major(e.shape(op.input)), e.shape(op.result)
    begin, strides = int_values(op.begin), int_values(op.strides)
    offset = sum(b * d for b, d in zip(begin, dense_strides, strict=True))
    source = Access(tuple(s * d for s, d in zip(strides, dense_strides, strict=True)), offset)
    move(e, op, source, dense(extents), extents)


def pad(e: Emitter, op: relay.PadOp) -> None:
    extents, shape, type = e.shape(op.result), e.shape(op.input), e.type(op.input)
    strides, before = row_major(extents), [width[0] for width in op.widths()]
    target = Access(strides, sum(b * s for b, s in zip(before, strides, strict=True)))
    value = type.literal(to_numpy(op.pad_value).item())
    fill = nest(extents, [dense(extents)], lambda at: f"output[{at[0]}] = {value};")
    function = e.function(op.name, parameters(type.name, type.name), fill + copy(shape, dense(shape), target))
    e.call(op, function, e.read(op.input), e.write(op.result))


def concatenate(e: Emitter, op: relay.ConcatenateOp) -> None:
    join(e, op, op.axis.value.data, [None] * len(op.inputs))


def qnn_concatenate(e: Emitter, op: qnn.ConcatenateOp) -> None:
    join(e, op, op.axis.value.data, [rescaling(e, op, number) for number in range(len(op.inputs))])


def rescaling(e: Emitter, op: qnn.ConcatenateOp, which: int) -> Tensor | None:
    """The table of an operand's codes as the result's; None where they are the same."""
    scale, zero_point = to_numpy(op.input_scales)[which], to_numpy(op.input_zero_points)[which]
    if scale == to_numpy(op.output_scale).astype(np.float32) and zero_point == number(op.output_zero_point):
        return None
    if e.type(op.result).size != 1:
        raise Unsupported(place(op), "16-bit codes of several scales are not supported by c")
    its = {"input_scales": elements(np.asarray([scale])), "input_zero_points": elements(np.asarray([zero_point]))}
    alone = qnn.ConcatenateOp.make([op.inputs[which]], {**op.properties, **its, "axis": IntegerAttr(0, i64)})
    table = pointwise.table_of(e, alone, op.inputs[which])
    alone.erase()
    return e.constant(table, "table", "codes of an operand as the result's")


def join(e: Emitter, op: Operation, axis: int, tables: Sequence[Tensor | None]) -> None:
    """Operands one after the other along an axis, each copied, or looked up in its table of codes."""
    extents, type = e.shape(op.results[0]), e.type(op.results[0])
    strides, offset, output = row_major(extents), 0, e.write(op.results[0])
    calls: list[str] = []
    for value, table in zip(op.operands, tables, strict=True):
        shape = e.shape(value)
        source, target = dense(shape), Access(strides, offset * strides[axis])
        offset += shape[axis]
        if table is None:
            function = e.function(op.name, parameters(type.name, type.name), copy(shape, source, target))
            calls.append(f"{function}({e.read(value)}, {output});")
            continue
        names = [f"const {type.name} *restrict table", *parameters(type.name, type.name)]
        lowest = -type.range[0]
        text = nest(shape, [source, target], lambda at, low=lowest: f"output[{at[1]}] = table[input[{at[0]}] + {low}];")
        calls.append(f"{e.function(op.name, names, text)}({e.touch(table)}, {e.read(value)}, {output});")
    e.step(op, "\n".join(calls))


def take(e: Emitter, op: relay.TakeOp) -> None:
    (dims, axis), indices = op.lines(), e.shape(op.indices)
    outer, size, inner = int(np.prod(dims[:axis])), dims[axis], int(np.prod(dims[axis + 1 :]))
    count = int(np.prod(indices))
    e.kernel("clamp")
    at = f"relay_clamp((int64_t)indices[j], 0, {size - 1})"
    if op.mode.data == "wrap":
        at = f"((int64_t)indices[j] % {size} + {size}) % {size}"
    body = f"const int64_t at = {at};\n" + (
        f"memcpy(output + (i * {count} + j) * {inner}, input + (i * {size} + (int32_t)at) * {inner}, "
        f"{inner} * sizeof *output);"
    )
    gather(e, op, op.indices, wrap([outer, count], body))


def gather_nd(e: Emitter, op: relay.GatherNdOp) -> None:
    dims, indices = e.shape(op.input), e.shape(op.indices)
    depth, strides = indices[-1], row_major(dims)
    inner, count = int(np.prod(dims[depth:])), int(np.prod(indices[:-1]))
    e.kernel("clamp")
    terms = [
        f"(int32_t)relay_clamp((int64_t)indices[i * {depth} + {k}], 0, {dims[k] - 1}) * {strides[k]}"
        for k in range(depth)
    ]
    body = f"memcpy(output + i * {inner}, input + {' + '.join(terms) or '0'}, {inner} * sizeof *output);"
    gather(e, op, op.indices, wrap([count], body))


def gather(e: Emitter, op: Operation, indices: SSAValue, body: str) -> None:
    """A function of the input and indices."""
    type, index = e.type(op.operands[0]).name, e.type(indices).name
    names = [f"const {type} *restrict input", f"const {index} *restrict indices", f"{type} *restrict output"]
    e.call(op, e.function(op.name, names, body), e.read(op.operands[0]), e.read(indices), e.write(op.results[0]))
