"""Evaluates values that follow from shapes: SHAPE of a tensor, and integers computed from it and from constants.

Keras writes such chains for a reshape whose batch size is unknown (SHAPE, STRIDED_SLICE, PACK, RESHAPE). All shapes are
known in the importer, so the result of such an operator becomes a constant when the operator is imported, and RESHAPE
and the like can read it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.frontend.tflite.model import Operator, Subgraph, Tensor
from relay.frontend.tflite.node import INDICES

MOST = 1024
"""The maximum number of elements of a tensor that the importer evaluates because it follows from shapes. Such tensors,
vectors of sizes, are short."""
Evaluate = Callable[[Subgraph, Operator], Sequence[Array]]
"""Evaluates an operator whose inputs are constants of the graph. Raises RelayError."""


def known_numbers(
    graph: Subgraph, operator: Operator, follows: Collection[int], evaluate: Evaluate
) -> dict[int, Tensor] | None:
    """The operator's results as constants, by tensor index, if they follow from shapes: it is SHAPE, or all inputs are
    constants, one of which is in `follows` (the tensors that followed from shapes before). Else None."""
    outputs = [graph.tensors[index] for index in operator.outputs]
    if not outputs or any(t.type not in INDICES for t in outputs):
        return None
    if operator.kind != "SHAPE":
        inputs = [graph.tensors[index] for index in operator.inputs if index >= 0]
        constant = all((t.data is not None or 0 in t.shape) and not t.is_variable for t in inputs)
        if not constant or not any(index in follows for index in operator.inputs):
            return None
    try:
        found = evaluate(graph, operator)
    except RelayError:
        return None  # the error is reported when the operator is imported
    return {
        tensor.index: replace(
            tensor, shape=a.shape, shape_signature=a.shape, data=memoryview(np.ascontiguousarray(a).tobytes())
        )
        for a, tensor in zip(found, outputs, strict=True)
    }
