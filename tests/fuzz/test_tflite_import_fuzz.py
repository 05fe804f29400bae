"""Damaged .tflite files: importing one ends in a RelayError or in a module that verifies, and soon."""

from __future__ import annotations

import random
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from relay.frontend import from_tflite
from tests.conftest import Cases
from tests.fuzz.run_cases import import_of, run_cases
from tests.fuzz.test_tflite_reader_fuzz import DAMAGES, SMALL, Seed, seeds
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.test_control_flow_against_litert import Maker, model
from tests.numeric.test_numbers_from_shapes import flattened
from tests.numeric.test_shapes_against_litert import stale
from tests.numeric.test_sparse_against_litert import random_case
from tests.numeric.test_variables_against_litert import random_graphs

DIGITS = Path(__file__).parents[2] / "examples/digits"
WORST_SECONDS = 1.0


def written() -> list[Seed]:
    """An IF, a WHILE with an IF in it, variables, sparse constants, stored shapes that are wrong, numbers from shapes;
    where LiteRT's schema is at hand to write them."""
    if find_spec("ai_edge_litert") is None:
        return []
    maker = Maker(np.random.default_rng(0), "int8")
    graphs = [maker.conditional(), maker.branching_loop(), random_graphs(maker.rng, "int8")]
    sparse = [random_case(np.random.default_rng(seed), "int8")[0] for seed in range(3)]
    other = stale(CASES["CONV_2D"](np.random.default_rng(1), "CONV_2D"))
    return [*(Seed(model(each)) for each in graphs), *map(Seed, sparse), Seed(flattened()), Seed(other)]


@cache
def start_from() -> tuple[Seed, ...]:
    own = [Seed(path.read_bytes()) for path in sorted(DIGITS.glob("*.tflite"))]
    return (*own, *written(), *(seed for seed in seeds() if seed.file != SMALL))


def draw(case: int) -> bytes:
    rng = random.Random(case)
    return rng.choice(DAMAGES)(rng.choice(start_from()), rng)


end_of = import_of(from_tflite)


def test_damaged_files_are_refused_or_imported() -> None:
    ends = run_cases(range(100), draw, end_of, seconds=WORST_SECONDS)
    assert ends["imported"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_files_are_refused_or_imported(cases: Cases) -> None:
    run_cases(cases(15_000), draw, end_of, seconds=WORST_SECONDS)
