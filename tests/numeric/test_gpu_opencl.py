"""Models built for OpenCL: SPIR-V that its validator takes, and runs on a device where there is one."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.runtime import Executable, TensorSpec
from relay.runtime.opencl_driver import EXTENSIONS, OpenClDriver, driver
from tests.numeric.gpu_models import golden_of
from tests.numeric.test_models_compiled import DIGITS, close, outputs_of
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS

VALIDATOR = shutil.which("spirv-val")
SMALL = ("ad01_int8", "kws_int8")
"""Models that take a few seconds each: the others take up to a minute and are slow."""
EACH = [pytest.param(name, marks=pytest.mark.ci if name in SMALL else pytest.mark.slow) for name in (*ALL, *LARGE)]


def mark_on_a_device(name: str) -> pytest.MarkDecorator:
    """Models of images of 224 x 224 and more are slow."""
    large = "deeplabv3" in name or "v2" in name or "resnet50" in name
    return pytest.mark.slow if large else pytest.mark.ci


@pytest.fixture(scope="module")
def device() -> OpenClDriver:
    """Skips unless a device takes SPIR-V: the extra `opencl` brings one for any x86-64."""
    try:
        return driver(0)
    except Unsupported as error:
        pytest.skip(str(error))


DOTS = "opencl -mattr=+dot"


@cache
def digits(target: str = "opencl") -> Executable:
    return relay.build(DIGITS / "digits_int8.tflite", target=target)


def check(path: Path, target: str = "opencl") -> None:
    if not path.exists():
        pytest.skip(f"the model {path.stem} is not here")
    executable = relay.build(path, target=target)
    inputs, outputs = golden_of(path)
    for given, wanted in zip(inputs, outputs, strict=True):
        for result, want in zip(outputs_of(executable, *given), wanted, strict=True):
            assert close(result, want)


@pytest.mark.usefixtures("device")
def test_digits_on_a_device():
    data = np.load(DIGITS / "digits_test.npz")
    executable = digits()
    results = np.concatenate([outputs_of(executable, image[None])[0] for image in data["int8_images"][:32]])
    assert np.array_equal(results, data["int8_out"][:32])


@pytest.mark.slow
@pytest.mark.usefixtures("device")
def test_a_batch_on_a_device():
    data = np.load(DIGITS / "digits_test.npz")
    executable = relay.build(DIGITS / "digits_int8.tflite", target="opencl", frontend={"batch": 32})
    assert np.array_equal(outputs_of(executable, data["int8_images"][:32])[0], data["int8_out"][:32])
    session = executable.on()
    results = [session.run(data["int8_images"][first : first + 32]) for first in (0, 32)]
    assert np.array_equal(np.concatenate([np.asarray(result) for result in results]), data["int8_out"][:64])


@pytest.mark.slow
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", ["mobilenet_v2_1.0_224_quant", "resnet8_int8", "kws_int8", "vww_96_float"])
def test_batches_of_a_model_on_a_device(name: str):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    one, four = (relay.build(path, target="opencl", frontend={"batch": batch}) for batch in (1, 4))
    inputs = [np.concatenate([numbers(spec, seed) for seed in range(4)]) for spec in one.inputs]
    rows = [outputs_of(one, *(given[n : n + 1] for given in inputs)) for n in range(4)]
    for number, found in enumerate(outputs_of(four, *inputs)):
        wanted = np.concatenate([row[number] for row in rows])
        if found.dtype.kind == "f":  # a device's compiler may reorder sums, of one batch but not of the other
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
        else:
            assert np.array_equal(found, wanted)


def numbers(spec: TensorSpec, seed: int) -> Array:
    """Any numbers for an input."""
    rng = np.random.default_rng(seed)
    if spec.dtype.kind == "f":
        return rng.standard_normal(spec.shape).astype(spec.dtype)
    limits = np.iinfo(spec.dtype)
    return rng.integers(limits.min, limits.max, spec.shape, spec.dtype, endpoint=True)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", [pytest.param(name, marks=mark_on_a_device(name)) for name in (*ALL, *LARGE)])
def test_model_on_a_device(name: str):
    check(MODELS / f"{name}.tflite")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", [n if n == "kws_int8" else pytest.param(n, marks=pytest.mark.slow) for n in ALL])
def test_dot_products_on_a_device(name: str):
    """Those of Intel's runtime: cl_khr_integer_dot_product."""
    check(MODELS / f"{name}.tflite", DOTS)


@pytest.mark.usefixtures("device")
def test_a_device_without_dot_products_is_one_clear_error(monkeypatch: pytest.MonkeyPatch):
    executable = relay.runtime.create(*digits(DOTS))  # which no device knows yet
    found = OpenClDriver.info

    def info(driver: OpenClDriver, device: int, what: int) -> bytes:
        return b"cl_khr_fp64 cl_khr_icd\0" if what == EXTENSIONS else found(driver, device, what)

    monkeypatch.setattr(OpenClDriver, "info", info)
    with pytest.raises(Unsupported, match="has no cl_khr_integer_dot_product; build for"):
        executable.run(np.zeros(executable.inputs[0].shape, np.int8))


def validate(executable: Executable, folder: Path) -> None:
    if VALIDATOR is None:
        pytest.skip("spirv-val is not installed (package spirv-tools)")
    words = folder / "kernels.spv"
    words.write_bytes(executable.library.code)
    done = subprocess.run([VALIDATOR, "--target-env", "opencl2.2", str(words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_spirv_of_digits_is_valid(tmp_path: Path):
    validate(digits(), tmp_path)


def test_spirv_of_dot_products_is_valid(tmp_path: Path):
    executable = digits(DOTS)
    assert b"SPV_KHR_integer_dot_product" in executable.library.code
    validate(executable, tmp_path)


@pytest.mark.parametrize("name", EACH)
def test_spirv_of_a_model_is_valid(name: str, tmp_path: Path):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    validate(relay.build(path, target="opencl"), tmp_path)
