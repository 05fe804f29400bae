"""Weights of 4 bits, which TFLite's kernels widen to int8 before they compute with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relay.frontend.tflite.model import Subgraph, Tensor


def widened(graph: Subgraph) -> Subgraph:
    """The graph with its constants of INT4 as such of INT8."""
    if not any(_is_narrow(tensor) for tensor in graph.tensors):
        return graph
    return replace(graph, tensors=tuple(_wide(t) if _is_narrow(t) else t for t in graph.tensors))


def _is_narrow(tensor: Tensor) -> bool:
    return tensor.type == "INT4" and tensor.data is not None and not tensor.is_sparse


def _wide(tensor: Tensor) -> Tensor:
    """Two numbers a byte, the first in the low bits."""
    assert tensor.data is not None
    packed = np.frombuffer(tensor.data, np.int8)
    both = np.stack([packed << 4 >> 4, packed >> 4], -1).reshape(-1)
    count = int(np.prod(tensor.shape, dtype=np.int64))
    return replace(tensor, type="INT8", data=memoryview(both[:count].tobytes()))
