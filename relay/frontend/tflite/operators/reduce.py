"""Imports reductions: MEAN, SUM, REDUCE_MAX, REDUCE_MIN, ARG_MAX, ARG_MIN."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import BoolAttr, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import ints
from relay.dialects.relay import AllOp, AnyOp, ArgmaxOp, ArgminOp, CastOp, DivideOp, MaxOp, MinOp, SumOp
from relay.frontend.importing.builder import multiplier_attrs, number, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, INDICES, Node
from relay.frontend.tflite.table import EVERYWHERE, operator
from relay.interpreters.arithmetic import quantize_multiplier


@operator("MEAN", versions=(1, 3), inputs=(2, 2), known={"tflm": "INT8"})
def mean(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MEAN; means of plain integers are truncated towards zero. Quantized: the integer multiplier is shifted
    left, so that little precision is lost, and then divided by the number of elements."""
    data, out = node.input(0), node.output()
    properties = reduction(node)
    count = math.prod(data.shape[axis] for axis in node.axes(node.input(1), len(data.shape)))
    value = reduced(importer, node)
    if data.type == out.type == "FLOAT32":
        total = importer.emit(SumOp, [value], properties).result
        return [importer.emit(DivideOp, [total, importer.scalar(count, total)]).result]
    if data.type == out.type and data.type in INDICES:
        wide = importer.emit(SumOp, [importer.emit(CastOp, [value], {"dtype": i64}).result], properties).result
        whole = importer.emit(DivideOp, [wide, importer.scalar(count, wide)]).result
        return [importer.emit(CastOp, [whole], {"dtype": importer.element(out)}).result]
    if data.type != out.type or data.type not in ALL_CODES:
        raise node.refuse_types(data, out)
    source, target = node.codes(data), node.codes(out)
    multiplier, shift = quantize_multiplier(float(np.float64(source.scale) / np.float64(target.scale)))
    doublings = min(count.bit_length() - 1, 32, 31 + shift)
    properties |= {
        "input_scale": real(source.scale),
        "input_zero_point": number(source.zero_point),
        "output_scale": real(target.scale),
        "output_zero_point": number(target.zero_point),
        **multiplier_attrs(((multiplier << doublings) // count, shift - doublings)),
    }
    return [importer.emit(qnn.MeanOp, [value], properties).result]


@operator("SUM", versions=(1, 2), inputs=(2, 2))
def total(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SUM; that of booleans is whether any is true. Quantized values are handled elsewhere, since LiteRT's
    reference kernel reads int8 as uint8."""
    data, out = node.input(0), node.output()
    if data.type != out.type or data.type not in (*INDICES, "FLOAT32", "BOOL"):
        raise node.refuse_types(data, out)
    op = AnyOp if data.type == "BOOL" else SumOp
    return [importer.emit(op, [reduced(importer, node)], reduction(node)).result]


@operator("REDUCE_MAX", versions=(1, 3), inputs=(2, 2), known=EVERYWHERE)
def reduce_max(importer: Importer, node: Node) -> list[SSAValue]:
    return [_extreme(importer, node, MaxOp)]


@operator("REDUCE_MIN", versions=(1, 3), inputs=(2, 2), known=EVERYWHERE)
def reduce_min(importer: Importer, node: Node) -> list[SSAValue]:
    return [_extreme(importer, node, MinOp)]


def _extreme(importer: Importer, node: Node, op: type[MaxOp] | type[MinOp]) -> SSAValue:
    data, out = node.input(0), node.output()
    if data.type != out.type or data.type not in (*ALL_CODES, *INDICES, "FLOAT32", "BOOL"):
        raise node.refuse_types(data, out)
    if data.type == "BOOL":
        logical = AnyOp if op is MaxOp else AllOp
        return importer.emit(logical, [reduced(importer, node)], reduction(node)).result
    if data.type in ALL_CODES:
        node.same_codes(data, out)
    return importer.emit(op, [reduced(importer, node)], reduction(node)).result


def reduced(importer: Importer, node: Node) -> SSAValue:
    """The data, to which a leading axis of size 1 is added if the node names no axes, since an op without axes would
    reduce over all."""
    data = node.input(0)
    value = importer.value(data)
    return value if node.axes(node.input(1), len(data.shape)) else importer.reshape(value, [1, *data.shape])


def reduction(node: Node) -> dict[str, Attribute]:
    """The properties `axis` and `keepdims` of the op that imports a reduction. The op's operand is the result of
    `reduced`, which adds a leading axis of size 1 if the node names no axes: then this axis is the one to reduce."""
    shape = node.input(0).shape
    axes = node.axes(node.input(1), len(shape))
    if 0 in shape:
        raise node.unsupported("nothing is reduced")
    if not axes:
        return {"axis": ints([0]), "keepdims": BoolAttr.from_bool(False)}
    return {"axis": ints(axes), "keepdims": BoolAttr.from_bool(node.flag("keep_dims"))}


@operator("ARG_MAX", versions=(1, 3), inputs=(2, 2), known=EVERYWHERE)
def arg_max(importer: Importer, node: Node) -> list[SSAValue]:
    return [_arg(importer, node, ArgmaxOp)]


@operator("ARG_MIN", versions=(1, 3), inputs=(2, 2), known=EVERYWHERE)
def arg_min(importer: Importer, node: Node) -> list[SSAValue]:
    return [_arg(importer, node, ArgminOp)]


def _arg(importer: Importer, node: Node, op: type[ArgmaxOp] | type[ArgminOp]) -> SSAValue:
    """The index of the first extreme element along one axis."""
    data, out = node.input(0), node.output()
    if data.type not in (*ALL_CODES, "INT32", "FLOAT32") or out.type not in INDICES:
        raise node.refuse_types(data, out)
    axes = node.axes(node.input(1), len(data.shape))
    if len(axes) != 1 or 0 in data.shape:
        raise node.malformed(f"an index along axes {axes} of shape {data.shape}")
    properties: dict[str, Attribute] = {"axis": ints(axes), "dtype": importer.element(out)}
    return importer.emit(op, [importer.value(data)], properties).result
