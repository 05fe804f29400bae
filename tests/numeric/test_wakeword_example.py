"""The example of a wake word: all models of the package, step by step, give the codes of LiteRT."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.numeric.litert_models import Reference

FOLDER = Path(__file__).parents[2] / "examples/wakeword"
MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("pymicro_wakeword", reason="pymicro-wakeword brings the models")
    pytest.importorskip("ai_edge_litert", reason="LiteRT gives the codes to compare with")
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.delitem(sys.modules, "run", raising=False)
    return import_module("run")


@pytest.mark.parametrize("name", [MODELS[-1], *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS[:-1])])
def test_every_step_is_that_of_litert(name: str, example: Any):
    """500 steps of noise that gets louder and softer, then states."""
    detector = example.Detector(example.models(), name)
    reference = Reference((example.models() / f"{name}.tflite").read_bytes())
    rng = np.random.default_rng(0)
    found: list[bytes] = []
    for step in range(500):
        loud = 26 * (1 + np.sin(step / 20)) / 2
        codes = detector.takes.quantize(loud * rng.random(detector.takes.shape, np.float32))
        given = np.asarray(detector.stream.run(codes))
        np.testing.assert_array_equal(given, reference.run([codes])[0])
        found.append(given.tobytes() + b"".join(state.tobytes() for state in detector.stream.states.values()))
    assert len(set(found)) > 400, "the states change"


def test_a_recording(example: Any, capsys: pytest.CaptureFixture[str]):
    assert example.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("'Okay Nabu' is heard nowhere") and lines[1].startswith("66 steps of 30 ms of sound")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.delitem(sys.modules, "run", raising=False)
    run = import_module("run")
    monkeypatch.setattr(run, "PACKAGE", "no_such_package")
    assert run.main([]) == 1
    assert capsys.readouterr().out == "the package no_such_package is not installed; pip install pymicro-wakeword\n"
