"""Code generators of `onednn` for pools, resized images, and ops that move elements."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from relay.byoc.kernels import Row
from relay.byoc.onednn.program import Step, Tensor
from relay.byoc.onednn.writer import Writer, scaling, type_refusal, window_options
from relay.byoc.quantized import codes, parts_of, pool_window
from relay.byoc.refusals import CODES, FLOAT
from relay.dialects import qnn, relay
from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.op import rank, shape

MOVED = (FLOAT, "int32", *CODES)


def pool(algorithm: str) -> Row[Writer]:
    def write(writer: Writer, op: relay.Pool2dOp) -> None:
        window = pool_window(op)
        options = window_options(window, kernel=window.size)
        source, result = writer.image(writer.read(op.data)), writer.image(writer.define(op.result))
        writer.emit(Step("pooling", (source,), result, algorithm, options=options))

    return Row(lambda op: type_refusal(op, FLOAT, *CODES), write)


def resize_refusal(op: relay.Resize2dOp) -> str | None:
    if op.method.data != "linear" or not op.half_pixel_centers.value.data:
        return "oneDNN resizes linearly between the centres of pixels only"
    return type_refusal(op, FLOAT, "uint8")


def write_resize(writer: Writer, op: relay.Resize2dOp) -> None:
    source, result = writer.image(writer.read(op.data)), writer.image(writer.define(op.result))
    writer.emit(Step("resampling", (source,), result, "linear_resampling"))


def write_reshape(writer: Writer, op: relay.ReshapeOp) -> None:
    """Generate nothing: the result is a view of the same buffer."""
    source = writer.read(op.input)
    writer.values[op.result] = Tensor.whole(source.buffer, shape(op.result), source.dtype)


def write_transpose(writer: Writer, op: relay.TransposeOp) -> None:
    writer.reorder(writer.read(op.input).permuted(int_values(op.axes)), writer.define(op.result))


def slice_refusal(op: relay.StridedSliceOp) -> str | None:
    steps = int_values(op.strides)
    if min(steps, default=1) < 0:
        return "it goes backwards"
    if any(s * n > size for s, n, size in zip(steps, shape(op.result), shape(op.input), strict=True)):
        return "its last step reaches over the end"
    return type_refusal(op, *MOVED)


def write_slice(writer: Writer, op: relay.StridedSliceOp) -> None:
    result = writer.define(op.result)
    view = writer.read(op.input).sliced(int_values(op.begin), int_values(op.strides), result.shape)
    writer.reorder(view, result)


def write_pad(writer: Writer, op: relay.PadOp) -> None:
    """Generate two copies: the filler to the whole result, then the input to the part of the result that is not
    padding."""
    result, source = writer.define(op.result), writer.read(op.input)
    filler = writer.constant(np.full(result.shape, to_numpy(op.pad_value)))
    writer.reorder(filler, result)
    before = [first for first, _ in op.widths()]
    writer.reorder(source, result.sliced(before, [1] * len(before), source.shape))


def write_concatenation(writer: Writer, op: relay.ConcatenateOp) -> None:
    join(writer, op, [writer.read(value) for value in op.inputs])


def join(writer: Writer, op: relay.ConcatenateOp | qnn.ConcatenateOp, parts: list[Tensor]) -> None:
    options = {"axis": op.axis.value.data % rank(op.result)}
    writer.emit(Step("concat", tuple(parts), writer.define(op.result), options=options))


def write_rescaled_concatenation(writer: Writer, op: qnn.ConcatenateOp) -> None:
    target, parts = codes(op.output_scale, op.output_zero_point), list[Tensor]()
    for value, source in parts_of(op):
        part = writer.read(value)
        if source != target:
            rescaled = writer.temporary(part.shape, part.dtype)
            writer.reorder(part, rescaled, {"src": scaling(source), "dst": scaling(target)})
            part = rescaled
        parts.append(part)
    join(writer, op, parts)


ROWS: dict[type[Operation], Row[Writer]] = {
    relay.MaxPool2dOp: pool("pool_max"),
    relay.AvgPool2dOp: pool("pool_avg"),
    relay.Resize2dOp: Row(resize_refusal, write_resize),
    relay.ReshapeOp: Row(lambda op: type_refusal(op, *MOVED), write_reshape),
    relay.TransposeOp: Row(lambda op: type_refusal(op, *MOVED), write_transpose),
    relay.StridedSliceOp: Row(slice_refusal, write_slice),
    relay.PadOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_pad),
    relay.ConcatenateOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_concatenation),
    qnn.ConcatenateOp: Row(lambda op: type_refusal(op, *CODES), write_rescaled_concatenation),
}
