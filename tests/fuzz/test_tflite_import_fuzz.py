"""Damaged .tflite files: importing one ends in a RelayError or in a module that verifies, and soon."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from relay.errors import RelayError
from relay.frontend import from_tflite
from tests.conftest import Cases
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


def fuzz(cases: Iterable[int]) -> Counter[str]:
    """Import damaged files; how each ended. A failure names the number of its case."""
    own = [Seed(path.read_bytes()) for path in sorted(DIGITS.glob("*.tflite"))]
    start_from = own + written() + [seed for seed in seeds() if seed.file != SMALL]
    ends: Counter[str] = Counter()
    worst = 0.0
    for case in cases:
        rng = random.Random(case)
        damage = rng.choice(DAMAGES)
        file = damage(rng.choice(start_from), rng)
        start = time.process_time()
        try:
            from_tflite(file).verify()
        except RelayError as error:
            assert all(line.isprintable() for line in str(error).splitlines()), f"case {case}: {error}"
            ends[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"case {case}, {damage.__name__}: {error!r}") from error
        else:
            ends["imported"] += 1
        worst = max(worst, time.process_time() - start)
    assert worst < WORST_SECONDS, f"one file took {worst:.2f} s"
    print(f"{ends.total()} files: {dict(ends)}, worst {worst * 1e3:.0f} ms")
    return ends


def test_damaged_files_are_refused_or_imported() -> None:
    ends = fuzz(range(100))
    assert ends["imported"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_files_are_refused_or_imported(cases: Cases) -> None:
    fuzz(cases(15_000))
