"""Imports quantized TRANSPOSE_CONV and BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.frontend.importing.builder import multiplier_attrs, number, parameters, product_parameters, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import INDICES, Node
from relay.frontend.tflite.operators import matmul
from relay.frontend.tflite.operators.convolution import add_bias, kernel_scales, requantize, sum_type
from relay.frontend.tflite.operators.quantised_functions import BYTES
from relay.frontend.tflite.operators.transposed import scattering_2d
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
    properties = scattering_2d(node) | product_parameters(source, scales, zero_point, sum_type(node, bias))
    result = importer.call(qnn.Conv2dTransposeOp, importer.value(data), importer.value(kernel), **properties)
    result = add_bias(importer, result, bias)
    rounding = importer.numerics.of_sums(data.type).products
    return [requantize(importer, node, result, (source, scales, target), rounding, data.type == "UINT8")]


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
    sums = importer.call(
        qnn.BatchMatmulOp,
        importer.value(lhs),
        importer.value(rhs),
        transpose_a=node.flag("adj_x"),
        transpose_b=node.flag("adj_y"),
        out_dtype=sum_type(node, None),
        **parameters(input=left, kernel=right),
    )
    rescaled: dict[str, Attribute] = {
        "input_scale": real(scale),
        **parameters(output=target),
        "min": number(target.low),
        "max": number(target.high),
        "rounding": StringAttr("tflite"),
        "out_dtype": importer.element(out),
        **multiplier_attrs(quantize_multiplier(float(np.float64(scale) / np.float64(target.scale)))),
    }
    return [importer.call(qnn.RequantizeOp, sums, **rescaled)]
