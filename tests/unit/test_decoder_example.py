"""The example of a language model: its texts, by streams, are those that ONNX Runtime's scores lead to."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples/decoder"
PROMPT = b"The executable of a model "


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.delitem(sys.modules, "run", raising=False)
    return import_module("run")


@cache
def decoder_of(name: str) -> Any:
    return import_module("run").Decoder(FOLDER / f"decoder_{name}.onnx")


@pytest.mark.parametrize(
    "name", [pytest.param("4bit", marks=pytest.mark.ci), pytest.param("int8", marks=pytest.mark.slow)]
)
def test_texts_are_those_of_onnx_runtime(name: str, example: Any):
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime gives the scores to compare with")
    path = FOLDER / f"decoder_{name}.onnx"
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    dtype = np.int8 if name == "int8" else np.float32
    past = {each.name: np.zeros(each.shape, dtype) for each in session.get_inputs()[2:]}

    def wanted(text: bytes, position: int) -> Any:
        positions = np.arange(position, position + len(text))
        tokens = np.frombuffer(text, np.uint8).astype(np.int64)[None]
        scores, *present = session.run(None, {"tokens": tokens, "positions": positions, **past})
        past.update(zip(past, present, strict=True))
        return scores[0, -1]

    decoder = decoder_of(name)
    assert len(decoder.executable.variant(n=1).graph["in_place"]) == len(past), "caches are written in place"
    text, scores, expected = bytearray(PROMPT), decoder.start(PROMPT), wanted(PROMPT, 0)
    while True:
        np.testing.assert_allclose(scores, expected, atol=1e-3 * float(np.abs(expected).max()))
        if len(text) == example.LENGTH:
            break
        text.append(example.greedy(expected))
        scores, expected = decoder.next(text[-1]), wanted(bytes(text[-1:]), len(text) - 1)
    found, *_ = example.continued(decoder, PROMPT, 40, example.greedy)
    assert PROMPT + found == bytes(text[: len(PROMPT) + 40])
    assert sum(byte < 128 for byte in text) == len(text), "the texts are ASCII"


@pytest.mark.ci
def test_a_seed_gives_the_same_text(example: Any):
    decoder = decoder_of("4bit")
    first, again, other = (example.continued(decoder, PROMPT, 30, example.sampled(0.7, seed))[0] for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.slow
def test_it_prints_texts_and_rates(example: Any, capsys: pytest.CaptureFixture[str]):
    assert example.main(["--bytes", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10 and [line.split(":")[0].strip() for line in lines[::2]][:1] == ["int8"]
    assert sum("bytes/s" in line for line in lines) == 4


def test_gradients_of_training_are_slopes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.delitem(sys.modules, "train", raising=False)
    train = import_module("train")
    weights = {name: array.astype(np.float64) for name, array in train.initial().items()}
    rng = np.random.default_rng(0)
    text = rng.integers(0, 256, (2, 8))
    tape = train.Tape(weights)
    train.loss(tape, text)
    for name, array in weights.items():
        place = int(text[0, 2]) if name == "embedding" else 2, 3
        at, step = place[: array.ndim], 1e-5
        sides: list[float] = []
        for sign in (1, -1):
            array[at] += sign * step
            sides.append(train.loss(train.Tape(weights), text))
            array[at] -= sign * step
        np.testing.assert_allclose(tape.gradients[name][at], (sides[0] - sides[1]) / (2 * step), rtol=1e-4, atol=1e-8)
