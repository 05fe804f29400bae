"""Every layer of the table against Keras: models recorded by `keras_recording.py`, replayed by the interpreter."""

from __future__ import annotations

from io import BytesIO
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import relay
from relay import signature
from relay.__main__ import main
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.frontend import from_keras
from relay.interpreters import run
from relay.transform import ConvertLayout, Quantize, Sequential
from tests.numeric.keras_models import CASES, Json, archive, functional, inputs, row, tensor

NAMES = sorted(name.removesuffix(".npz") for name in CASES if name.endswith(".npz"))
FAMILIES = [[*names] for _, names in groupby(NAMES, lambda name: name.partition("_")[0])]
"""Names that begin alike. By default, the first three of each."""
EACH = [pytest.param(n, marks=() if at < 3 else pytest.mark.ci) for names in FAMILIES for at, n in enumerate(names)]


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


@pytest.mark.parametrize("name", EACH)
def test_gives_what_keras_gives(name: str) -> None:
    inputs, wanted = arrays(name)
    shapes = {f"x{i}": each.shape for i, each in enumerate(inputs)}
    with np.errstate(all="ignore"):
        found = run(from_keras(CASES[f"{name}.keras"], shapes=shapes), inputs)
    assert len(found) == len(wanted)
    assert not [why for a, b in zip(found, wanted, strict=True) if (why := differ(np.asarray(a), b))]


@pytest.mark.parametrize("batch", [pytest.param(None, marks=pytest.mark.ci), 2])
def test_layers_compose_as_any_module(batch: int | None) -> None:
    """A file, quantized with samples and brought into another layout, as integers, for any number of images or two."""
    (images,), (wanted,) = arrays("net")
    mod = relay.frontend.from_keras(CASES["net.keras"], batch=batch)
    with relay.transform.PassContext(opt_level=3):
        mod = Sequential([relay.qnn.Legalize(), Quantize(calibration=[images]), ConvertLayout("NHWC", "NHWC4c")])(mod)
        assert "NHWC4c" in str(mod) and "qnn.conv2d" in str(mod)
        found = np.asarray(relay.build(mod).run(images))
    assert np.abs(found - wanted).max() <= 0.1 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("kind", "config", "keywords", "what"),
    [
        ("Lambda", {}, {}, "Lambda 'y': runs Python code of its own"),
        ("Dropout", {"dtype": "mixed_float16"}, {}, "'y': computes in mixed_float16"),
        ("Dropout", {"dtype": {"config": {"mode": "int4"}}}, {}, "'y': is quantized as int4"),
        ("Dropout", {}, {"training": True}, "'y': is called in training mode"),
    ],
)
def test_no_sizes_are_asked_for_if_none_helps(kind: str, config: Json, keywords: Json, what: str) -> None:
    layer = row(kind, {"name": "y", **config}, [{"args": [tensor("x0", shape=(None, 4))], "kwargs": keywords}])
    with pytest.raises(Unsupported, match=what):
        from_keras(archive(functional([*inputs((None, 4)), layer], [["x0", 0, 0]], [["y", 0, 0]])))


def test_a_layer_has_the_name_of_its_row_if_its_configuration_has_none() -> None:
    layer = row("Flatten", {"name": "y"}, [{"args": [tensor("x0", shape=(2, 4))], "kwargs": {}}])
    del layer["config"]["name"]
    module = from_keras(archive(functional([*inputs((2, 4)), layer], [["x0", 0, 0]], [["y", 0, 0]])))
    assert signature.read(module.functions["main"])[1][0].name == "y"


def test_open_sizes_are_those_of_the_samples() -> None:
    (images,), _ = arrays("net")
    mod = relay.frontend.from_keras(CASES["net.keras"])
    assert "qnn.conv2d" in str(Quantize(calibration=[images, images + 1])(mod))
    for samples, message in (
        ([images, images[:1]], "batch=1: are not prepared"),
        ([images[0]], r"float32\[\?, 8, 8, 3\]"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            Quantize(calibration=samples)(mod)


def test_a_file_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run, and compared with the interpreter, layer by layer."""
    (images,), (wanted,) = arrays("net")
    model, given, results = (str(tmp_path / name) for name in ("net.keras", "in.npz", "out.npz"))
    Path(model).write_bytes(CASES["net.keras"])
    np.savez(given, x0=images)
    assert main(["run", model, "--inputs", given, "--outputs", results, "--batch", "2"]) == 0
    with np.load(results) as file:
        (found,) = (file[name] for name in file.files)
    assert not differ(found, wanted)
    assert main(["compare", model, "--batch", "2", "--layers"]) == 0
    assert "equal: 1 outputs and 9 tensors" in capsys.readouterr().out


@pytest.mark.keras
@pytest.mark.filterwarnings("ignore")
def test_a_live_model_is_built() -> None:
    """The model that a script has at hand, as it is and by passes."""
    keras = pytest.importorskip("keras", reason="keras makes the model")
    layers = keras.layers
    shape = (8, 8, 3)
    model = keras.Sequential(
        [keras.Input(shape), layers.Conv2D(8, 3), layers.ReLU(), layers.Flatten(), layers.Dense(5)]
    )
    images = np.random.default_rng(0).standard_normal((2, *shape), np.float32)
    wanted = np.asarray(model(images))
    assert not differ(np.asarray(relay.build(model)(images)), wanted)
    mod = relay.frontend.from_keras(model)
    mod = Sequential([relay.qnn.Legalize(), Quantize(calibration=[images]), ConvertLayout("NHWC", "NHWC4c")])(mod)
    assert "qnn.conv2d" in str(mod)
    assert np.abs(np.asarray(relay.build(mod)(images)) - wanted).max() <= 0.1 * np.abs(wanted).max()


def test_a_file_is_built() -> None:
    (images,), (wanted,) = arrays("net")
    executable = relay.build(CASES["net.keras"])
    assert not differ(np.asarray(executable(images)), wanted)
    assert not differ(np.asarray(executable(images[:1])), wanted[:1])
