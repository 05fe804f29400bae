"""Code generators of `onnxruntime` for pools and resized images."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from relay.byoc.kernels import Row
from relay.byoc.onnxruntime.arithmetic import cast
from relay.byoc.onnxruntime.graph import CONTRIB, INT8, Graph
from relay.byoc.quantized import CODE_TYPES, dtype, pool_window
from relay.byoc.refusals import CODES, FLOAT, type_refusal
from relay.byoc.scales import UNKNOWN
from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.dialects.op import shape
from relay.interpreters.image import ONE, fixed_coordinates, nearest_indices

HEIGHT, WIDTH = 2, 3
"""The axes of NCHW images."""


def write_max_pool(graph: Graph, op: relay.MaxPool2dOp) -> None:
    graph.define(op.result, graph.node("MaxPool", [graph.read(op.data, first=True)], **pool_attributes(op)), first=True)


def pool_attributes(op: relay.Pool2dOp) -> dict[str, Any]:
    window = pool_window(op)
    return {"kernel_shape": window.size, "strides": window.strides, "pads": window.padding}


def write_average_pool(graph: Graph, op: relay.AvgPool2dOp) -> None:
    """Generate an average pool. If the scale of quantized values is not known, any scale is used: input and output
    share it, so the result is the same."""
    data, attributes = graph.read(op.data, first=True), pool_attributes(op)
    if dtype(op.data) in CODE_TYPES:
        scales = graph.quantization(graph.scales.get(graph.region.of(op.data), UNKNOWN), dtype(op.data))
        name = graph.node("QLinearAveragePool", [data, *scales, *scales], domain=CONTRIB, **attributes)
    else:
        name = graph.node("AveragePool", [data], **attributes)
    graph.define(op.result, name, first=True)


def write_resize(graph: Graph, op: relay.Resize2dOp) -> None:
    rows, columns = int_values(op.size)
    _, height, width, _ = shape(op.data)
    mode = bool(op.align_corners.value.data), bool(op.half_pixel_centers.value.data)
    data, type = graph.read(op.data, first=True), dtype(op.data)
    if op.method.data == "nearest_neighbor":
        data = graph.node("Gather", [data, graph.constant(nearest_indices(rows, height, *mode))], axis=HEIGHT)
        name = graph.node("Gather", [data, graph.constant(nearest_indices(columns, width, *mode))], axis=WIDTH)
    elif type == INT8:
        wide = cast(graph, graph.signed(data), np.dtype(np.int32))
        wide = interpolated(graph, wide, fixed_coordinates(rows, height, *mode), HEIGHT)
        wide = interpolated(graph, wide, fixed_coordinates(columns, width, *mode), WIDTH)
        name = graph.unsigned(cast(graph, rounded(graph, wide), type))
    else:
        name = float_resized(graph, data if type.kind == "f" else cast(graph, data, np.dtype(np.float32)), op)
        if type.kind != "f":
            half = graph.constant(np.float32(0.5))
            name = cast(graph, graph.node("Floor", [graph.node("Add", [name, half])]), type)
    graph.define(op.result, name, first=True)


def interpolated(graph: Graph, data: str, coordinates: tuple[Array, Array, Array], axis: int) -> str:
    """Append nodes for `(1024 - w) * lower neighbour + w * upper neighbour` along an axis, in int32. `coordinates` has,
    for each index of the result, the weight `w` and the indices of the lower and the upper neighbour."""
    weight, lower, upper = coordinates
    dims = (-1, 1) if axis == HEIGHT else (-1,)
    parts: list[str] = []
    for indices, factor in ((lower, ONE - weight), (upper, weight)):
        taken = graph.node("Gather", [data, graph.constant(indices)], axis=axis)
        parts.append(graph.node("Mul", [taken, graph.constant(factor.astype(np.int32).reshape(dims))]))
    return graph.node("Add", parts)


def rounded(graph: Graph, total: str) -> str:
    """Append nodes for `total / 2^20` in int32, rounded to nearest with halves away from zero: `total` is an
    interpolated value whose last 20 bits are its fraction."""
    zero, half = graph.constant(np.int32(0)), np.int32(1 << 19)
    halves = [graph.constant(half), graph.constant(-half)]
    moved = graph.node("Add", [total, graph.node("Where", [graph.node("Greater", [total, zero]), *halves])])
    return graph.node("Div", [moved, graph.constant(np.int32(1 << 20))])


def float_resized(graph: Graph, data: str, op: relay.Resize2dOp) -> str:
    mode = "asymmetric"
    if op.align_corners.value.data:
        mode = "align_corners"
    elif op.half_pixel_centers.value.data:
        mode = "half_pixel"
    batch, rows, columns, channels = shape(op.result)
    sizes = graph.integers([batch, channels, rows, columns])
    return graph.node("Resize", [data, "", "", sizes], mode="linear", coordinate_transformation_mode=mode)


ROWS: dict[type[Operation], Row[Graph]] = {
    relay.MaxPool2dOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_max_pool),
    relay.AvgPool2dOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_average_pool),
    relay.Resize2dOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_resize),
}
