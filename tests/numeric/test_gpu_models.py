"""Models built for a GPU, run on the emulator with every access checked, against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numeric.gpu_models import Emulated, golden_of
from tests.numeric.test_models_compiled import DIGITS, close
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS

HUGE = ("deeplabv3_mnv2_dm05_pascal_quant", "resnet50_224_int8")
"""Models with so much to compute that their accesses are not checked one by one."""


def check(name: str) -> None:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    model = Emulated(path, checked=name not in HUGE, level=2)
    inputs, outputs = golden_of(path)
    assert inputs
    for given, wanted in zip(inputs, outputs, strict=True):
        results = model.run(given)
        assert len(results) == len(wanted)
        for number, (result, want) in enumerate(zip(results, wanted, strict=True)):
            assert close(result, want), f"{name}, output {number}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ALL, *LARGE])
def test_model_equals_litert(name: str):
    check(name)


@pytest.mark.slow
def test_digits_equal_litert():
    data = np.load(DIGITS / "digits_test.npz")
    model = Emulated(DIGITS / "digits_int8.tflite")
    for image, want in zip(data["int8_images"][:8], data["int8_out"][:8], strict=True):
        (result,) = model.run([image[None]])
        assert np.array_equal(result[0], want)
