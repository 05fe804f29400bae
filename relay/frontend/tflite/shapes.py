"""Input shapes that the caller of an import gives instead of those in the file; where the file leaves a size unknown,
the caller must give one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relay.frontend.importing.sizes import Sizes, given_sizes, unknown_sizes
from relay.frontend.tflite.model import Subgraph, Tensor


def with_shape(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor with that shape; the tensor itself if it has it."""
    dims = tuple(shape)
    return tensor if tensor.shape == dims else replace(tensor, shape=dims, shape_signature=dims)


def with_shapes(graph: Subgraph, shapes: object, batch: object, name: str) -> Subgraph:
    """The graph with inputs of these shapes, by name.

    Raises InvalidArgument for shapes that inputs cannot have, and for an input of unknown size without a given shape.
    """
    tensors = list(graph.tensors)
    sizes = [Sizes(tensors[index].name, tensors[index].shape_signature) for index in graph.inputs]
    given = given_sizes(sizes, shapes, batch, "from_tflite", name)
    for index, each in zip(graph.inputs, sizes, strict=True):
        pairs = zip(tensors[index].shape[1:], each.dims[1:], strict=True)
        if each.input in given:
            tensors[index] = with_shape(tensors[index], given[each.input])
        elif any(stored <= 1 and free < 0 for stored, free in pairs):
            raise unknown_sizes(each, sizes, name)
    return replace(graph, tensors=tuple(tensors))
