"""Operators of model files that become ops of `sfx`."""

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i32

from relay.dialects.attributes import ints
from relay_sfx import ops


def onnx_quantize(importer, node):
    given = {"exponents": ints(node.integers("exponents")), "bits": IntegerAttr(node.integer("bits", 8), i32)}
    return [importer.emit(ops.QuantizeOp, [node.input(0)], given).result]


def onnx_dequantize(importer, node):
    return [importer.emit(ops.DequantizeOp, [node.input(0)], {"exponents": ints(node.integers("exponents"))}).result]


def onnx_dense(importer, node):
    """`org.sfx.Dense`: codes, kernel, bias; the attribute `shifts` says how what comes out is rescaled."""
    sums = importer.emit(ops.DenseOp, [node.input(n) for n in range(3)]).result
    return [importer.emit(ops.RescaleOp, [sums], {"shifts": ints(node.integers("shifts"))}).result]


def tflite_rescale(importer, node):
    """The custom operator `SfxRescale`, whose options are the shifts, a signed byte each."""
    shifts = ints(np.frombuffer(node.operator.custom_options, np.int8).tolist())
    return [importer.emit(ops.RescaleOp, [importer.value(node.input(0))], {"shifts": shifts}).result]


ONNX = {"org.sfx.Quantize": onnx_quantize, "org.sfx.Dequantize": onnx_dequantize, "org.sfx.Dense": onnx_dense}
TFLITE = {"SfxRescale": tflite_rescale}
