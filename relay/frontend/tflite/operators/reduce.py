"""Imports reductions: MEAN, SUM, REDUCE_MAX, REDUCE_MIN, ARG_MAX, ARG_MIN."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.op import TensorOp
from relay.dialects.relay import AllOp, AnyOp, ArgmaxOp, ArgminOp, DivideOp, MaxOp, MinOp, ProdOp, SumOp
from relay.frontend.importing.builder import multiplier_attrs, parameters
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, INDICES, Node
from relay.frontend.tflite.table import EVERYWHERE, operator
from relay.interpreters.arithmetic import quantize_multiplier


@operator("MEAN", versions=(1, 3), inputs=(2, 2), known={"tflm": "INT8"})
def mean(importer: Importer, node: Node) -> list[SSAValue]:
    """Import MEAN; means of plain integers are truncated towards zero. Quantized: the integer multiplier is shifted
    left, so that little precision is lost, and then divided by the number of elements."""
    data, out = node.input(0), node.output()
    count = math.prod(data.shape[axis] for axis in node.axes(node.input(1), len(data.shape)))
    if count == 0:
        raise node.unsupported("nothing is reduced")
    if data.type == out.type == "FLOAT32":
        total = reduced(importer, node, SumOp)
        return [importer.call(DivideOp, total, importer.scalar(count, total))]
    if data.type == out.type and data.type in INDICES:
        wide = reduced(importer, node, SumOp, i64)
        whole = importer.call(DivideOp, wide, importer.scalar(count, wide))
        return [importer.cast(whole, importer.element(out))]
    node.one_type(ALL_CODES, data, out)
    source, target = node.codes(data), node.codes(out)
    multiplier, shift = quantize_multiplier(float(np.float64(source.scale) / np.float64(target.scale)))
    doublings = min(count.bit_length() - 1, 32, 31 + shift)
    properties = multiplier_attrs(((multiplier << doublings) // count, shift - doublings))
    return [reduced(importer, node, qnn.MeanOp, **parameters(input=source, output=target), **properties)]


_NUMBERS = (*INDICES, "FLOAT32", "BOOL")
_REDUCTIONS: dict[str, tuple[type[TensorOp], type[TensorOp], tuple[str, ...]]] = {
    "REDUCE_ALL": (AllOp, AllOp, ("BOOL",)),
    "REDUCE_ANY": (AnyOp, AnyOp, ("BOOL",)),
    "REDUCE_MAX": (MaxOp, AnyOp, (*ALL_CODES, *_NUMBERS)),
    "REDUCE_MIN": (MinOp, AllOp, (*ALL_CODES, *_NUMBERS)),
    "REDUCE_PROD": (ProdOp, AllOp, _NUMBERS),
    "SUM": (SumOp, AnyOp, _NUMBERS),
}
"""The op for each operator, that for booleans, and the types. Quantized sums are handled elsewhere, since LiteRT's
reference kernel reads int8 as uint8."""


@operator("REDUCE_ALL", "REDUCE_ANY", "REDUCE_PROD", "SUM", versions=(1, 2), inputs=(2, 2))
@operator("REDUCE_MAX", "REDUCE_MIN", versions=(1, 3), inputs=(2, 2), known=EVERYWHERE)
def reduction(importer: Importer, node: Node) -> list[SSAValue]:
    data, out = node.input(0), node.output()
    op, of_booleans, types = _REDUCTIONS[node.operator.kind]
    if node.one_type(types, data, out) in ALL_CODES:
        node.same_codes(data, out)
    return [reduced(importer, node, of_booleans if data.type == "BOOL" else op)]


def reduced(
    importer: Importer, node: Node, op: type[TensorOp], element: Attribute | None = None, **properties: Attribute
) -> SSAValue:
    """The data, cast to `element` if it is given, and reduced by the op along the axes that the node names. If it names
    none, a leading axis of size 1 is added and reduced, since an op without axes would reduce over all."""
    data = node.input(0)
    axes, value = node.axes(node.input(1), len(data.shape)), importer.value(data)
    if 0 in data.shape:
        raise node.unsupported("nothing is reduced")
    value = value if axes else importer.reshape(value, [1, *data.shape])
    value = value if element is None else importer.cast(value, element)
    keepdims = bool(axes) and node.flag("keep_dims")
    return importer.call(op, value, axis=axes or [0], keepdims=keepdims, **properties)


@operator("ARG_MAX", "ARG_MIN", versions=(1, 3), inputs=(2, 2), known=EVERYWHERE)
def position(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ARG_MAX and ARG_MIN: the index of the first extreme element along one axis."""
    data, out = node.input(0), node.output()
    if data.type not in (*ALL_CODES, "INT32", "FLOAT32") or out.type not in INDICES:
        raise node.refuse_types(data, out)
    axes = node.axes(node.input(1), len(data.shape))
    if len(axes) != 1 or 0 in data.shape:
        raise node.malformed(f"an index along axes {axes} of shape {data.shape}")
    op = ArgmaxOp if node.operator.kind == "ARG_MAX" else ArgminOp
    return [importer.call(op, importer.value(data), axis=axes, dtype=importer.element(out))]
