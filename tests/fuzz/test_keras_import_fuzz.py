"""Damaged `.keras` files: importing one ends in a RelayError or in a module that verifies."""

from __future__ import annotations

import json
import random
import zipfile
from functools import cache
from typing import Any

import pytest

from relay.frontend import from_keras
from tests.conftest import Cases
from tests.fuzz.run_cases import import_of, run_cases
from tests.fuzz.test_torch_import_fuzz import change, changed_bytes
from tests.numeric.keras_models import CASES, WEIGHTS, parts, zipped

SEEDS = ("shared int8_attention lstm_both conv2d_same batch_normalization depthwise2d resizing_bicubic ops_split "
         "ops_flip reshape embedding attention_mask time_distributed conv2d_transpose_same ops_reshape "
         "normalization").split()  # fmt: skip


@cache
def seeds() -> list[dict[str, bytes]]:
    return [parts(CASES[f"{name}.keras"]) for name in SEEDS]


def changed_weights(entries: dict[str, bytes], rng: random.Random) -> bytes:
    """An archive whose HDF5 file is damaged: in its first kilobytes are the groups, further on more of them."""
    data = entries[WEIGHTS]
    if rng.randrange(2):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(changed) - 8)
            changed[at : at + rng.choice((1, 8))] = rng.choice((b"\0", b"\xff" * 8, rng.randbytes(8), rng.randbytes(1)))
        return zipped({**entries, WEIGHTS: bytes(changed)})
    return zipped({**entries, WEIGHTS: changed_bytes(data, rng)})


def changed_config(entries: dict[str, bytes], rng: random.Random) -> bytes:
    """An archive whose JSON is read, but where numbers, names or parts of it are others."""
    tree: Any = json.loads(entries["config.json"])
    for _ in range(rng.choice((1, 1, 2, 4))):
        change(tree, rng)
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    return zipped({**entries, "config.json": json.dumps(tree).encode()}, method)


def changed_archive(entries: dict[str, bytes], rng: random.Random) -> bytes:
    return changed_bytes(zipped(entries), rng)


def draw(case: int) -> bytes:
    rng = random.Random(case)
    damage = rng.choice((changed_archive, changed_weights, changed_config, changed_config))
    return damage(rng.choice(seeds()), rng)


end_of = import_of(from_keras)


def test_damaged_archives_are_refused_or_imported() -> None:
    ends = run_cases(range(200), draw, end_of)
    assert ends["imported"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_archives_are_refused_or_imported(cases: Cases) -> None:
    run_cases(cases(10_000), draw, end_of)
