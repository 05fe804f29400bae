"""Float models, quantised here and then given another layout, compiled: no number changes with the layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.quantize import Quantize
from relay.transform import ConvertLayout, Sequential
from tests.numeric.test_quantize_models import data, model

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def check(file: Path, calibration: Sequence[Array], inputs: Sequence[Array], layout: str) -> None:
    """Both modules compiled, and run on the same inputs; layers are of integers in both."""
    mod = relay.frontend.from_tflite(file)
    steps = [Quantize(calibration=calibration), ConvertLayout("NHWC", layout)]
    plain, converted = steps[0](mod), Sequential(steps)(mod)
    assert plain.to_text() != converted.to_text() or "conv2d" not in plain.to_text()
    assert any(op.name in ("qnn.conv2d", "qnn.dense") for op in converted.op.walk())
    executables = [relay.build(each) for each in (plain, converted)]
    for given in inputs:
        wanted, found = (np.asarray(executable.run(given)) for executable in executables)
        assert np.ptp(wanted) > 0
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["NHWC4c", "NCHW"])
def test_the_digits(layout: str):
    images = np.load(DIGITS / "digits_test.npz")["images"]
    check(DIGITS / "digits_float.tflite", [i[None] for i in images[:20]], [i[None] for i in images[20:70]], layout)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["NHWC4c", "NCHW"])
@pytest.mark.parametrize("name", ["ad01_fp32", "kws_fp32", "resnet8_fp32"])
def test_real_models(name: str, layout: str):
    file = model(name)
    if name == "kws_fp32":
        random = np.random.default_rng(1)
        samples = [random.normal(0, 10, (1, 49, 10, 1)).astype(np.float32) for _ in range(8)]
    else:
        samples = data(name, 8, 1)
    check(file, samples[:4], samples[4:], layout)
