"""Operators that change a tensor's shape and nothing else."""

from __future__ import annotations

from xdsl.ir import SSAValue

from relay.frontend.tflite.graph import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.table import operator


@operator("RESHAPE", versions=(1, 2), inputs=(1, 2))
def reshape(importer: Importer, node: Node) -> list[SSAValue]:
    """The new shape is a constant operand or, in old files, an option."""
    wanted = node.optional(1)
    shape = node.numbers(wanted) if wanted is not None else node.integers("new_shape")
    if not shape and wanted is None and node.output().shape:
        shape = node.output().shape
    return [importer.reshape(importer.value(node.input(0)), shape)]
