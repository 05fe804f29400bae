"""Imports quantized TRANSPOSE_CONV and BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import ints
from relay.frontend.importing.builder import multiplier_attrs, number, real, scale_attr
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import INDICES, Node
from relay.frontend.tflite.operators import matmul
from relay.frontend.tflite.operators.convolution import add_bias, kernel_scales, requantize, sum_type
from relay.frontend.tflite.operators.quantised_functions import BYTES
from relay.frontend.tflite.operators.transposed import result_shape
from relay.frontend.tflite.profile import rescaling
from relay.frontend.tflite.scales import window_padding
from relay.frontend.tflite.table import quantised
from relay.interpreters.arithmetic import quantize_multiplier


@quantised("TRANSPOSE_CONV", types=f"{BYTES} INT16", versions=(1, 5), inputs=(3, 4))
def transpose_conv(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized TRANSPOSE_CONV (inputs: shape of the result, kernel [out, h, w, in], data, bias); the sums are
    rescaled as those of a convolution."""
    kernel, data, bias, out = node.input(1), node.input(2), node.optional(3), node.output()
    match node.types(kernel, data, out):
        case ("INT8", "INT8", "INT8") | ("UINT8", "UINT8", "UINT8") if bias is None or bias.type == "INT32":
            pass
        case ("INT8", "INT16", "INT16") if bias is None or bias.type in INDICES:
            pass
        case _:
            raise node.refuse_types(kernel, data, bias, out)
    source, target = node.codes(data), node.codes(out)
    scales, zero_point = kernel_scales(node, 0)
    properties = _window(node) | {
        "input_scale": scale_attr(np.array([source.scale])),
        "input_zero_point": number(source.zero_point),
        "kernel_scale": scale_attr(scales),
        "kernel_zero_point": number(zero_point),
        "out_dtype": sum_type(node, bias),
    }
    operands = [importer.value(data), importer.value(kernel)]
    result = importer.emit(qnn.Conv2dTransposeOp, operands, properties).result
    result = add_bias(importer, result, bias)
    rounding = importer.numerics.of_sums(data.type).products
    products = (
        (source.scale * scales).astype(np.float64)
        if data.type == "UINT8"
        else np.float64(source.scale) * scales.astype(np.float64)
    )
    reals = products / np.float64(target.scale)
    return [requantize(importer, node, result, (source, scales, target), reals, rescaling(rounding, reals))]


def _window(node: Node) -> dict[str, Attribute]:
    """The properties that state strides and padding. The padding is that of the convolution which the operator
    transposes: from the result, whose shape is input 0, to the data."""
    dims = result_shape(node, 4)
    strides = node.positive("stride_h", "stride_w")
    sizes = zip(node.shape(node.input(2), 4)[1:3], node.shape(node.input(1), 4)[1:3], dims[1:3], strides, strict=True)
    before, excess = list[int](), list[int]()
    for size, kernel, result, stride in sizes:
        first, _ = window_padding(node.word("padding"), result, kernel, stride)
        before.append(first)
        excess.append((size - 1) * stride + kernel - first - result)
    return {
        "strides": ints(strides),
        "padding": ints([*before, *(max(n, 0) for n in excess)]),
        "output_padding": ints([max(-n, 0) for n in excess]),
    }


@quantised("BATCH_MATMUL", types="INT8 INT16", versions=(1, 5), inputs=(2, 2))
def batch_matmul(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import BATCH_MATMUL, quantized or of floats. The factor by which quantized sums are rescaled is computed as in
    TFLite: the product of the two input scales in float32, divided by the output scale in float64."""
    lhs, rhs, out = node.input(0), node.input(1), node.output()
    if lhs.type == "FLOAT32":
        return matmul.batch_matmul(importer, node)
    if not lhs.type == rhs.type == out.type:
        raise node.refuse_types(lhs, rhs, out)
    left, right, target = node.codes(lhs), node.codes(rhs), node.codes(out)
    scale = left.scale * right.scale
    properties: dict[str, Attribute] = {
        "transpose_a": BoolAttr.from_bool(node.flag("adj_x")),
        "transpose_b": BoolAttr.from_bool(node.flag("adj_y")),
        "input_scale": real(left.scale),
        "input_zero_point": number(left.zero_point),
        "kernel_scale": real(right.scale),
        "kernel_zero_point": number(right.zero_point),
        "out_dtype": sum_type(node, None),
    }
    sums = importer.emit(qnn.BatchMatmulOp, [importer.value(lhs), importer.value(rhs)], properties).result
    rescaled: dict[str, Attribute] = {
        "input_scale": real(scale),
        "output_scale": real(target.scale),
        "output_zero_point": number(target.zero_point),
        "min": number(target.low),
        "max": number(target.high),
        "rounding": StringAttr("tflite"),
        "out_dtype": importer.element(out),
        **multiplier_attrs(quantize_multiplier(float(np.float64(scale) / np.float64(target.scale)))),
    }
    return [importer.emit(qnn.RequantizeOp, [sums], rescaled).result]
