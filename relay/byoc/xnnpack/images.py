"""Code generators of `xnnpack` for pools, resized images, and float ops with a clamp: kernels of one op, or of an op
and a clip."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from relay.byoc.kernels import Row
from relay.byoc.quantized import clip_bounds, dtype, pool_window
from relay.byoc.refusals import CODES, FLOAT, type_refusal
from relay.byoc.xnnpack.arithmetic import reduce, write_clip
from relay.byoc.xnnpack.model import OptionValue
from relay.byoc.xnnpack.writer import Writer, activation_refusal, code_activation, float_activation
from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import shape
from relay.frontend.importing.windows import window_padding

POOLS: dict[type[Operation], str] = {relay.MaxPool2dOp: "MAX_POOL_2D", relay.AvgPool2dOp: "AVERAGE_POOL_2D"}


def pool_padding(op: relay.Pool2dOp) -> str | None:
    """The padding of a pool as TFLite names it, VALID or SAME; None if it is neither."""
    window = pool_window(op)
    top, left, bottom, right = window.padding
    for name in ("VALID", "SAME"):
        rows = zip(shape(op.data)[1:3], window.size, window.strides, strict=True)
        if [window_padding(name, *numbers) for numbers in rows] == [(top, bottom), (left, right)]:
            return name
    return None


def pool_refusal(op: relay.Pool2dOp) -> str | None:
    if pool_padding(op) is None:
        return "its padding is neither SAME nor VALID"
    return type_refusal(op, FLOAT, *CODES)


def write_pool(writer: Writer, op: relay.Pool2dOp, result_of: Operation, activation: str) -> None:
    window, result = pool_window(op), result_of.results[0]
    options: dict[str, OptionValue] = {
        "padding": pool_padding(op) or "VALID",
        "stride_h": window.strides[0],
        "stride_w": window.strides[1],
        "filter_height": window.size[0],
        "filter_width": window.size[1],
        "fused_activation_function": activation,
    }
    writer.emit(POOLS[type(op)], [writer.read(op.data, writer.scales.get(writer.region.of(result)))], result, options)


FUSED: dict[type[Operation], str] = {relay.AddOp: "ADD", relay.SubtractOp: "SUB", relay.MultiplyOp: "MUL"}
"""The operators on floats, besides pools, that have a fused activation."""


def clipped_refusal(ops: Sequence[Operation]) -> str | None:
    """Return the reason why a pool, or a sum, difference or product of floats (`FUSED`), cannot be written together
    with the clip that follows it; None if it can."""
    first, last = ops
    if not isinstance(last, relay.ClipOp):
        return f"{last.name} is no activation"
    if isinstance(first, relay.Pool2dOp):
        return pool_refusal(first) or (
            activation_refusal(float_activation(clip_bounds(last))) if dtype(last.input).name == FLOAT else None
        )
    if type(first) not in FUSED:
        return f"{first.name} has no activation"
    return type_refusal(first, FLOAT) or activation_refusal(float_activation(clip_bounds(last)))


def write_clipped(writer: Writer, ops: Sequence[Operation]) -> None:
    """Write an op and a clip as one operator with a fused activation; as two operators if a pool of quantized values is
    clipped to bounds that are those of no activation."""
    first, last = ops
    assert isinstance(last, relay.ClipOp)
    scale = writer.scales.get(writer.region.of(last.result))
    if scale is None:
        activation = float_activation(clip_bounds(last))
    else:
        activation = code_activation(clip_bounds(last), scale, dtype(last.result))
    if isinstance(first, relay.Pool2dOp):
        write_pool(writer, first, first if activation is None else last, activation or "NONE")
        if activation is None:
            write_clip(writer, last)
    else:
        fused = {"fused_activation_function": activation or "NONE"}
        writer.emit(FUSED[type(first)], list(first.operands), last.result, fused)


def write_mean(writer: Writer, ops: Sequence[Operation]) -> None:
    total, quotient = ops
    assert isinstance(total, relay.SumOp)
    reduce(writer, "MEAN", total.input, total, quotient.results[0])


def write_resize(writer: Writer, op: relay.Resize2dOp) -> None:
    kind = "RESIZE_BILINEAR" if op.method.data == "linear" else "RESIZE_NEAREST_NEIGHBOR"
    options: dict[str, OptionValue] = {
        "align_corners": bool(op.align_corners.value.data),
        "half_pixel_centers": bool(op.half_pixel_centers.value.data),
    }
    data = writer.read(op.data, writer.scales.get(writer.region.of(op.result)))
    writer.emit(kind, [data, writer.integers(int_values(op.size))], op.result, options)


ROWS: dict[type[Operation], Row[Writer]] = {
    relay.MaxPool2dOp: Row(pool_refusal, lambda writer, op: write_pool(writer, op, op, "NONE")),
    relay.AvgPool2dOp: Row(pool_refusal, lambda writer, op: write_pool(writer, op, op, "NONE")),
    relay.Resize2dOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_resize),
}
