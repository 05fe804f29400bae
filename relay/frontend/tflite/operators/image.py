"""Imports RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from xdsl.ir import SSAValue

from relay.dialects.relay import Resize2dOp
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, Node
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
    return [importer.call(Resize2dOp, importer.value(data), size=size, method=method, **flags)]
