"""Imports BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, i8, i16, i32
from xdsl.ir import SSAValue

from relay.dialects import qnn
from relay.dialects.relay import BatchMatmulOp, MultiplyOp
from relay.frontend.importing.builder import multiplier_attrs, parameters
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.operators.convolution import sum_type
from relay.frontend.tflite.operators.hybrid import quantised_lines
from relay.frontend.tflite.operators.quantize import rescale
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import operator, quantised
from relay.interpreters.arithmetic import quantize_multiplier


@operator("BATCH_MATMUL", versions=(1, 5), inputs=(2, 2))
def batch_matmul(importer: Importer, node: Node) -> list[SSAValue]:
    """Import BATCH_MATMUL: `x [..., m, k] times y [..., k, n]`, where `adj_x` and `adj_y` transpose the last two
    axes."""
    lhs, rhs, out = node.input(0), node.input(1), node.output()
    if node.types(lhs, rhs, out) == ("FLOAT32", "INT8", "FLOAT32"):
        return [_hybrid(importer, node)]
    node.one_type(FLOATS)
    turned = {"transpose_a": node.flag("adj_x"), "transpose_b": node.flag("adj_y")}
    return [importer.call(BatchMatmulOp, importer.value(lhs), importer.value(rhs), out_dtype=f32, **turned)]


def _hybrid(importer: Importer, node: Node) -> SSAValue:
    """A hybrid product, `float(sum) * (row's scale * y's scale)`: each row of x is quantised at run time.

    If two leading dimensions are more than 1, LiteRT's kernel uses scales of wrong rows, and its results differ from
    relay's.
    """
    lhs, rhs = node.input(0), node.input(1)
    found = node.codes(rhs)
    rank = len(lhs.shape)
    if found.zero_point or rank < 2:
        raise node.unsupported(f"{rhs} with a zero point of {found.zero_point} for rank {rank}")
    value = importer.value(lhs)
    if node.flag("adj_x"):
        value = importer.transpose(value, [*range(rank - 2), rank - 1, rank - 2])
    shape = importer.shape(value)
    asymmetric = node.flag("asymmetric_quantize_inputs")
    codes, scale = quantised_lines(importer, importer.reshape(value, [-1, shape[-1]]), asymmetric)
    weights = importer.cast(importer.value(rhs), i16 if asymmetric else i8)
    codes, turned = importer.reshape(codes, shape), node.flag("adj_y")
    sums = importer.call(BatchMatmulOp, codes, weights, transpose_b=turned, out_dtype=i32)
    product = importer.call(MultiplyOp, scale, importer.scalar(float(found.scale), scale))
    factor = importer.reshape(product, [*shape[:-1], 1])
    return importer.call(MultiplyOp, importer.cast(sums, f32), factor)


@quantised("BATCH_MATMUL", types=("INT8", "INT16"))
def batch_matmul_of_codes(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import BATCH_MATMUL, quantized or of floats. The factor by which quantized sums are rescaled is computed as in
    TFLite: the product of the two input scales in float32, divided by the output scale in float64."""
    lhs, rhs, out = node.input(0), node.input(1), node.output()
    if lhs.type == "FLOAT32":
        return batch_matmul(importer, node)
    node.one_type(("INT8", "INT16"))
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
    factor = quantize_multiplier(float(np.float64(scale) / np.float64(target.scale)))
    bounds = target.low, target.high
    return [rescale(importer, node, sums, Codes(scale, 0, 0, 0), bounds, **multiplier_attrs(factor))]
