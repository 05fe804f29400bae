"""Models, compiled, against the stored outputs of LiteRT's reference kernels: equal integers, floats within 1e-5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.runtime import Executable
from tests.numeric.test_models_interpreted import ALL, CLASSIFIERS, IMAGES, LARGE, MODELS, TOP

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
EACH = (*ALL, "tf2_mobilenet_v2_1.0_224_ptq")
DEFAULT = ("ad01_fp32", "ad01_int8", "kws_fp32", "kws_int8")
"""Dense layers and convolutions of all kinds, which take a second each."""


def outputs_of(executable: Executable, *inputs: Array) -> list[Array]:
    """The model's own outputs; states start anew and are left out."""
    results = executable.run(*inputs)
    assert results is not None
    every = results if isinstance(results, tuple) else (results,)
    return [r for r, spec in zip(every, executable.outputs, strict=True) if spec.kind == "output"]


def close(result: Array, wanted: Array) -> bool:
    if (result.dtype, result.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind == "f":
        return bool(np.abs(result - wanted).max() <= 1e-5 * np.abs(wanted).max())
    return np.array_equal(result, wanted)


def check(name: str) -> None:
    """Build one model and run it on every stored input."""
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    executable = relay.build(path)
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    tags = sorted({key.split("_in")[0] for key in golden.files if "_in" in key})
    assert set(tags) == set(ALL.get(name, IMAGES))
    inputs = sum(spec.kind == "input" for spec in executable.inputs)
    for tag in tags:
        given = [golden[f"{tag}_in{i}"] for i in range(inputs)]
        executable.num_threads = 1
        results = outputs_of(executable, *given)
        wanted = [golden[f"{tag}_out{i}"] for i in range(sum(key.startswith(f"{tag}_out") for key in golden.files))]
        assert len(results) == len(wanted)
        for number, (result, want) in enumerate(zip(results, wanted, strict=True)):
            assert close(result, want), f"{name}, input {tag}, output {number}"
        if name in CLASSIFIERS and tag in TOP:
            assert int(results[0].argmax()) == TOP[tag]
        executable.num_threads = 2
        shared = outputs_of(executable, *given)
        assert all(np.array_equal(a, b) for a, b in zip(shared, results, strict=True)), f"{name}: threads change bits"


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in DEFAULT else pytest.mark.ci) for n in EACH])
def test_compiled_model_equals_litert(name: str):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LARGE if name not in EACH])
def test_large_compiled_model_equals_litert(name: str):
    check(name)


def test_every_model_is_tested():
    if not MODELS.exists():
        pytest.skip("the models are not here")
    assert {path.stem for path in MODELS.glob("*.tflite")} == {*ALL, *LARGE}


def test_digits_equal_litert():
    data = np.load(DIGITS / "digits_test.npz")
    executable = relay.build(DIGITS / "digits_int8.tflite")
    results = np.concatenate([outputs_of(executable, image[None])[0] for image in data["int8_images"]])
    assert np.array_equal(results, data["int8_out"])


def test_float_digits_equal_litert():
    data = np.load(DIGITS / "digits_test.npz")
    executable = relay.build(DIGITS / "digits_float.tflite")
    results = np.concatenate([outputs_of(executable, image[None])[0] for image in data["images"]])
    assert close(results, data["float_out"])
