"""Imports AVERAGE_POOL_2D and MAX_POOL_2D, on quantized values or floats."""

from __future__ import annotations

from xdsl.ir import SSAValue

from relay.dialects.relay import AvgPool2dOp, MaxPool2dOp
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, Node
from relay.frontend.tflite.operators.convolution import strides_and_padding
from relay.frontend.tflite.table import EVERYWHERE, operator


@operator("AVERAGE_POOL_2D", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
@operator("MAX_POOL_2D", versions=(1, 3), inputs=(1, 1), known=EVERYWHERE)
def pool_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a pool; quantized values are pooled without rescaling, since input and output must have one scale and zero
    point."""
    op = AvgPool2dOp if node.operator.kind == "AVERAGE_POOL_2D" else MaxPool2dOp
    data, out = node.input(0), node.output()
    node.one_type((*ALL_CODES, "FLOAT32"), data, out)
    sizes = node.shape(data, 4)[1:3]
    pool = node.positive("filter_height", "filter_width")
    strides = node.positive("stride_h", "stride_w")
    result = importer.call(op, importer.value(data), pool_size=pool, **strides_and_padding(node, sizes, pool, strides))
    if data.type == "FLOAT32":
        return [importer.clip_reals(result, node.activation())]
    codes = node.same_codes(data, out)
    if codes is None:
        raise node.malformed(f"{out} has no scale")
    return [importer.clip_codes(result, codes, node.bounds(codes))]
