"""Numbers that follow from shapes: SHAPE of a tensor, and what integers are computed from it and from constants.

Keras writes such chains for a reshape whose batch it leaves open (SHAPE, STRIDED_SLICE, PACK, RESHAPE). All shapes are
known here, so the chain becomes a constant before anything is imported, and RESHAPE and the like can read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.frontend.tflite.model import Operator, Subgraph
from relay.frontend.tflite.node import INDICES

MOST = 1024
"""Numbers of a tensor that is computed here: shapes are short."""
Evaluate = Callable[[Subgraph, Operator], Sequence[Array]]
"""What an operator gives, whose inputs are constants of the graph. Raises RelayError."""


def with_known_numbers(graph: Subgraph, evaluate: Evaluate) -> Subgraph:
    """The graph with constants instead of what follows from shapes."""
    if not any(operator.kind == "SHAPE" for operator in graph.operators):
        return graph
    left: list[Operator] = []
    follows: set[int] = set()
    for operator in graph.operators:
        found = _numbers(graph, operator, follows, evaluate)
        if found is None:
            left.append(operator)
            continue
        tensors = list(graph.tensors)
        for index, numbers in zip(operator.outputs, found, strict=True):
            tensors[index] = replace(tensors[index], data=memoryview(np.ascontiguousarray(numbers).tobytes()))
        follows.update(operator.outputs)
        graph = replace(graph, tensors=tuple(tensors))
    return replace(graph, operators=tuple(left)) if follows else graph


def _numbers(graph: Subgraph, operator: Operator, follows: set[int], evaluate: Evaluate) -> Sequence[Array] | None:
    """What the operator gives, if that follows from shapes."""
    outputs = [graph.tensors[index] for index in operator.outputs]
    if not outputs or any(t.type not in INDICES or np.prod(t.shape, dtype=float) > MOST for t in outputs):
        return None
    if operator.kind != "SHAPE":
        inputs = [graph.tensors[index] for index in operator.inputs if index >= 0]
        if follows.isdisjoint(operator.inputs) or any(t.data is None or t.is_variable for t in inputs):
            return None
    try:
        found = evaluate(graph, operator)
    except RelayError:
        return None  # it is told when the operator is imported
    fits = len(found) == len(outputs) and all(a.shape == t.shape for a, t in zip(found, outputs, strict=True))
    return found if fits else None
