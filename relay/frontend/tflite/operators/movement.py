"""Imports operators that move elements, for every type; input and output of quantized types must have one scale."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints, scalar_attr
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
    return [importer.emit(relay.TileOp, [importer.value(data)], {"reps": ints(reps)}).result]


@operator("REVERSE_V2", versions=(1, 4), inputs=(2, 2))
def reverse(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    axes = node.axes(node.input(1), len(data.shape))
    return [importer.emit(relay.ReverseOp, [importer.value(data)], {"axis": ints(axes)}).result]


@operator("REVERSE_SEQUENCE", versions=(1, 1), inputs=(2, 2))
def reverse_sequence(importer: Importer, node: Node) -> list[SSAValue]:
    data, lengths = node.input(0), node.input(1)
    same_type(node, data)
    if lengths.type not in INDICES:
        raise node.refuse_types(lengths)
    properties: dict[str, Attribute] = {
        name: IntegerAttr(node.axis(node.integer(option), len(data.shape)), i64)
        for name, option in (("seq_axis", "seq_dim"), ("batch_axis", "batch_dim"))
    }
    values = [importer.value(data), importer.value(lengths)]
    return [importer.emit(relay.ReverseSequenceOp, values, properties).result]


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
    properties: dict[str, Attribute] = {
        "block_shape": ints(sizes),
        "paddings": ints(around),
        "pad_value": scalar_attr(zero, importer.element(data)),
    }
    return [importer.emit(relay.SpaceToBatchNdOp, [importer.value(data)], properties).result]


@operator("BATCH_TO_SPACE_ND", versions=(1, 4), inputs=(3, 3))
def batch_to_space_nd(importer: Importer, node: Node) -> list[SSAValue]:
    sizes, around = blocks(node)
    properties = {"block_shape": ints(sizes), "crops": ints(around)}
    return [importer.emit(relay.BatchToSpaceNdOp, [importer.value(node.input(0))], properties).result]


@operator("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", versions=(1, 2), inputs=(1, 1))
def subpixels(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    node.shape(data, 4)
    properties = {"block_size": IntegerAttr(node.positive("block_size")[0], i64)}
    op = relay.SpaceToDepthOp if node.operator.kind == "SPACE_TO_DEPTH" else relay.DepthToSpaceOp
    return [importer.emit(op, [importer.value(data)], properties).result]


@operator("MIRROR_PAD", versions=(1, 3), inputs=(2, 2))
def mirror_pad(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    properties = {"pad_width": ints(node.numbers(node.input(1))), "mode": StringAttr(node.word("mode"))}
    return [importer.emit(relay.MirrorPadOp, [importer.value(data)], properties).result]


@operator("MATRIX_SET_DIAG", versions=(1, 1), inputs=(2, 2))
def matrix_set_diag(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MATRIX_SET_DIAG, which replaces the main diagonal."""
    data, diagonal = node.input(0), node.input(1)
    same_type(node, data, diagonal)
    return [importer.emit(relay.MatrixSetDiagOp, [importer.value(data), importer.value(diagonal)]).result]


@operator("MATRIX_DIAG", versions=(1, 1), inputs=(1, 1))
def matrix_diag(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MATRIX_DIAG: a square matrix with this diagonal, and zeros elsewhere."""
    diagonal = node.input(0)
    same_type(node, diagonal)
    if not diagonal.shape:
        raise node.malformed("the input has rank 0")
    dims = ints([*diagonal.shape, diagonal.shape[-1]])
    zeros = importer.emit(relay.ZerosOp, [], {"shape": dims, "dtype": importer.element(diagonal)}).result
    return [importer.emit(relay.MatrixSetDiagOp, [zeros, importer.value(diagonal)]).result]


@operator("SCATTER_ND", versions=(1, 1), inputs=(3, 3))
def scatter_nd(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SCATTER_ND with a constant shape; updates at the same index are added, booleans combined by `or`."""
    indices, updates, dims = node.inputs()
    if indices.type != "INT32" or updates.type != node.output().type:
        raise node.refuse_types(indices, updates, node.output())
    truths, value = updates.type == "BOOL", importer.value(updates)
    element = i32 if truths else importer.element(updates)
    if truths:
        value = importer.emit(relay.CastOp, [value], {"dtype": i32}).result
    zeros = importer.emit(relay.ZerosOp, [], {"shape": ints(node.numbers(dims)), "dtype": element}).result
    result = importer.emit(
        relay.ScatterNdOp, [zeros, importer.value(indices), value], {"mode": StringAttr("add")}
    ).result
    return [importer.emit(relay.CastOp, [result], {"dtype": i1}).result if truths else result]


@operator("DYNAMIC_UPDATE_SLICE", versions=(1, 4), inputs=(3, 3))
def dynamic_update_slice(importer: Importer, node: Node) -> list[SSAValue]:
    data, update, start = node.inputs()
    same_type(node, data, update)
    if start.type not in INDICES:
        raise node.refuse_types(start)
    values = [importer.value(each) for each in (data, update, start)]
    return [importer.emit(relay.DynamicUpdateSliceOp, values).result]


@operator("TOPK_V2", versions=(1, 3), inputs=(2, 2), outputs=(2, 2))
def topk(importer: Importer, node: Node) -> list[SSAValue]:
    """Import TOPK_V2: the largest elements along the last axis and their indices, the first of equal ones first."""
    data, indices = node.input(0), node.output(1)
    same_type(node, data)
    if indices.type != "INT32" or data.type == "BOOL":
        raise node.refuse_types(data, indices)
    properties = {"k": IntegerAttr(one_number(node, node.input(1)), i64), "is_ascend": BoolAttr.from_bool(False)}
    return list(importer.emit(relay.TopkOp, [importer.value(data)], properties).results)


@operator("BITCAST", versions=(1, 1), inputs=(1, 1))
def bitcast(importer: Importer, node: Node) -> list[SSAValue]:
    """Import BITCAST between types of one width."""
    data, out = node.input(0), node.output()
    if numpy_type(data).itemsize != numpy_type(out).itemsize or "BOOL" in (data.type, out.type):
        raise node.refuse_types(data, out)
    return [importer.emit(relay.ReinterpretOp, [importer.value(data)], {"dtype": importer.element(out)}).result]
