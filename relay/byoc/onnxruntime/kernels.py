"""The table of all code generators of `onnxruntime`."""

from __future__ import annotations

from relay.byoc.kernels import Kernels, Row
from relay.byoc.onnxruntime import arithmetic, images, products, shapes
from relay.byoc.onnxruntime.graph import Graph
from relay.byoc.refusals import mean_refusal
from relay.byoc.regions import Region

MEAN = Row(mean_refusal, arithmetic.write_float_mean)
KERNELS = Kernels(
    "ONNX operator",
    {**arithmetic.ROWS, **shapes.ROWS, **images.ROWS},
    Row(products.refusal, products.write),
    lambda ops: MEAN,
)


def model(region: Region, unsigned_weights: bool = False) -> tuple[bytes, str]:
    """The ONNX model of a region and its nodes as text; int8 weights are stored as they are, or as uint8.

    Raises Unsupported, naming the op's location, for an op that is not supported.
    """
    graph = Graph(region, unsigned_weights)
    for kernel in region.kernels:
        KERNELS.write(graph, kernel)
    return graph.finish(), graph.listing
