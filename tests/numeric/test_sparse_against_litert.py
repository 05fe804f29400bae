"""Sparse constants: random ones are to DENSIFY what they are to LiteRT; damaged ones are one error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from relay.errors import Malformed, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Array, Case, Reference, T, pack, schema

VECTORS = ("Int32Vector", "Uint16Vector", "Uint8Vector")
Levels = list[int | tuple[list[int], list[int]]]
"""The size of a dense level, or segments and indices."""


@pytest.fixture(autouse=True)
def installed() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")


def encoded(array: Array, sparse: Sequence[bool]) -> tuple[Levels, Array]:
    """The levels of an array whose dimensions are in the order of levels: by the definition, node after node."""
    nodes: list[tuple[int, ...]] = [()]
    levels: Levels = []
    for depth, is_sparse in enumerate(sparse):
        size = array.shape[depth]
        below = [[i for i in range(size) if not is_sparse or array[(*node, i)].any()] for node in nodes]
        if is_sparse:
            starts = np.cumsum([0, *(len(row) for row in below)]).tolist()
            levels.append((starts, [i for row in below for i in row]))
        else:
            levels.append(size)
        nodes = [(*node, i) for node, row in zip(nodes, below, strict=True) for i in row]
    return levels, np.array([array[node] for node in nodes], array.dtype)


def model(shape: Sequence[int], dtype: str, values: Array, order: Sequence[int], blocks: Sequence[int], levels: Levels,
          vector: str = "Int32Vector") -> bytes:  # fmt: skip
    """DENSIFY of these values."""
    s = schema()
    whole, graph = s.ModelT(), s.SubGraphT()
    tensors: list[Any] = []
    graph.name, graph.tensors, graph.operators, graph.inputs, graph.outputs = b"main", tensors, [], [], []
    whole.version, whole.description, whole.buffers, whole.operatorCodes = 3, b"sparse", [s.BufferT()], []
    whole.subgraphs, whole.metadata, whole.signatureDefs = [graph], [], []
    Case("DENSIFY", [T(values, dtype)], [T(shape, dtype)]).enter(whole, graph)
    tensor = tensors[0]
    tensor.shape, tensor.sparsity = list(shape), s.SparsityParametersT()
    tensor.sparsity.traversalOrder, tensor.sparsity.blockMap = list(order), list(blocks)
    rows: list[Any] = []
    for level in levels:
        row = s.DimensionMetadataT()
        rows.append(row)
        if isinstance(level, int):
            row.format, row.denseSize = 0, level
            continue
        row.format = 1
        kind = getattr(s.SparseIndexVector, vector)
        row.arraySegmentsType = row.arrayIndicesType = kind
        row.arraySegments, row.arrayIndices = (getattr(s, f"{vector}T")() for _ in range(2))
        row.arraySegments.values, row.arrayIndices.values = level
    tensor.sparsity.dimMetadata = rows
    return pack(whole)


def random_case(rng: np.random.Generator, dtype: str) -> tuple[bytes, Array]:
    """Rank 1 to 4, perhaps in blocks, perhaps with other dimensions first."""
    rank = int(rng.integers(1, 5))
    blocks = sorted(int(n) for n in rng.choice(rank, int(rng.integers(0, min(rank, 2) + 1)), replace=False))
    sizes = [int(rng.integers(1, 4)) for _ in blocks]
    shape = [int(rng.integers(1, 5)) for _ in range(rank)]
    outer = list(shape)
    for axis, size in zip(blocks, sizes, strict=True):
        shape[axis] *= size
    array = rng.integers(-9, 10, shape).astype(dtype) * (rng.random(shape) < 0.3).astype(dtype)
    array.flat[int(rng.integers(array.size))] = 7
    split: list[int] = []
    for axis in range(rank):
        split += [outer[axis], *(size for place, size in zip(blocks, sizes, strict=True) if place == axis)]
    inner = [sum(2 if n in blocks else 1 for n in range(axis)) for axis in range(rank)]
    turned = [int(n) for n in rng.permutation(rank)]
    order = [*turned, *range(rank, rank + len(blocks))]
    axes = [*(inner[axis] for axis in turned), *(inner[axis] + 1 for axis in blocks)]
    sparse = [*(bool(rng.integers(2)) for _ in range(rank)), *(False for _ in blocks)]
    levels, values = encoded(array.reshape(split).transpose(axes), sparse)
    vector = VECTORS[int(rng.integers(3))]
    return model(shape, dtype, values, order, blocks, levels, vector), array


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_random_sparse_constants_equal_litert(dtype: str) -> None:
    rng = np.random.default_rng(len(dtype))
    for _ in range(60):
        file, array = random_case(rng, dtype)
        (found,) = run(from_tflite(file), [])
        assert found.dtype == array.dtype and np.array_equal(found, array)
        assert np.array_equal(Reference(file).run([])[0], array)


def small(order: Sequence[int] = (0, 1), blocks: Sequence[int] = (), levels: Levels | None = None,
          shape: Sequence[int] = (2, 3), count: int = 2) -> Callable[[], bytes]:  # fmt: skip
    """Two rows of three, of which the first has elements 0 and 2."""
    given = levels if levels is not None else [2, ([0, 2, 2], [0, 2])]
    return lambda: model(shape, "float32", np.ones(count, np.float32), order, blocks, given)


REFUSED: dict[str, tuple[type[RelayError], Callable[[], bytes]]] = {
    "8 bytes of sparse data are 4294967296 dense": (Unsupported, small(shape=[1 << 15, 1 << 15])),
    "8 bytes of sparse data for 3 elements of float32": (Malformed, small(levels=[2, ([0, 2, 3], [0, 2, 1])])),
    "2 levels, traversed as (0, 0)": (Malformed, small(order=[0, 0])),
    "2 levels, traversed as (0, 1), with blocks of (5,)": (Malformed, small(blocks=[5])),
    "blocks of 2 do not fit dimension 1": (Malformed, small(order=[0, 1, 2], blocks=[1], levels=[2, 1, 2])),
    "a dense level of 4 indices stands for 3": (Malformed, small(levels=[2, 4])),
    "its levels come to more than the tensor's 6 elements": (
        Malformed,
        small(levels=[([0, 4], [0, 1, 0, 1]), 3]),
    ),
    "2 segments of 2 indices do not fit 2 rows": (Malformed, small(levels=[2, ([0, 2], [0, 2])])),
    "3 segments of 1 indices do not fit 2 rows": (Malformed, small(levels=[2, ([0, 2, 2], [0])])),
    "an index is outside the 3 of its level": (Malformed, small(levels=[2, ([0, 2, 2], [0, 3])])),
    "is no sparse constant of the result's type": (
        Unsupported,
        lambda: Case("DENSIFY", [T([2], "float32")], [T([2], "float32")]).model(),
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_damage_is_told(words: str) -> None:
    error, file = REFUSED[words]
    with pytest.raises(error) as raised:
        from_tflite(file())
    assert words in str(raised.value)
