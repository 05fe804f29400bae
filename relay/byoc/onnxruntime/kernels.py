"""Every kind of kernel that is written: single ops by a table, composites by what they consist of."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from relay.byoc import means
from relay.byoc.onnxruntime import arithmetic, images, products, shapes
from relay.byoc.onnxruntime.arithmetic import Row
from relay.byoc.onnxruntime.graph import Graph
from relay.byoc.quantized import PRODUCTS
from relay.byoc.regions import Kernel, Region, static_refusal
from relay.errors import Unsupported

ROWS: dict[type[Operation], Row] = {**arithmetic.ROWS, **shapes.ROWS, **images.ROWS}


def refusal(ops: Sequence[Operation]) -> str | None:
    """Why these ops, without constants, are not written as one kernel; None if they are."""
    for op in ops:
        if (found := static_refusal(op)) is not None:
            return found
    if isinstance(ops[0], PRODUCTS):
        return products.refusal(ops)
    if len(ops) == 1:
        row = ROWS.get(type(ops[0]))
        return f"there is no ONNX operator for {ops[0].name}" if row is None else row.refusal(ops[0])
    return means.refusal(ops)


def model(region: Region, unsigned_weights: bool = False) -> tuple[bytes, str]:
    """The ONNX model of a region and its nodes as text; int8 weights as they are, or as uint8.

    Raises Unsupported, naming the op's place, for what is refused.
    """
    graph = Graph(region, unsigned_weights)
    for kernel in region.kernels:
        write(graph, kernel)
    return graph.finish(), graph.listing


def write(graph: Graph, kernel: Kernel) -> None:
    ops = kernel.ops
    if (found := refusal(ops)) is not None:
        raise Unsupported(kernel.place, f"is not compiled: {found}", "leave it to the host")
    if isinstance(ops[0], PRODUCTS):
        products.write(graph, ops)
    elif len(ops) == 1:
        ROWS[type(ops[0])].write(graph, ops[0])
    else:
        arithmetic.write_float_mean(graph, ops)
