"""BATCH_MATMUL."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, f32
from xdsl.ir import SSAValue

from relay.dialects.relay import BatchMatmulOp
from relay.frontend.tflite.graph import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.table import operator


@operator("BATCH_MATMUL", versions=(1, 5), inputs=(2, 2))
def batch_matmul(importer: Importer, node: Node) -> list[SSAValue]:
    """`x [..., m, k] times y [..., k, n]`, each with its last two axes exchanged if `adj_x`, `adj_y`."""
    lhs, rhs, out = node.input(0), node.input(1), node.output()
    if not lhs.type == rhs.type == out.type == "FLOAT32":
        raise node.refuse_types(lhs, rhs, out)
    properties = {
        "transpose_a": IntegerAttr.from_bool(node.flag("adj_x")),
        "transpose_b": IntegerAttr.from_bool(node.flag("adj_y")),
        "out_dtype": f32,
    }
    return [importer.emit(BatchMatmulOp, [importer.value(lhs), importer.value(rhs)], properties).result]
