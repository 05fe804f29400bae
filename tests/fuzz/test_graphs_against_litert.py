"""Random `.tflite` graphs against LiteRT's reference kernels, interpreted and compiled; kept regressions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay import signature
from relay.frontend import from_tflite
from relay.interpreters import qnn_functions
from relay.module import IRModule
from tests.conftest import Cases
from tests.fuzz.graph_comparison import KEPT, Oracle, Runs, Sample, Server, differing, kept
from tests.fuzz.random_networks import Network
from tests.fuzz.random_tflite import Graph
from tests.numeric.litert_models import Reference, random_numbers
from tests.numeric.test_quantised_operators_against_litert import (
    functions_of_this_machine as functions_of_this_machine,  # a fixture that every test here uses
)

RUNS = 3
assert qnn_functions


@pytest.fixture(autouse=True)
def litert() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")


def results(model: bytes, feeds: Runs, images: int) -> Runs:
    """Of LiteRT, run by run; where `images` is not 0, of each image by itself, joined again."""
    if not images:
        reference = Reference(model, shapes=[array.shape for array in feeds[0]])
        return [reference.run(given) for given in feeds]
    each = list[Runs]()
    for image in range(images):
        reference = Reference(model)
        each.append([reference.run([array[image : image + 1] for array in given]) for given in feeds])
    return [[np.concatenate(arrays) for arrays in zip(*turn, strict=True)] for turn in zip(*each, strict=True)]


SERVER = Server(results)


def wanted(sample: Sample) -> Runs | None:
    return SERVER(sample.model, sample.feeds, sample.options.get("batch", 0))


def imported(sample: Sample) -> IRModule:
    return from_tflite(sample.model, **sample.options)


def draw(seed: int, steps: Sequence[int]) -> tuple[Sample, list[str]] | None:
    """Two of five are networks, half of them of another batch or size; every second has parameters beyond the usual."""
    kind = Network if seed % 5 < 2 else Graph
    graph = kind(seed, steps, stretched=bool(seed % 2))
    if not graph.kinds:
        return None
    rng, options = np.random.default_rng([seed, 998]), dict[str, Any]()
    if isinstance(graph, Network) and rng.integers(2):
        options = graph.resize(rng)
    feeds = [graph.numbers(np.random.default_rng([seed, turn])) for turn in range(RUNS)]
    return Sample(graph.file(), feeds, "tflite", options, tolerance_of(graph)), graph.kinds


def tolerance_of(graph: Graph) -> float:
    """Sums of layers after layers; a state of floats that a layer makes codes of again may become the next code."""
    if graph.quantizes_states:
        return 0.02
    return 1e-4 if isinstance(graph, Network) else 1e-5


ORACLE = Oracle(draw, wanted, imported)


def test_graphs_equal_litert_interpreted() -> None:
    assert ORACLE.fuzz(range(60), compiled=False)["equal"] >= 40


def test_graphs_equal_litert_compiled() -> None:
    assert ORACLE.fuzz(range(100, 105), compiled=True)["equal"] >= 3


@pytest.mark.fuzz
@pytest.mark.parametrize("compiled", [False, True])
def test_many_graphs_equal_litert(compiled: bool, cases: Cases) -> None:
    ORACLE.fuzz(cases(200 if compiled else 2000), compiled=compiled)


@pytest.mark.parametrize("file", sorted(KEPT.glob("wrong_in_litert/*.tflite")), ids=lambda file: file.stem)
def test_litert_is_wrong(file: Path) -> None:
    """Models for sentences of docs/support.md."""
    sample, _ = kept(file)
    found = wanted(sample)
    assert found is not None and differing(sample, found, imported, []), "LiteRT is right: take the sentence out"


@pytest.mark.parametrize("file", sorted(KEPT.glob("*.tflite")), ids=lambda file: file.stem)
def test_kept_regressions_equal_litert(file: Path) -> None:
    if file.with_suffix(".npz").exists():
        sample, expected = kept(file)
    else:
        sample = Sample(file.read_bytes(), [], "tflite")
        inputs, _ = signature.read(imported(sample)["main"])
        rng = np.random.default_rng(0)
        given = [info for info in inputs if info.kind != "state"]
        sample.feeds += [[random_numbers(rng, info.shape, info.dtype.name) for info in given] for _ in range(RUNS)]
        expected = []
    found = wanted(sample)
    assert found is not None
    for ours, theirs in zip(expected, found, strict=False):
        for kept_array, array in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(kept_array, array, rtol=1e-5)
    assert differing(sample, found, imported, [{"target": "llvm"}]) == ""
