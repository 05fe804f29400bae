"""Imports ONNX Runtime's quantized operators other than products: sums, functions by lookup tables, pools, softmax,
concatenation."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type
from relay.dialects.op import DYNAMIC
from relay.frontend.importing import fused
from relay.frontend.importing.builder import own_parameters
from relay.frontend.importing.fused import Codes, Function
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators.quantized.parameters import codes_of, either_layout, plain, result_codes
from relay.frontend.onnx.table import MICROSOFT, op
from relay.interpreters.elementwise import sigmoid


@op("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def binary(importer: Importer, node: Node) -> SSAValue:
    a, b = codes_of(importer, node, 0, 1, 2), codes_of(importer, node, 3, 4, 5)
    target = result_codes(importer, node, 6)
    operands = [node.input(0), node.input(3)]
    if node.kind == "QLinearAdd":
        return importer.call(qnn.AddOp, *operands, **fused.add(a, b, target))
    return importer.call(qnn.MulOp, *operands, **fused.multiply(a, b, target))


def looked_up(importer: Importer, value: SSAValue, source: Codes, target: Codes, function: Function) -> SSAValue:
    """A function of reals applied to a quantized value by a lookup table; the value itself if the table is the
    identity."""
    table = target.table(function, source)
    if source.dtype == target.dtype and np.array_equal(table, source.every()):
        return value
    return importer.call(relay.LookupOp, value, importer.unnamed(table))


@op("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def curve(importer: Importer, node: Node) -> SSAValue:
    source, target = codes_of(importer, node, 0, 1, 2), result_codes(importer, node, 3)
    slope = np.float32(node.real("alpha", 0.01))
    leaky: Function = lambda x: np.where(x >= 0, x, x * slope)  # noqa: E731
    function = sigmoid if node.kind == "QLinearSigmoid" else leaky
    return looked_up(importer, node.input(0), source, target, function)


@op("QLinearConcat", domain=MICROSOFT)
def concatenate(importer: Importer, node: Node) -> SSAValue:
    target = codes_of(importer, node, 1, 0, 1)
    values = [
        looked_up(importer, node.input(i), codes_of(importer, node, i, i + 1, i + 2), target, np.asarray)
        for i in range(2, len(node.values), 3)
    ]
    axis = node.axis(node.integer("axis"), importer.rank(values[0]))
    return importer.concatenate(values, axis)


@op("QLinearWhere", domain=MICROSOFT)
def where(importer: Importer, node: Node) -> SSAValue:
    target = codes_of(importer, node, 8, 7, 8)
    chosen = [
        looked_up(importer, node.input(i), codes_of(importer, node, i, i + 1, i + 2), target, np.asarray)
        for i in (1, 4)
    ]
    return importer.call(relay.WhereOp, node.input(0), *chosen)


@op("QLinearGlobalAveragePool", domain=MICROSOFT)
@either_layout
def global_pool(importer: Importer, node: Node) -> SSAValue:
    """Import QLinearGlobalAveragePool: the sum in i32, rescaled by `input scale / (output scale * count)`."""
    source, target = codes_of(importer, node, 0, 1, 2), result_codes(importer, node, 3)
    dims = node.shape(0)
    axes = range(2, len(dims))
    if DYNAMIC in dims[axes.start : axes.stop]:
        raise node.unsupported("the size of its images is not known", "give its shapes")
    count = int(np.prod([dims[axis] for axis in axes]))
    total = importer.call(relay.SumOp, importer.cast(node.input(0), i32), axis=tuple(axes), keepdims=True)
    return importer.call(qnn.RequantizeOp, total, **fused.mean(source, target, count))


@op("QLinearAveragePool", "QLinearReduceMean", domain=MICROSOFT)
@either_layout
def pool(importer: Importer, node: Node) -> SSAValue:
    """Import QLinearAveragePool and QLinearReduceMean: the mean of dequantized values; for a pool, the zero point is
    added before rounding."""
    source, target = codes_of(importer, node, 0, 1, 2), result_codes(importer, node, 3)
    mean = node.kind == "QLinearReduceMean"
    kind, rounding = ("ReduceMean", "even") if mean else ("AveragePool", "even_sum")
    reals = importer.call(qnn.DequantizeOp, node.input(0), **own_parameters(source), product="f32")
    result, type = plain(importer, node, kind, [reals]), element_type(target.dtype)
    return importer.call(qnn.QuantizeOp, result, **own_parameters(target), rounding=rounding, out_dtype=type)


@op("QLinearSoftmax", domain=MICROSOFT)
def softmax(importer: Importer, node: Node) -> SSAValue:
    """Import QLinearSoftmax along one axis; if its attribute `opset` is below 13, the axis and all later ones are
    treated as one axis."""
    source, target = codes_of(importer, node, 0, 1, 2), result_codes(importer, node, 3)
    value, dims, old = node.input(0), node.static(0), node.integer("opset") < 13
    axis = node.axis(node.integer("axis", 1 if old else -1), len(dims))
    order = list(range(len(dims)))
    if old:
        value = importer.reshape(value, [int(np.prod(dims[:axis])), int(np.prod(dims[axis:]))])
    else:
        order[axis], order[-1] = order[-1], order[axis]
        value = importer.transpose(value, order)
    result = importer.call(qnn.TableSoftmaxOp, value, **fused.softmax(source, target))
    return importer.reshape(result, dims) if old else importer.transpose(result, order)
