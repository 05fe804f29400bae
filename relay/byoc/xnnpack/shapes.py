"""Code generators of `xnnpack` for ops that move elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from relay.byoc.kernels import Row
from relay.byoc.quantized import dtype, parts_of
from relay.byoc.refusals import CODES, FLOAT, axes_refusal, element_refusal, type_refusal
from relay.byoc.regions import constant_of
from relay.byoc.scales import declared
from relay.byoc.xnnpack.writer import Writer
from relay.dialects import qnn, relay
from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.op import rank, shape

NUMBERS = (FLOAT, "int32", "int64", *CODES)
MOST_AXES = 5
"""The maximum rank that TFLite's PAD, STRIDED_SLICE and TRANSPOSE support."""


def moved(op: Operation) -> str | None:
    """The reason why an op that moves elements is not supported; None if it is."""
    return type_refusal(op, *NUMBERS) or axes_refusal(op.operands, MOST_AXES)


def same_scale(writer: Writer, op: Operation, index: int = 0) -> int:
    """The number of the .tflite tensor that holds the operand `index` with the scale and zero point of the op's first
    result. If the operand has others, this is a copy that is marked with the result's."""
    return writer.read(op.operands[index], writer.scales.get(writer.region.of(op.results[0])))


def write_reshape(writer: Writer, op: relay.ReshapeOp) -> None:
    sizes = np.array(shape(op.result), np.int32)
    inputs = [same_scale(writer, op), writer.model.constant(sizes)]
    writer.emit("RESHAPE", inputs, op.result, {"new_shape": sizes})


def transpose_refusal(op: relay.TransposeOp) -> str | None:
    return moved(op) if shape(op.result) else "it has no axes, and LiteRT's TRANSPOSE writes beside such a number"


def write_transpose(writer: Writer, op: relay.TransposeOp) -> None:
    writer.emit("TRANSPOSE", [same_scale(writer, op), writer.integers(int_values(op.axes))], op.result)


def write_broadcast(writer: Writer, op: relay.BroadcastToOp) -> None:
    writer.emit("BROADCAST_TO", [same_scale(writer, op), writer.integers(shape(op.result))], op.result)


def write_pad(writer: Writer, op: relay.PadOp) -> None:
    """Write a pad: PAD if the filler is real zero, else PADV2."""
    scale = writer.scales.get(writer.region.of(op.result))
    filler = to_numpy(op.pad_value)
    widths = writer.model.constant(np.array(op.widths(), np.int32).reshape(-1, 2))
    inputs = [same_scale(writer, op), widths]
    if filler == (0 if scale is None else scale.zero_point):
        writer.emit("PAD", inputs, op.result)
    else:
        writer.emit("PADV2", [*inputs, writer.constant(filler, scale)], op.result)


def write_slice(writer: Writer, op: relay.StridedSliceOp) -> None:
    """Write a slice. An end before the first element is -1 in relay, and a bit of the end mask in TFLite."""
    begin, end, strides = int_values(op.begin), int_values(op.end), int_values(op.strides)
    mask = sum(1 << axis for axis, (e, s) in enumerate(zip(end, strides, strict=True)) if s < 0 and e == -1)
    inputs = [same_scale(writer, op), *(writer.integers(numbers) for numbers in (begin, end, strides))]
    writer.emit("STRIDED_SLICE", inputs, op.result, {"end_mask": mask})


def indices_refusal(op: relay.TakeOp | relay.GatherNdOp, sizes: Sequence[int]) -> str | None:
    """The reason why indices are not supported: they must be constant and in range, since TFLite refuses indices out of
    range and relay clamps them."""
    indices = constant_of(op.indices)
    if indices is None:
        return "its indices are computed at run time"
    if indices.dtype.name not in ("int32", "int64") or ((indices < 0) | (indices >= np.array(sizes))).any():
        return "its indices are out of range"
    return element_refusal(op.input, "moves", *NUMBERS)


def take_refusal(op: relay.TakeOp) -> str | None:
    if op.axis is None:
        return "it has no axis"
    dims, axis = op.lines()
    return indices_refusal(op, [dims[axis]])


def gather_refusal(op: relay.GatherNdOp) -> str | None:
    return indices_refusal(op, shape(op.input)[: shape(op.indices)[-1]])


def write_take(writer: Writer, op: relay.TakeOp) -> None:
    inputs = [same_scale(writer, op), writer.read(op.indices)]
    writer.emit("GATHER", inputs, op.result, {"axis": op.lines()[1]})


def write_gather(writer: Writer, op: relay.GatherNdOp) -> None:
    writer.emit("GATHER_ND", [same_scale(writer, op), writer.read(op.indices)], op.result)


def write_concatenation(writer: Writer, op: relay.ConcatenateOp) -> None:
    inputs = [same_scale(writer, op, index) for index in range(len(op.inputs))]
    writer.emit("CONCATENATION", inputs, op.result, {"axis": op.axis.value.data % rank(op.result)})


def concatenation_refusal(op: qnn.ConcatenateOp) -> str | None:
    said = declared(op)
    if dtype(op.result) != np.uint8 and any(said[value] != said[op.result] for value in op.inputs):
        return "TFLite rescales only uint8 codes when it concatenates them"
    return type_refusal(op, *CODES)


def write_rescaled_concatenation(writer: Writer, op: qnn.ConcatenateOp) -> None:
    inputs = [writer.read(value, source) for value, source in parts_of(op)]
    writer.emit("CONCATENATION", inputs, op.result, {"axis": op.axis.value.data % rank(op.result)})


ROWS: dict[type[Operation], Row[Writer]] = {
    relay.ReshapeOp: Row(lambda op: type_refusal(op, *NUMBERS, "bool"), write_reshape),
    relay.TransposeOp: Row(transpose_refusal, write_transpose),
    relay.BroadcastToOp: Row(moved, write_broadcast),
    relay.PadOp: Row(moved, write_pad),
    relay.StridedSliceOp: Row(moved, write_slice),
    relay.TakeOp: Row(take_refusal, write_take),
    relay.GatherNdOp: Row(gather_refusal, write_gather),
    relay.ConcatenateOp: Row(lambda op: type_refusal(op, *NUMBERS), write_concatenation),
    qnn.ConcatenateOp: Row(concatenation_refusal, write_rescaled_concatenation),
}
