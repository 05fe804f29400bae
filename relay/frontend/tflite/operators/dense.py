"""Imports FULLY_CONNECTED: integers, floats, and floats with int8 weights ("hybrid")."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects import qnn
from relay.dialects.relay import CastOp, DenseOp, MultiplyOp, WeightOnlyDenseOp
from relay.frontend.importing.builder import product_parameters
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import INDICES, Node
from relay.frontend.tflite.operators.convolution import add_bias, kernel_scales, requantize, sum_type
from relay.frontend.tflite.operators.hybrid import line_products, quantised_lines
from relay.frontend.tflite.table import operator


@operator("FULLY_CONNECTED", versions=(1, 14), inputs=(2, 3), known={"tflm": "INT8", "tvm": "INT8 UINT8"})
def fully_connected(importer: Importer, node: Node) -> list[SSAValue]:
    """Import FULLY_CONNECTED: `input [n, k] times weights [units, k]`; an input of another shape is reshaped to [n,
    k]."""
    data, kernel, bias, out = node.input(0), node.input(1), node.optional(2), node.output()
    inputs = node.shape(kernel, 2)[1]
    if node.word("weights_format") not in ("DEFAULT", "0"):
        raise node.unsupported(f"the weights are {node.word('weights_format')}")
    value = importer.value(data)
    dims = importer.shape(value)
    if not node.flag("keep_num_dims") and (len(dims) != 2 or _is_flattened(dims, inputs)):
        if inputs < 1:
            raise node.malformed("the weights have no columns")
        value = importer.reshape(value, [-1, inputs])
    match node.types(data, kernel, out):
        case ("INT8", "INT8", "INT8") | ("UINT8", "UINT8", "UINT8") if bias is None or bias.type == "INT32":
            return [_codes(importer, node, value)]
        case ("INT16", "INT8", "INT16") if bias is None or bias.type in INDICES:
            return [_codes(importer, node, value)]
        case ("FLOAT32", "FLOAT32", "FLOAT32") if bias is None or bias.type == "FLOAT32":
            result = importer.call(DenseOp, value, importer.value(kernel), out_dtype=f32)
        case ("FLOAT32", "INT8", "FLOAT32") if (bias is None or bias.type == "FLOAT32") and kernel.blocks is not None:
            result = _in_blocks(importer, node, value)
        case ("FLOAT32", "INT8", "FLOAT32") if bias is None or bias.type == "FLOAT32":
            result = _hybrid(importer, node, value)
        case _:
            raise node.refuse_types(data, kernel, bias, out)
    return [importer.clip_reals(add_bias(importer, result, bias), node.activation())]


def _is_flattened(dims: Sequence[int], inputs: int) -> bool:
    """Whether data of sizes `dims`, whose last size is not `inputs`, can be reshaped to a matrix with `inputs`
    columns."""
    return dims[-1] != inputs and inputs > 0 and prod(dims) % inputs == 0


def _hybrid(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """A hybrid product, `float(sum) * (row's scale * kernel's scale)`: each row of the data is quantised at run time;
    the kernel has one scale or one per unit."""
    found = node.quantization(node.input(1))
    if len(found.scale) > 1 and found.axis != 0:
        raise node.unsupported(f"the weights have {len(found.scale)} scales along axis {found.axis}")
    inputs = node.input(1).shape[1]
    lines = importer.reshape(value, [-1, inputs])
    weights, asymmetric = importer.value(node.input(1)), node.flag("asymmetric_quantize_inputs")
    result = line_products(importer, lines, weights, found.scale, asymmetric)
    return importer.reshape(result, [*importer.shape(value)[:-1], node.input(1).shape[0]])


def _in_blocks(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """A product with weights that have a scale for each block of a row. Each row of the data is quantised at run time,
    its zero point is subtracted, and the row's scale multiplies the result. Source: LiteRT's kernel for 4-bit weights
    in blocks, which reads no zero points."""
    kernel = node.input(1)
    units, inputs = kernel.shape
    scales = node.block_scales(kernel, (units, inputs))
    shape = scales.shape
    if 0 in shape:
        raise node.malformed(f"{kernel} has no blocks")
    steps = node.array(kernel).astype(np.int16)
    half = 8 if np.abs(2 * steps + 1).max(initial=0) < 16 else 128
    lines, scale = quantised_lines(importer, importer.reshape(value, [-1, inputs]), asymmetric=True)
    operands = [
        importer.call(CastOp, lines, dtype=f32),
        importer.constant((steps + half).astype(np.uint8).reshape(*shape, -1), kernel.name),
        importer.constant(scales, "scales"),
        importer.constant(np.full(shape, half, np.uint8), "zero_points"),
    ]
    sums = importer.call(WeightOnlyDenseOp, *operands)
    result = importer.call(MultiplyOp, sums, importer.reshape(scale, [-1, 1]))
    return importer.reshape(result, [*importer.shape(value)[:-1], units])


def _codes(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """The codes of a quantized FULLY_CONNECTED of the data `value`: `clamp(rescale(sum + bias) + zero point)`. The
    factor of the rescaling is `scale * kernel scale / output scale`, in double; the first product is in float32 if the
    runtime rounds with halves upward, or if it uses integer multipliers and the kernel has a single scale. LiteRT
    computes `round(double(sum + bias) * factor)`, with halves away from zero."""
    data, kernel = node.codes(node.input(0)), node.input(1)
    found = node.quantization(kernel)
    target = node.codes(node.output())
    scales, _ = kernel_scales(node, 0)
    zero_point = int(found.zero_point[0]) if len(scales) == 1 else 0
    properties = product_parameters(data, scales, zero_point, sum_type(node, node.optional(2)))
    result = importer.call(qnn.DenseOp, value, importer.value(kernel), **properties)
    result = add_bias(importer, result, node.optional(2))
    rounding = importer.numerics.of_sums(node.input(0).type).dense
    single = rounding == "upward" or (rounding == "tflite" and len(scales) == 1)
    return requantize(importer, node, result, (data, scales, target), rounding, single)
