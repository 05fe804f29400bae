"""Damaged `.pt2` archives: importing one ends in a RelayError or in a module that verifies."""

from __future__ import annotations

import json
import random
import zipfile
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from relay.frontend import from_pytorch
from tests.conftest import Cases
from tests.fuzz.run_cases import import_of, run_cases
from tests.numeric.torch_programs import Json, archive, invoke, tensor

F32 = "float32"
NUMBERS: list[Any] = [
    -(1 << 63),
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    255,
    65536,
    1 << 40,
    (1 << 63) - 1,
    0.5,
    1e30,
    True,
    None,
    "x",
    [],
    {},
]


def ints(*values: int) -> Json:
    return {"as_ints": list(values)}


@cache
def seeds() -> list[bytes]:
    """Programs of operators of many kinds."""
    x = {"x": ((2, 3, 4, 4), F32)}
    own: Json = {"self": tensor("x")}
    calls = {
        "aten.view.default": {**own, "size": ints(6, -1)}, "aten.permute.default": {**own, "dims": ints(3, 1, 2, 0)},
        "aten.slice.Tensor": {**own, "dim": {"as_int": 1}, "start": {"as_int": 1}, "end": {"as_int": 3}},
        "aten.sum.dim_IntList": {**own, "dim": ints(1, 2)}, "aten.constant_pad_nd.default": {**own, "pad": ints(1, -1)},
        "aten.avg_pool2d.default": {**own, "kernel_size": ints(2, 2), "padding": ints(1, 1)},
        "aten.roll.default": {**own, "shifts": ints(1), "dims": ints(2)},
        "aten.topk.default": {**own, "k": {"as_int": 2}},
        "aten.upsample_bilinear2d.vec": {"input": tensor("x"), "output_size": ints(7, 5)},
        "aten.unfold.default": {**own, "dimension": {"as_int": 2}, "size": {"as_int": 2}, "step": {"as_int": 1}},
        "aten.split.Tensor": {**own, "split_size": {"as_int": 2}, "dim": {"as_int": 1}},
    }  # fmt: skip
    found = [archive([invoke(target, given, "y")], x, ["y"]) for target, given in calls.items()]
    weights = {"w": np.ones((2, 3, 3, 3), np.float32), "b": np.zeros(2, np.float32)}
    conv = {
        "input": tensor("x"),
        "weight": tensor("w"),
        "bias": tensor("b"),
        "stride": ints(1, 1),
        "padding": ints(1, 1),
    }
    nodes = [invoke("aten.conv2d.default", conv, "c"), invoke("aten.add_.Tensor", {"self": tensor("b"), "other": {
        "as_int": 1}}, "n"), invoke("aten.relu.default", {"self": tensor("c")}, "y")]  # fmt: skip
    ranges = {"s0": {"min_val": 1, "max_val": 8}}
    opened = {"x": (("s0", 3, 4, 4), F32)}
    return [*found, archive(nodes, opened, ["y"], weights=weights, buffers=["b"], range_constraints=ranges)]


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes set, left out or twice, or the end cut off."""
    start = rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[start + rng.randrange(1, 32) :]
        case 2:
            return data[:start] + data[start : start + rng.randrange(64)] + data[start:]
        case _:
            return data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :]


def changed_json(data: bytes, rng: random.Random) -> bytes:
    """An archive whose JSON is read, but where numbers, names or parts of it are others."""
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        chosen = rng.choice([name for name in old.namelist() if name.endswith(".json")])
        for name in old.namelist():
            content = old.read(name)
            if name == chosen:
                tree = json.loads(content)
                for _ in range(rng.choice((1, 1, 2, 4))):
                    change(tree, rng)
                content = json.dumps(tree).encode()
            new.writestr(name, content, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return stream.getvalue()


def change(tree: Any, rng: random.Random) -> None:
    """Change one value somewhere inside."""
    keys: list[Any] = sorted(tree) if hasattr(tree, "keys") else [*range(len(tree))]
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(tree[key], dict | list) and len(tree[key]) and rng.randrange(12):
        change(tree[key], rng)
    elif hasattr(tree, "keys") and not rng.randrange(4):
        del tree[key]
    else:
        tree[key] = rng.choice(NUMBERS)


def draw(case: int) -> bytes:
    rng = random.Random(case)
    damage = rng.choice((changed_bytes, changed_json, changed_json))
    return damage(rng.choice(seeds()), rng)


end_of = import_of(from_pytorch)


def test_damaged_archives_are_refused_or_imported() -> None:
    ends = run_cases(range(200), draw, end_of)
    assert ends["imported"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_archives_are_refused_or_imported(cases: Cases) -> None:
    run_cases(cases(10_000), draw, end_of)
