"""Expands weights that are stored compactly: weights of 2 and 4 bits, which TFLite's kernels widen to int8 before
computing, and sparse ones. DENSIFY, and kernels that accept sparse weights, then get the dense array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relay.frontend.tflite.model import Operator, Subgraph, Tensor
from relay.frontend.tflite.schema import TENSOR_TYPES

BITS = {"INT2": 2, "INT4": 4}
"""The widths of the types whose weights are packed into bytes."""
_DTYPES = {row.name: np.dtype(row.dtype) for row in TENSOR_TYPES if row.dtype}


def widened(graph: Subgraph, name: str) -> Subgraph:
    """The graph with sparse constants made dense, and INT2 and INT4 constants widened to INT8."""
    if any(tensor.is_sparse for tensor in graph.tensors):
        graph = _densified(replace(graph, tensors=tuple(_dense(tensor, name) for tensor in graph.tensors)))
    if not any(_is_narrow(tensor) for tensor in graph.tensors):
        return graph
    return replace(graph, tensors=tuple(_wide(t) if _is_narrow(t) else t for t in graph.tensors))


def _dense(tensor: Tensor, name: str) -> Tensor:
    """The tensor, stored densely if it is a sparse constant. A sparse constant whose element type numpy lacks is
    returned unchanged."""
    if tensor.sparsity is None or tensor.data is None or tensor.type not in _DTYPES:
        return tensor
    found = tensor.sparsity.dense(tensor.data, tensor.shape, _DTYPES[tensor.type], f"{name}: {tensor}")
    return replace(tensor, data=found.reshape(-1).view(np.uint8).data.toreadonly(), sparsity=None)


def _densified(graph: Subgraph) -> Subgraph:
    """The graph with the results of DENSIFY replaced by constants."""
    tensors, left = list(graph.tensors), list[Operator]()
    for operator in graph.operators:
        match operator:
            case Operator(kind="DENSIFY", inputs=(source,), outputs=(target,)) if (
                source >= 0
                and (dense := tensors[source]).data is not None
                and not dense.is_sparse
                and dense.type == tensors[target].type
            ):
                tensors[target] = replace(tensors[target], shape=dense.shape, data=dense.data)
            case _:
                left.append(operator)
    return replace(graph, tensors=tuple(tensors), operators=tuple(left))


def _is_narrow(tensor: Tensor) -> bool:
    return tensor.type in BITS and tensor.data is not None and not tensor.is_sparse


def _wide(tensor: Tensor) -> Tensor:
    """The constant unpacked from two or four elements per byte, the first in the lowest bits."""
    assert tensor.data is not None
    packed, bits = np.frombuffer(tensor.data, np.int8), BITS[tensor.type]
    every = np.stack([packed << first >> 8 - bits for first in range(8 - bits, -1, -bits)], -1).reshape(-1)
    count = int(np.prod(tensor.shape, dtype=np.int64))
    return replace(tensor, type="INT8", data=memoryview(every[:count].tobytes()))
