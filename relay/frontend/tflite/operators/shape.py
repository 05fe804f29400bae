"""Imports operators that reshape, transpose or pad tensors."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import scalar_attr
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, INDICES, Node
from relay.frontend.tflite.table import EVERYWHERE, operator


@operator("RESHAPE", versions=(1, 2), inputs=(1, 2), known=EVERYWHERE)
def reshape(importer: Importer, node: Node) -> list[SSAValue]:
    """Import RESHAPE; the new shape is a constant operand or, in old files, an option."""
    wanted = node.optional(1)
    shape = node.numbers(wanted) if wanted is not None else node.integers("new_shape")
    return [importer.reshape(importer.value(node.input(0)), shape)]


@operator("SQUEEZE", versions=(1, 2), inputs=(1, 1), known=EVERYWHERE)
def squeeze(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SQUEEZE: drop the named dimensions, or all, of size 1."""
    shape = node.input(0).shape
    named = {node.axis(axis, len(shape)) for axis in node.integers("squeeze_dims")}
    if any(shape[axis] != 1 for axis in named):
        raise node.malformed(f"cannot squeeze {sorted(named)} of shape {shape}")
    axes = named or {axis for axis, size in enumerate(shape) if size == 1}
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    return [importer.reshape(importer.value(node.input(0)), kept)]


@operator("EXPAND_DIMS", versions=(1, 1), inputs=(2, 2), known=EVERYWHERE)
def expand_dims(importer: Importer, node: Node) -> list[SSAValue]:
    """Import EXPAND_DIMS: insert a dimension of size 1."""
    shape = node.input(0).shape
    numbers = node.numbers(node.input(1))
    if len(numbers) != 1:
        raise node.malformed(f"has {len(numbers)} axes")
    axis = node.axis(numbers[0], len(shape) + 1)
    return [importer.reshape(importer.value(node.input(0)), [*shape[:axis], 1, *shape[axis:]])]


@operator("TRANSPOSE", versions=(1, 8), inputs=(2, 2), known=EVERYWHERE)
def transpose(importer: Importer, node: Node) -> list[SSAValue]:
    rank = len(node.input(0).shape)
    axes = [node.axis(axis, rank) for axis in node.numbers(node.input(1))]
    return [importer.call(relay.TransposeOp, importer.value(node.input(0)), axes=axes)]


@operator("PAD", versions=(1, 6), inputs=(2, 2), known=EVERYWHERE)
def pad(importer: Importer, node: Node) -> list[SSAValue]:
    """Import PAD with real zero, which is the zero point for quantized values."""
    out = node.output()
    return [_pad(importer, node, node.codes(out).zero_point if out.quantization is not None else 0)]


@operator("PADV2", versions=(1, 6), inputs=(3, 3), known=EVERYWHERE)
def pad_v2(importer: Importer, node: Node) -> list[SSAValue]:
    """Import PADV2 with a constant, which is a quantized value for quantized tensors."""
    filler = node.input(2)
    if filler.type != node.input(0).type or math.prod(filler.shape) != 1:
        raise node.malformed(f"{filler} of {filler.type} is no filler for {node.input(0).type}")
    return [_pad(importer, node, node.array(filler).reshape(-1)[0].item())]


def _pad(importer: Importer, node: Node, filler: float | int) -> SSAValue:
    data, widths = node.input(0), node.input(1)
    if data.type in ALL_CODES:
        node.same_codes(data, node.output())
    if widths.shape != (len(data.shape), 2):
        raise node.malformed(f"{widths} of shape {widths.shape} does not name two numbers per axis of {data.shape}")
    pad_value = scalar_attr(filler, importer.element(data))
    numbers = node.numbers(widths, (*INDICES, "INT8", "INT16"))
    return importer.call(relay.PadOp, importer.value(data), pad_width=numbers, pad_value=pad_value)
