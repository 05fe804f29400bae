"""Real float models, quantised here, against their int8 twins that TFLite's converter made."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.quantize import Quantize, QuantizeAnnotate, calibrate, report

MODELS = Path(__file__).parents[2] / "../shared/models"


def model(name: str) -> Path:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here: put the models beside the checkout, in ../shared/models")
    return path


def picture(name: str) -> Array:
    """A .bmp of 24 bits, [height, width, 3], red first."""
    data = (MODELS / "images" / f"{name}.bmp").read_bytes()
    offset, width, height = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in (10, 18, 22))
    row = (width * 3 + 3) // 4 * 4
    lines = np.frombuffer(data, np.uint8, row * abs(height), offset).reshape(abs(height), row)[:, : width * 3]
    upright = lines.reshape(abs(height), width, 3)[..., ::-1]
    return upright[::-1] if height > 0 else upright


def crops(count: int, size: int, seed: int) -> list[Array]:
    """Squares of the pictures, of any place and scale, sampled to `size`; 0 to 255."""
    random = np.random.default_rng(seed)
    pictures = [picture(name) for name in ("cat", "bird")]
    found: list[Array] = []
    for _ in range(count):
        image = pictures[random.integers(len(pictures))]
        side = size + int(random.random() * (min(image.shape[0], image.shape[1]) - size + 1))
        top, left = (int(random.random() * (image.shape[axis] - side + 1)) for axis in (0, 1))
        at: Array = np.arange(size) * side // size
        found.append(image[top : top + side, left : left + side][at][:, at][np.newaxis].astype(np.float32))
    return found


def spectra(count: int, seed: int) -> list[Array]:
    """Five like frames of 128 levels in decibels: a random walk, falling with the frequency, and noise."""
    random = np.random.default_rng(seed)
    found: list[Array] = []
    for _ in range(count):
        walk = np.cumsum(random.normal(0, 1.2, 128)) * 0.8
        frame = walk - walk.mean() - random.uniform(20, 45) + random.uniform(0, 20) * np.linspace(1, 0, 128)
        found.append((frame + random.normal(0, 2, (5, 128))).reshape(1, 640).astype(np.float32))
    return found


def data(name: str, count: int, seed: int) -> list[Array]:
    if name.startswith("ad01"):
        return spectra(count, seed)
    if name.startswith("resnet8"):
        return crops(count, 32, seed)
    return [image / np.float32(255) for image in crops(count, 96, seed)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "twin"), [("resnet8_fp32", "resnet8_int8"), ("vww_96_float", "vww_96_int8"), ("ad01_fp32", "ad01_int8")]
)
def test_at_least_as_near_to_the_float_model_as_the_converter(name: str, twin: str):
    mod, other = (relay.frontend.from_tflite(model(each)) for each in (name, twin))
    mine = report(mod, Quantize(calibration=data(name, 100, 1))(mod), data(name, 50, 2))
    theirs = report(mod, other, data(name, 50, 2))
    assert mine.output_snr[0] >= theirs.output_snr[0] and mine.integer_macs >= 0.95


@pytest.mark.slow
def test_a_large_model_is_calibrated_in_little_time():
    mod = QuantizeAnnotate()(relay.frontend.from_tflite(model("mobilenetv2_224_f32")))
    samples = (image / np.float32(127.5) - 1 for image in crops(100, 224, 1))
    started = time.process_time()
    assert calibrate(mod, samples).samples == 100
    assert time.process_time() - started < 600
