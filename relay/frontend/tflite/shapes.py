"""Shapes of inputs other than those stored: what callers ask for, and what has to be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relay.frontend.importing.options import sizes_of, unknown_size
from relay.frontend.tflite.model import Subgraph, Tensor


def with_shape(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor of that shape; itself if it has it."""
    dims = tuple(shape)
    return tensor if tensor.shape == dims else replace(tensor, shape=dims, shape_signature=dims)


def with_shapes(graph: Subgraph, shapes: object, batch: object, name: str) -> Subgraph:
    """The graph with inputs of these shapes, by name.

    Raises InvalidArgument for shapes that inputs cannot have, and for inputs of unknown size without one.
    """
    inputs = [graph.tensors[index] for index in graph.inputs]
    given = sizes_of(shapes, [(tensor.name, tensor.shape_signature) for tensor in inputs], batch, "from_tflite", name)
    tensors = list(graph.tensors)
    for tensor in inputs:
        sizes = zip(tensor.shape[1:], tensor.shape_signature[1:], strict=True)
        if tensor.name in given:
            tensors[tensor.index] = with_shape(tensor, given[tensor.name])
        elif any(stored <= 1 and free < 0 for stored, free in sizes):
            raise unknown_size(tensor.name, tensor.shape_signature, name)
    return replace(graph, tensors=tuple(tensors))
