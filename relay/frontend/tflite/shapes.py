"""Shapes of inputs other than those stored: what callers ask for, and what has to be asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import SupportsIndex

from relay.arguments import every, mapping, positive, shown
from relay.errors import InvalidArgument
from relay.frontend.tflite.model import MAX_ELEMENTS, Subgraph, Tensor


def with_shape(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor of that shape; itself if it has it."""
    dims = tuple(shape)
    return tensor if tensor.shape == dims else replace(tensor, shape=dims, shape_signature=dims)


def has_placeholders(graph: Subgraph) -> bool:
    """Whether shapes beyond the batch may be others than those stored."""
    shaped = any(operator.kind == "SHAPE" for operator in graph.operators)
    return shaped or any(-1 in tensor.shape_signature[1:] for tensor in graph.tensors)


def with_shapes(graph: Subgraph, shapes: object, batch: SupportsIndex | None, name: str) -> Subgraph:
    """The graph with inputs of these shapes, by name.

    Raises InvalidArgument for shapes that inputs cannot have, and for inputs of unknown size without one.
    """
    inputs = [graph.tensors[index] for index in graph.inputs]
    given = {} if shapes is None else mapping(shapes, "shapes", "{'input': (1, 16000)}")
    if given and batch is not None:
        raise InvalidArgument("from_tflite", "both batch and shapes are given", "shapes say the batch too")
    tensors = list(graph.tensors)
    for wanted, dims in given.items():
        matches = [tensor for tensor in inputs if tensor.name == wanted]
        if len(matches) != 1:
            known = ", ".join(f"{tensor.name!r} {_free(tensor)}" for tensor in inputs)
            raise InvalidArgument(f"shapes[{shown(wanted)}]", f"names no input of {name}", f"it has {known}")
        (tensor,) = matches
        tensors[tensor.index] = with_shape(tensor, _sizes(f"shapes[{shown(wanted)}]", dims, tensor))
    for tensor in inputs:
        sizes = zip(tensor.shape[1:], tensor.shape_signature[1:], strict=True)
        if tensor.name not in given and any(stored <= 1 and free < 0 for stored, free in sizes):
            text = "x".join("N" if size < 0 else str(size) for size in tensor.shape_signature)
            hint = f"give it: shapes={{{tensor.name!r}: (...)}}, or --shape {tensor.name}={text} with numbers"
            raise InvalidArgument(f"{name}: input {tensor.name!r}", f"is of unknown size {_free(tensor)}", hint)
    return replace(graph, tensors=tuple(tensors))


def _free(tensor: Tensor) -> str:
    return str(list(tensor.shape_signature))


def _sizes(where: str, dims: object, tensor: Tensor) -> list[int]:
    """The sizes of an input, as many as it has dimensions."""
    sizes = [positive(size) for size in every(dims, where, "give a list of sizes")]
    if len(sizes) != len(tensor.shape) or 0 in sizes or math.prod(sizes) > MAX_ELEMENTS:
        raise InvalidArgument(
            where, f"{shown(dims)} is no shape for {_free(tensor)}", "give as many sizes, of at least 1"
        )
    return sizes
