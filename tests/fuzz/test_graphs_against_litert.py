"""Random `.tflite` graphs against LiteRT's reference kernels, interpreted and compiled; kept regressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.errors import RelayError
from relay.interpreters import qnn_functions
from tests.conftest import Cases
from tests.fuzz.random_tflite import Graph, differing, wanted_of
from tests.numeric.litert_models import Array
from tests.numeric.test_quantised_operators_against_litert import (
    functions_of_this_machine as functions_of_this_machine,  # a fixture that every test here uses
)

KEPT = Path(__file__).parents[1] / "regressions"
"""Graphs that once differed, with the numbers that went in and LiteRT's results."""
RUNS = 2
TARGETS = ("llvm", "x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu -mcpu=haswell")
assert qnn_functions


@pytest.fixture(autouse=True)
def litert() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")


def drawn(seed: int) -> tuple[range, bool, list[dict[str, Any]]]:
    """The steps of a graph, whether its parameters are beyond the usual, and a way to build it."""
    rng = np.random.default_rng([seed, 999])
    way = {
        "opt_level": int(rng.integers(5)),
        "num_threads": int(rng.integers(1, 4)),
        "target": TARGETS[int(rng.integers(len(TARGETS)))],
        "saved": bool(rng.integers(2)),
    }
    return range(int(rng.integers(2, 9))), bool(seed % 2), [way]


def outcome(seed: int, steps: Iterable[int], stretched: bool, ways: list[dict[str, Any]]) -> str:
    """`refused` by LiteRT, `unsupported` by us, empty where all is equal, else what differs."""
    graph = Graph(seed, list(steps), stretched=stretched)
    if not graph.kinds:
        return "refused"
    model = graph.file()
    feeds: list[list[Array]] = [graph.numbers(np.random.default_rng([seed, turn])) for turn in range(RUNS)]
    wanted = wanted_of(model, feeds)
    if wanted is None:
        return "refused"
    try:
        return differing(model, feeds, wanted, ways)
    except RelayError:
        return "unsupported"


def shrunk(seed: int, steps: Iterable[int], stretched: bool, ways: list[dict[str, Any]]) -> list[int]:
    """The steps without which the graph would not differ."""
    kept = list(steps)
    for step in list(kept):
        less = [each for each in kept if each != step]
        if less and outcome(seed, less, stretched, ways) not in ("", "refused", "unsupported"):
            kept = less
    return kept


def fuzz(seeds: Iterator[int] | range, *, built: bool) -> Counter[str]:
    """How graphs ended. What differs is shrunk, and its file kept in `tests/regressions`."""
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in seeds:
        steps, stretched, ways = drawn(seed)
        found = outcome(seed, steps, stretched, ways if built else [])
        ends[found if found in ("refused", "unsupported") else "differing" if found else "equal"] += 1
        if found not in ("", "refused", "unsupported"):
            least = shrunk(seed, steps, stretched, ways if built else [])
            graph = Graph(seed, least, stretched=stretched)
            KEPT.mkdir(exist_ok=True)
            (KEPT / f"graph_{seed}.tflite").write_bytes(graph.file())
            wrong.append(f"seed {seed}, steps {least}, {graph.kinds}: {found}")
    print(dict(ends))
    assert not wrong, "\n".join(wrong)
    return ends


def test_graphs_equal_litert_interpreted() -> None:
    assert fuzz(range(40), built=False)["equal"] >= 30


def test_graphs_equal_litert_compiled() -> None:
    assert fuzz(range(100, 104), built=True)["equal"] >= 3


@pytest.mark.fuzz
@pytest.mark.parametrize("built", [False, True])
def test_many_graphs_equal_litert(built: bool, cases: Cases) -> None:
    fuzz(iter(cases(200 if built else 2000)), built=built)


@pytest.mark.parametrize("file", sorted(KEPT.glob("*.tflite")), ids=lambda file: file.stem)
def test_kept_regressions_equal_litert(file: Path) -> None:
    from relay import signature
    from relay.frontend import from_tflite
    from tests.numeric.litert_models import random_numbers

    model = file.read_bytes()
    inputs, _ = signature.read(from_tflite(model)["main"])
    given = [info for info in inputs if info.kind != "state"]
    rng = np.random.default_rng(0)
    feeds = [[random_numbers(rng, info.shape, info.dtype.name) for info in given] for _ in range(RUNS)]
    wanted = wanted_of(model, feeds)
    assert wanted is not None and differing(model, feeds, wanted, [{"target": "llvm"}]) == ""
