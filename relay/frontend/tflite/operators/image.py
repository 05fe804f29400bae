"""Imports operators on images: AVERAGE_POOL_2D, MAX_POOL_2D, RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, on quantized
values or floats."""

from __future__ import annotations

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, Node
from relay.frontend.tflite.operators.convolution import strides_and_padding
from relay.frontend.tflite.table import EVERYWHERE, operator


@operator("RESIZE_BILINEAR", versions=(1, 4), inputs=(2, 2), known={"tflm": "INT8"})
@operator("RESIZE_NEAREST_NEIGHBOR", versions=(1, 4), inputs=(2, 2), known=EVERYWHERE)
def resize(importer: Importer, node: Node) -> list[SSAValue]:
    """Import RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR to a constant height and width; quantized values are
    interpolated without rescaling."""
    method = "linear" if node.operator.kind == "RESIZE_BILINEAR" else "nearest_neighbor"
    data, out = node.input(0), node.output()
    node.one_type((*ALL_CODES, "FLOAT32", *(("INT32", "BOOL") if method == "nearest_neighbor" else ())), data, out)
    if 0 in node.shape(data, 4):
        raise node.unsupported("an empty image")
    size = node.numbers(node.input(1))
    align_corners, half_pixel_centers = node.flag("align_corners"), node.flag("half_pixel_centers")
    if align_corners and half_pixel_centers:
        raise node.malformed("align_corners and half_pixel_centers exclude each other")
    flags = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    return [importer.call(relay.Resize2dOp, importer.value(data), size=size, method=method, **flags)]


@operator("AVERAGE_POOL_2D", versions=(1, 3), inputs=(1, 1), known={"tflm": "INT8"})
@operator("MAX_POOL_2D", versions=(1, 3), inputs=(1, 1), known=EVERYWHERE)
def pool_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a pool; quantized values are pooled without rescaling, since input and output must have one scale and zero
    point."""
    op = relay.AvgPool2dOp if node.operator.kind == "AVERAGE_POOL_2D" else relay.MaxPool2dOp
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
