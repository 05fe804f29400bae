"""Every layer of the table against Keras: models recorded by `keras_recording.py`, replayed by the interpreter."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.frontend import from_keras
from relay.interpreters import run
from relay.transform import ConvertLayout, Quantize, Sequential
from tests.numeric.keras_models import CASES

NAMES = sorted(name.removesuffix(".npz") for name in CASES if name.endswith(".npz"))


def arrays(name: str) -> tuple[list[Array], list[Array]]:
    """Inputs, and what Keras gave."""
    with np.load(BytesIO(CASES[f"{name}.npz"])) as file:
        names = sorted(file.files)
        given, wanted = ([file[each] for each in names if each.startswith(way)] for way in ("in", "out"))
        return given, wanted


def differ(found: Array, wanted: Array) -> str:
    """What is wrong with a result; empty for nothing. Floats are within 1e-5 of the largest one."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(found, wanted) else f"{found} is not {wanted}"
    room = 1e-5 * max(float(np.abs(wanted).max(initial=0.0)), 1e-3)
    same = (np.abs(found - wanted) <= room) | (np.isnan(found) & np.isnan(wanted))
    return "" if same.all() else f"{found[~same][:4]} is not {wanted[~same][:4]}"


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_keras_gives(name: str) -> None:
    inputs, wanted = arrays(name)
    shapes = {f"x{i}": each.shape for i, each in enumerate(inputs)}
    with np.errstate(all="ignore"):
        found = run(from_keras(CASES[f"{name}.keras"], shapes=shapes), inputs)
    assert len(found) == len(wanted)
    assert not [why for a, b in zip(found, wanted, strict=True) if (why := differ(np.asarray(a), b))]


def test_layers_compose_as_any_module() -> None:
    """A file, quantized with samples and brought into another layout, as integers."""
    (images,), (wanted,) = arrays("net")
    mod = relay.frontend.from_keras(CASES["net.keras"], batch=2)
    with relay.transform.PassContext(opt_level=3):
        mod = Sequential([Quantize(calibration=[images]), ConvertLayout("NHWC", "NHWC4c")])(mod)
        assert "NHWC4c" in str(mod) and "qnn.conv2d" in str(mod)
        found = np.asarray(relay.build(mod).run(images))
    assert np.abs(found - wanted).max() <= 0.1 * np.abs(wanted).max()


def test_a_file_is_built() -> None:
    (images,), (wanted,) = arrays("net")
    executable = relay.build(CASES["net.keras"])
    assert not differ(np.asarray(executable(images)), wanted)
    assert not differ(np.asarray(executable(images[:1])), wanted[:1])
