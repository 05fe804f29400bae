"""Code generators of `onnxruntime` for ops that move elements."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from relay.byoc.kernels import Row
from relay.byoc.onnxruntime.arithmetic import NUMBERS, cast, coded, real
from relay.byoc.onnxruntime.graph import TO_FIRST, Graph
from relay.byoc.quantized import codes, dtype, parts_of
from relay.byoc.refusals import CODES, element_refusal, type_refusal
from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.op import rank, shape

MOVED = (*NUMBERS, *CODES)
FIRST_AXIS = tuple(TO_FIRST.index(axis) for axis in range(4))
"""The position in NCHW of each axis of NHWC."""


def type_check(op: Operation) -> str | None:
    return type_refusal(op, *MOVED)


def write_reshape(graph: Graph, op: relay.ReshapeOp) -> None:
    graph.define(op.result, graph.node("Reshape", [graph.read(op.input), graph.integers(shape(op.result))]))


def write_transpose(graph: Graph, op: relay.TransposeOp) -> None:
    graph.define(op.result, graph.node("Transpose", [graph.read(op.input)], perm=int_values(op.axes)))


def write_broadcast(graph: Graph, op: relay.BroadcastToOp) -> None:
    graph.define(op.result, graph.node("Expand", [graph.read(op.input), graph.integers(shape(op.result))]))


def write_pad(graph: Graph, op: relay.PadOp) -> None:
    first, widths = graph.layout(op.input), op.widths()
    if first:
        widths = [widths[axis] for axis in TO_FIRST]
    pads = [before for before, _ in widths] + [after for _, after in widths]
    inputs = [graph.read(op.input, first), graph.integers(pads), graph.number(to_numpy(op.pad_value), dtype(op.input))]
    graph.define(op.result, graph.node("Pad", inputs), first)


def write_slice(graph: Graph, op: relay.StridedSliceOp) -> None:
    """Generate a slice. An end before the first element is -1 in relay and the lowest int64 in ONNX."""
    first, axes = graph.layout(op.input), list(range(rank(op.input)))
    ends = [
        np.iinfo(np.int64).min if stride < 0 and end == -1 else end
        for end, stride in zip(int_values(op.end), int_values(op.strides), strict=True)
    ]
    numbers = [int_values(op.begin), ends, [FIRST_AXIS[a] for a in axes] if first else axes, int_values(op.strides)]
    name = graph.node("Slice", [graph.read(op.input, first), *(graph.integers(row) for row in numbers)])
    graph.define(op.result, name, first)


def indices_refusal(op: relay.TakeOp | relay.GatherNdOp) -> str | None:
    if dtype(op.indices).name not in ("int32", "int64"):
        return f"its indices are {dtype(op.indices)}"
    if isinstance(op, relay.TakeOp) and op.mode.data == "wrap":
        return "its indices wrap"
    if isinstance(op, relay.TakeOp) and op.axis is None:
        return "it has no axis"
    return element_refusal(op.input, "moves", *MOVED, "bool")


def write_take(graph: Graph, op: relay.TakeOp) -> None:
    """Generate a gather. Indices that may be out of range are clamped first, since ONNX Runtime fails on them."""
    dims, axis = op.lines()
    size, found = dims[axis], constant_of(op.indices)
    indices = graph.read(op.indices)
    if found is None or ((found < 0) | (found >= size)).any():
        indices = graph.node("Clip", [indices, *(graph.constant(bound, dtype(op.indices)) for bound in (0, size - 1))])
    graph.define(op.result, graph.node("Gather", [graph.read(op.input), indices], axis=axis))


def write_gather(graph: Graph, op: relay.GatherNdOp) -> None:
    sizes = np.array(shape(op.input)[: shape(op.indices)[-1]], np.int64)
    indices = cast(graph, graph.read(op.indices), np.dtype(np.int64))
    indices = graph.node("Max", [indices, graph.constant(np.zeros_like(sizes))])
    indices = graph.node("Min", [indices, graph.constant(sizes - 1)])
    graph.define(op.result, graph.node("GatherND", [graph.read(op.input), indices]))


def write_concatenation(graph: Graph, op: relay.ConcatenateOp) -> None:
    first = graph.layout(*op.inputs)
    names = [graph.read(value, first) for value in op.inputs]
    graph.define(op.result, graph.node("Concat", names, axis=concatenated_axis(op, first)), first)


def concatenated_axis(op: relay.ConcatenateOp | qnn.ConcatenateOp, first: bool) -> int:
    axis = op.axis.value.data % rank(op.result)
    return FIRST_AXIS[axis] if first else axis


def write_rescaled_concatenation(graph: Graph, op: qnn.ConcatenateOp) -> None:
    first, type, target = graph.layout(*op.inputs), dtype(op.result), codes(op.output_scale, op.output_zero_point)
    names: list[str] = []
    for value, source in parts_of(op):
        name = graph.read(value, first)
        names.append(name if source == target else coded(graph, real(graph, name, source, type), target, type))
    graph.define(op.result, graph.node("Concat", names, axis=concatenated_axis(op, first)), first)


ROWS: dict[type[Operation], Row[Graph]] = {
    relay.ReshapeOp: Row(lambda op: type_refusal(op, *MOVED, "bool"), write_reshape),
    relay.TransposeOp: Row(lambda op: type_refusal(op, *MOVED, "bool"), write_transpose),
    relay.BroadcastToOp: Row(type_check, write_broadcast),
    relay.PadOp: Row(type_check, write_pad),
    relay.StridedSliceOp: Row(type_check, write_slice),
    relay.TakeOp: Row(indices_refusal, write_take),
    relay.GatherNdOp: Row(indices_refusal, write_gather),
    relay.ConcatenateOp: Row(type_check, write_concatenation),
    qnn.ConcatenateOp: Row(lambda op: type_refusal(op, *CODES), write_rescaled_concatenation),
}
