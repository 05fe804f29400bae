"""Random ONNX graphs against ONNX Runtime, interpreted and compiled; kept regressions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the package onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from relay.frontend import from_onnx  # noqa: E402
from relay.module import IRModule  # noqa: E402
from relay.quantize import QdqToInteger  # noqa: E402
from tests.conftest import Cases  # noqa: E402
from tests.fuzz.graph_comparison import KEPT, Oracle, Runs, Sample, Server, differing, kept  # noqa: E402
from tests.fuzz.random_onnx import Mixed  # noqa: E402
from tests.numeric.litert_models import random_numbers  # noqa: E402


def results(model: bytes, feeds: Runs) -> Runs:
    """Of ONNX Runtime, with all optimisations, those of signed codes included."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return [session.run(None, dict(zip(names, given, strict=True))) for given in feeds]


SERVER = Server(results)


def wanted(sample: Sample) -> Runs | None:
    return SERVER(sample.model, sample.feeds)


def imported(sample: Sample) -> IRModule:
    return QdqToInteger()(from_onnx(sample.model))


def draw(seed: int, steps: Sequence[int]) -> tuple[Sample, list[str]] | None:
    graph = Mixed(seed, steps).graph
    if not graph.outputs:
        return None
    rng, given = np.random.default_rng([seed, 998]), list(graph.inputs.values())
    feeds: Runs = [given, [random_numbers(rng, array.shape, array.dtype.name) for array in given]]
    kinds = [node.op_type for node in graph.nodes]
    return Sample(graph.model().SerializeToString(), feeds, "onnx", tolerance=1e-4), kinds


ORACLE = Oracle(draw, wanted, imported)


def test_graphs_equal_onnxruntime_interpreted() -> None:
    assert ORACLE.fuzz(range(40), compiled=False)["equal"] >= 30


@pytest.mark.ci
def test_graphs_equal_onnxruntime_compiled() -> None:
    assert ORACLE.fuzz(range(100, 103), compiled=True)["equal"] >= 2


@pytest.mark.fuzz
@pytest.mark.parametrize("compiled", [False, True])
def test_many_graphs_equal_onnxruntime(compiled: bool, cases: Cases) -> None:
    ORACLE.fuzz(cases(200 if compiled else 2000), compiled=compiled)


@pytest.mark.parametrize("file", sorted(KEPT.glob("*.onnx")), ids=lambda file: file.stem)
def test_kept_regressions_equal_onnxruntime(file: Path) -> None:
    sample, _ = kept(file)
    found = wanted(sample)
    assert found is not None and differing(sample, found, imported, [{"target": "llvm"}]) == ""
