"""Numbers that follow from shapes: SHAPE of a tensor, and what integers are computed from it and from constants.

Keras writes such chains for a reshape whose batch it leaves open (SHAPE, STRIDED_SLICE, PACK, RESHAPE). All shapes are
known here, so what such an operator gives becomes a constant when its turn comes, and RESHAPE and the like can read it.
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
"""Numbers of a tensor that is computed here: shapes are short."""
Evaluate = Callable[[Subgraph, Operator], Sequence[Array]]
"""What an operator gives, whose inputs are constants of the graph. Raises RelayError."""


def known_numbers(
    graph: Subgraph, operator: Operator, follows: Collection[int], evaluate: Evaluate
) -> dict[int, Tensor] | None:
    """The operator's results as constants, if they follow from shapes as those of `follows` do."""
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
        return None  # it is told when the operator is imported
    return {
        tensor.index: replace(
            tensor, shape=a.shape, shape_signature=a.shape, data=memoryview(np.ascontiguousarray(a).tobytes())
        )
        for a, tensor in zip(found, outputs, strict=True)
    }
