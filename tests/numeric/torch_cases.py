"""`Case`: one call of an operator of PyTorch, and what it gave; cases in a file, and as a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from relay.dialects.attributes import Array
from tests.numeric.torch_programs import Json, archive

FIRST_ONLY = {
    "_embedding_bag", "_embedding_bag_forward_only", "_native_batch_norm_legit_no_training", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "batch_norm", "max_pool2d_with_indices", "max_pool3d_with_indices", "native_batch_norm",
    "native_group_norm", "native_layer_norm", "_scaled_dot_product_flash_attention_for_cpu", "adaptive_max_pool1d",
    "_native_batch_norm_legit", "max_pool1d_with_indices", "_fused_rms_norm", "embedding_bag",
}  # fmt: skip
"""Operators whose first result is computed only: others are for training."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    target: str
    arguments: dict[str, Json]
    """As archives have them; the tensors are named t0, t1, ..."""
    inputs: list[Array]
    outputs: list[Array]

    @property
    def results(self) -> list[Array]:
        """Those that the importer computes."""
        return self.outputs[:1] if self.target.split(".")[1] in FIRST_ONLY else self.outputs

    def elements(self) -> int:
        return sum(each.size for each in (*self.inputs, *self.outputs))

    def kinds(self) -> list[list[Any]]:
        return [[each.dtype.name, each.ndim] for each in self.inputs]

    def signature(self) -> str:
        shapes = [[each.dtype.name, *each.shape] for each in self.inputs]
        return json.dumps([shapes, self.arguments], sort_keys=True)


def saved(path: str, cases: Sequence[Case]) -> None:
    """Write cases: their calls as JSON, and the numbers of all tensors of an element type as one vector."""
    vectors: dict[str, list[Array]] = {}
    rows: list[Any] = []
    for case in cases:
        places: list[list[Any]] = []
        for array in (*case.inputs, *case.outputs):
            vectors.setdefault(array.dtype.name, []).append(array.reshape(-1))
            places.append([array.dtype.name, *array.shape])
        rows.append([case.target, case.arguments, len(case.inputs), places])
    text = np.frombuffer(json.dumps(rows).encode(), np.uint8)
    arrays: dict[str, Any] = {name: np.concatenate(each) for name, each in vectors.items()}
    np.savez_compressed(path, cases=text, **arrays)


def targets(path: str) -> list[str]:
    """The operators of the cases of a file, sorted."""
    with np.load(path) as file:
        return sorted({target for target, *_ in json.loads(file["cases"].tobytes())})


def loaded(path: str) -> dict[str, list[Case]]:
    """The cases of a file, by operator."""
    found: dict[str, list[Case]] = {}
    with np.load(path) as file:
        vectors = {name: file[name] for name in file.files}
    used = dict.fromkeys(vectors, 0)
    for target, arguments, count, places in json.loads(vectors["cases"].tobytes()):
        arrays: list[Array] = []
        for dtype, *shape in places:
            size = int(np.prod(shape, dtype=int))
            arrays.append(vectors[dtype][used[dtype] : used[dtype] + size].reshape(shape))
            used[dtype] += size
        found.setdefault(target, []).append(Case(target, arguments, arrays[:count], arrays[count:]))
    return found


def program(cases: Sequence[Case]) -> bytes:
    """One program of all the calls."""
    nodes: list[Json] = []
    inputs: dict[str, tuple[Sequence[int | str], str]] = {}
    types: dict[str, tuple[Sequence[int | str], str]] = {}
    outputs: list[str] = []
    for number, case in enumerate(cases):
        for place, array in enumerate(case.inputs):
            inputs[f"c{number}t{place}"] = (array.shape, array.dtype.name)
        names = [f"c{number}o{place}" for place in range(len(case.outputs))]
        for name, array in zip(names, case.outputs, strict=True):
            types[name] = (array.shape, array.dtype.name)
        outputs += names[: len(case.results)]
        given = [{"name": n, "arg": _renamed(a, number), "kind": 1} for n, a in case.arguments.items()]
        several = [{"as_tensor": {"name": name}} for name in names]
        target = f"torch.ops.{case.target}"
        nodes.append({"target": target, "inputs": given, "outputs": several, "name": f"c{number}"})
    return archive(nodes, inputs, outputs, types)


def _renamed(argument: object, number: int) -> Any:
    """The argument with the tensors of this case."""
    if isinstance(argument, list):
        return [_renamed(each, number) for each in cast("list[object]", argument)]
    if not isinstance(argument, dict):
        return argument
    row = cast(Json, argument)
    return {key: f"c{number}{each}" if key == "name" else _renamed(each, number) for key, each in row.items()}
