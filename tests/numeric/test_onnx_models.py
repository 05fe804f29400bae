"""Real ONNX models, whose results ONNX Runtime has written down, in the interpreter and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the importer needs it")

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.frontend import from_onnx
from relay.interpreters import run
from relay.module import IRModule

MODELS = Path(__file__).parents[3] / "shared/models/onnx"
FLOATS = (
    "bert_tiny_random",
    "magika_v3_3",
    "minilm_l6_int8_weights",
    "mnist",
    "silero_vad_if",
    "superresolution",
    "ultraface_slim",
)
QUICK = ("mnist", "bert_tiny_random")
RUNS = ("r0", "r1", "r2")


def given(name: str, number: str) -> tuple[IRModule, list[Array], list[Array]]:
    """The module for the sizes of a run, its inputs, and what ONNX Runtime gave without graph optimisations. An input
    of rank 0 that branches depend on, silero's sample rate, is a constant."""
    if not MODELS.is_dir():
        pytest.skip("the models are not here")
    with np.load(MODELS / f"golden/{name}.npz") as golden:
        arrays = {key: golden[key] for key in golden.files}
    inputs = [arrays[f"{number}_in{k}"] for k in range(sum(key.startswith(f"{number}_in") for key in arrays))]
    outputs = [arrays[f"{number}_out{k}"] for k in range(sum(key.startswith(f"{number}_out") for key in arrays))]
    from onnx import ModelProto  # here: without it the file is skipped

    proto = ModelProto.FromString((MODELS / f"{name}.onnx").read_bytes())
    held = {each.name for each in proto.graph.initializer}
    named = dict(zip([each.name for each in proto.graph.input if each.name not in held], inputs, strict=True))
    fixed = {key: array for key, array in named.items() if not array.ndim}
    shapes = {key: array.shape for key, array in named.items() if array.ndim}
    module = from_onnx(MODELS / f"{name}.onnx", shapes=shapes, constants=fixed)
    return module, [array for array in named.values() if array.ndim], outputs


def compiled_run(module: IRModule, inputs: list[Array]) -> Sequence[Array]:
    found = build(module).run(*inputs)
    return [found] if isinstance(found, np.ndarray) else [*(found or ())]


def telling(name: str, number: str) -> bool:
    """Whether the golden results take many values, or differ from those of another run: others show nothing."""
    with np.load(MODELS / f"golden/{name}.npz") as golden:
        keys = [key for key in golden.files if key.startswith(f"{number}_out")]
        other = "r1" if number == "r0" else "r0"
        pairs = [(golden[key], golden[key.replace(number, other, 1)]) for key in keys]
    return all(a.shape != b.shape or np.unique(a).size >= 50 or (a != b).any() for a, b in pairs)


def close(results: Sequence[Array], wanted: list[Array]) -> None:
    """Within 1e-5 of the largest output."""
    largest = max(float(np.abs(each).max()) for each in wanted)
    for result, each in zip(results, wanted, strict=True):
        assert result.shape == each.shape and result.dtype == each.dtype
        assert np.unique(each).size >= 50 or each.size < 50
        assert float(np.abs(result - each).max()) <= 1e-5 * largest


@pytest.mark.parametrize("name", QUICK)
def test_one_run(name: str) -> None:
    module, inputs, wanted = given(name, "r0")
    close(run(module, inputs), wanted)


def test_one_run_compiled() -> None:
    module, inputs, wanted = given("mnist", "r1")
    close(compiled_run(module, inputs), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("number", RUNS)
@pytest.mark.parametrize("name", FLOATS)
def test_float_models(name: str, number: str, compiled: bool) -> None:
    module, inputs, wanted = given(name, number)
    close(compiled_run(module, inputs) if compiled else run(module, inputs), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("level", range(5))
@pytest.mark.parametrize("name", FLOATS)
def test_float_models_at_levels(name: str, level: int) -> None:
    module, inputs, wanted = given(name, "r0")
    assert telling(name, "r0")
    executable = build(module, opt_level=level)
    for threads in (1, 2):
        executable.num_threads = threads
        found = executable.run(*inputs)
        close([found] if isinstance(found, np.ndarray) else [*(found or ())], wanted)
