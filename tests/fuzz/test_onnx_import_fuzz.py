"""Damaged .onnx files: importing one ends in a RelayError or in a module that verifies."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

import pytest

pytest.importorskip("onnx", reason="the importer needs it")

from relay.errors import RelayError
from relay.frontend import from_onnx
from tests.conftest import Cases
from tests.numeric.onnx_node_tests import SECONDS, cases_of, limited

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


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate,
    set_bytes,
    set_bytes,
    repeat_bytes,
    drop_bytes,
)


def fuzz(numbers: Iterable[int]) -> Counter[str]:
    """Import damaged files; how each ended. A failure names the number of its case."""
    ends: Counter[str] = Counter()
    for number in numbers:
        rng = random.Random(number)
        damage = rng.choice(DAMAGES)
        file = damage(rng.choice(seeds()), rng)
        try:
            with limited(SECONDS):
                from_onnx(file).verify()
        except RelayError as error:
            ends[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"case {number}, {damage.__name__}: {error!r}") from error
        else:
            ends["imported"] += 1
    return ends


def test_damaged_files_are_refused_or_imported() -> None:
    ends = fuzz(range(120))
    assert ends["imported"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_files_are_refused_or_imported(cases: Cases) -> None:
    fuzz(cases(10_000))
