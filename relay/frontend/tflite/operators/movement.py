"""Imports operators that move elements, for every type; input and output of quantized types must have one scale."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import scalar_attr
from relay.frontend.tflite.builder import Importer, numpy_type
from relay.frontend.tflite.node import INDICES, Node
from relay.frontend.tflite.operators.creation import one_number, same_type
from relay.frontend.tflite.table import operator


@operator("TILE", versions=(1, 3), inputs=(2, 2))
def tile(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    reps = node.numbers(node.input(1))
    if len(reps) != len(data.shape):
        raise node.malformed(f"{len(reps)} multiples for shape {data.shape}")
    return [importer.call(relay.TileOp, importer.value(data), reps=reps)]


@operator("REVERSE_V2", versions=(1, 4), inputs=(2, 2))
def reverse(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    axes = node.axes(node.input(1), len(data.shape))
    return [importer.call(relay.ReverseOp, importer.value(data), axis=axes)]


@operator("REVERSE_SEQUENCE", versions=(1, 1), inputs=(2, 2))
def reverse_sequence(importer: Importer, node: Node) -> list[SSAValue]:
    data, lengths = node.input(0), node.input(1)
    same_type(node, data)
    if lengths.type not in INDICES:
        raise node.refuse_types(lengths)
    sequence, batch = (node.axis(node.integer(option), len(data.shape)) for option in ("seq_dim", "batch_dim"))
    values = [importer.value(data), importer.value(lengths)]
    return [importer.call(relay.ReverseSequenceOp, *values, seq_axis=sequence, batch_axis=batch)]


def blocks(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The size of a block along each of its axes; and for each of these axes two numbers: the padding, or crop, before
    and after it."""
    sizes, around = node.numbers(node.input(1)), node.numbers(node.input(2))
    same_type(node, node.input(0))
    return sizes, around


@operator("SPACE_TO_BATCH_ND", versions=(1, 4), inputs=(3, 3))
def space_to_batch_nd(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SPACE_TO_BATCH_ND, which pads with real zero."""
    data, (sizes, around) = node.input(0), blocks(node)
    zero = node.codes(data).zero_point if data.quantization is not None else 0
    fill = scalar_attr(zero, importer.element(data))
    value = importer.value(data)
    return [importer.call(relay.SpaceToBatchNdOp, value, block_shape=sizes, paddings=around, pad_value=fill)]


@operator("BATCH_TO_SPACE_ND", versions=(1, 4), inputs=(3, 3))
def batch_to_space_nd(importer: Importer, node: Node) -> list[SSAValue]:
    sizes, around = blocks(node)
    return [importer.call(relay.BatchToSpaceNdOp, importer.value(node.input(0)), block_shape=sizes, crops=around)]


@operator("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", versions=(1, 2), inputs=(1, 1))
def subpixels(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    node.shape(data, 4)
    op = relay.SpaceToDepthOp if node.operator.kind == "SPACE_TO_DEPTH" else relay.DepthToSpaceOp
    return [importer.call(op, importer.value(data), block_size=node.positive("block_size")[0])]


@operator("MIRROR_PAD", versions=(1, 3), inputs=(2, 2))
def mirror_pad(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    widths, mode = node.numbers(node.input(1)), node.word("mode")
    return [importer.call(relay.MirrorPadOp, importer.value(data), pad_width=widths, mode=mode)]


@operator("MATRIX_SET_DIAG", versions=(1, 1), inputs=(2, 2))
def matrix_set_diag(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MATRIX_SET_DIAG, which replaces the main diagonal."""
    data, diagonal = node.input(0), node.input(1)
    same_type(node, data, diagonal)
    return [importer.call(relay.MatrixSetDiagOp, importer.value(data), importer.value(diagonal))]


@operator("MATRIX_DIAG", versions=(1, 1), inputs=(1, 1))
def matrix_diag(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MATRIX_DIAG: a square matrix with this diagonal, and zeros elsewhere."""
    diagonal = node.input(0)
    same_type(node, diagonal)
    if not diagonal.shape:
        raise node.malformed("the input has rank 0")
    dims = [*diagonal.shape, diagonal.shape[-1]]
    zeros = importer.call(relay.ZerosOp, shape=dims, dtype=importer.element(diagonal))
    return [importer.call(relay.MatrixSetDiagOp, zeros, importer.value(diagonal))]


@operator("SCATTER_ND", versions=(1, 1), inputs=(3, 3))
def scatter_nd(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SCATTER_ND with a constant shape; updates at the same index are added, booleans combined by `or`."""
    indices, updates, dims = node.inputs()
    if indices.type != "INT32" or updates.type != node.output().type:
        raise node.refuse_types(indices, updates, node.output())
    own = importer.element(updates)
    value = importer.cast(importer.value(updates), i32 if own == i1 else own)
    zeros = importer.call(relay.ZerosOp, shape=node.numbers(dims), dtype=importer.element(value))
    result = importer.call(relay.ScatterNdOp, zeros, importer.value(indices), value, mode="add")
    return [importer.cast(result, own)]


@operator("DYNAMIC_UPDATE_SLICE", versions=(1, 4), inputs=(3, 3))
def dynamic_update_slice(importer: Importer, node: Node) -> list[SSAValue]:
    data, update, start = node.inputs()
    same_type(node, data, update)
    if start.type not in INDICES:
        raise node.refuse_types(start)
    values = [importer.value(each) for each in (data, update, start)]
    return [importer.call(relay.DynamicUpdateSliceOp, *values)]


@operator("TOPK_V2", versions=(1, 3), inputs=(2, 2), outputs=(2, 2))
def topk(importer: Importer, node: Node) -> list[SSAValue]:
    """Import TOPK_V2: the largest elements along the last axis and their indices, the first of equal ones first."""
    data, indices = node.input(0), node.output(1)
    same_type(node, data)
    if indices.type != "INT32" or data.type == "BOOL":
        raise node.refuse_types(data, indices)
    count = one_number(node, node.input(1))
    return list(importer.several(relay.TopkOp, importer.value(data), k=count, is_ascend=False))


@operator("BITCAST", versions=(1, 1), inputs=(1, 1))
def bitcast(importer: Importer, node: Node) -> list[SSAValue]:
    """Import BITCAST between types of one width."""
    data, out = node.input(0), node.output()
    if numpy_type(data).itemsize != numpy_type(out).itemsize or "BOOL" in (data.type, out.type):
        raise node.refuse_types(data, out)
    return [importer.call(relay.ReinterpretOp, importer.value(data), dtype=importer.element(out))]
