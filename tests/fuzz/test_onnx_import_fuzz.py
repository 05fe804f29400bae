"""Damaged .onnx files: importing one ends in a RelayError or in a module that verifies."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

pytest.importorskip("onnx", reason="the importer needs it")

import onnx

from relay.frontend import from_onnx
from tests.conftest import Cases
from tests.fuzz.run_cases import import_of, run_cases
from tests.numeric.onnx_node_tests import cases_of

SEEDS = {
    "affinegrid": "AffineGrid",
    "constant": "Constant",
    "conv": "Conv",
    "gru": "GRU",
    "loop": "Loop",
    "pad": "Pad",
    "quantizelinear": "QuantizeLinear",
    "slice": "Slice",
    "split": "Split",
}


@cache
def seeds() -> list[bytes]:
    """The models of some node tests."""
    return [case.model.SerializeToString() for module, kind in SEEDS.items() for case in cases_of(module, kind)]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def set_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed)


def repeat_bytes(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start : start + rng.randrange(64)] + data[start:]


def drop_bytes(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(1, 32) :]


NUMBERS = (-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 7, 255, 65536, (1 << 31) - 1, 1 << 40, (1 << 63) - 1)


def change_fields(data: bytes, rng: random.Random) -> bytes:
    """A file that protobuf reads, some of whose fields are others: numbers, names, types, parts left out or twice."""
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change_field(model, model, rng)
    return model.SerializeToString()


def _change_field(model: onnx.ModelProto, message: Any, rng: random.Random) -> None:
    """Change one field of a message, or of one inside of it."""
    fields: list[tuple[Any, Any]] = message.ListFields()
    if not fields:
        return
    field, value = rng.choice(fields)
    listed = hasattr(value, "append")
    items: Any = value if listed else [value]
    inner = rng.choice(items)
    if hasattr(inner, "ListFields"):
        if listed and not rng.randrange(6):
            _edit_list(items, rng)
        else:
            _change_field(model, inner, rng)
        return
    with suppress(ValueError, TypeError):  # a number that the field does not hold
        if listed:
            items[rng.randrange(len(items))] = _other(inner, model, rng)
        else:
            setattr(message, field.name, _other(inner, model, rng))


def _edit_list(items: Any, rng: random.Random) -> None:
    """Leave one out, or have one twice."""
    if rng.randrange(2):
        del items[rng.randrange(len(items))]
    else:
        items.add().CopyFrom(rng.choice(items))


def _other(value: object, model: onnx.ModelProto, rng: random.Random) -> object:
    """Another value of the kind."""
    if isinstance(value, int):
        return rng.choice((*NUMBERS, value + 1, value - 1))
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 0.5, 1e30, float("inf"), float("nan")))
    if isinstance(value, str):
        return rng.choice(("", "x", *(each for node in model.graph.node for each in (node.op_type, *node.input))))
    assert isinstance(value, bytes)
    return damaged(value, rng) if value else b"x"


def damaged(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((truncate, set_bytes, repeat_bytes, drop_bytes))(data, rng)


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate,
    set_bytes,
    repeat_bytes,
    drop_bytes,
    change_fields,
    change_fields,
    change_fields,
)


def draw(case: int) -> bytes:
    rng = random.Random(case)
    return rng.choice(DAMAGES)(rng.choice(seeds()), rng)


end_of = import_of(from_onnx)


def test_damaged_files_are_refused_or_imported() -> None:
    cases = [*range(120), 1663, 1004393]  # the last have a batch of 2^31 and a Split into as many parts
    ends = run_cases(cases, draw, end_of)
    assert ends["imported"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_files_are_refused_or_imported(cases: Cases) -> None:
    run_cases(cases(10_000), draw, end_of)
