"""Real models, imported and run by the interpreter, against the stored outputs of LiteRT's reference kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from relay import IRModule, signature
from relay.frontend import from_tflite
from relay.interpreters import run

MODELS = Path(__file__).parents[2] / "../shared/models"
IMAGES = ("cat", "bird", "rand0", "rand1", "rand2")
ALL = {
    "ad01_fp32": IMAGES[2:],
    "ad01_int8": IMAGES[2:],
    "keras_lstm_mnist_ptq": IMAGES[2:],
    "kws_fp32": IMAGES[2:],
    "kws_int8": IMAGES[2:],
    "mobilenet_v1_0.25_128_quant": IMAGES,
    "resnet8_fp32": IMAGES,
    "resnet8_int8": IMAGES,
    "vww_96_float": IMAGES,
    "vww_96_int8": IMAGES,
}
LARGE = (
    "deeplabv3_mnv2_dm05_pascal_quant",
    "mobilenet_v2_1.0_224_quant",
    "mobilenetv2_224_f32",
    "resnet50_224_int8",
    "tf2_mobilenet_v2_1.0_224_ptq",
)
FAST = [*((name, "rand0") for name in ALL), ("mobilenet_v1_0.25_128_quant", "cat"), ("mobilenetv2_224_f32", "cat")]
EVERY = [(name, tag) for name, tags in ALL.items() for tag in tags] + [(name, "cat") for name in LARGE]
REST = [pytest.param(*each, marks=pytest.mark.ci) for each in EVERY if each not in FAST]
SLOW = [(name, tag) for name in LARGE for tag in IMAGES[1:]]
TOP = {"cat": 286, "bird": 20}
CLASSIFIERS = ("mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq")


@cache
def module(name: str) -> IRModule:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    return from_tflite(path)


def check(name: str, tag: str) -> None:
    mod = module(name)
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    inputs, outputs = signature.read(mod["main"])
    assert f"{tag}_in0" in golden.files
    arguments = [
        np.array(info.initial) if info.kind == "state" else golden[f"{tag}_in{number}"]
        for number, info in enumerate(inputs)
    ]
    results = run(mod, arguments)
    for number, (info, result) in enumerate(zip(outputs, results, strict=True)):
        if info.kind != "output":
            continue
        wanted = golden[f"{tag}_out{number}"]
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind == "f":
            assert np.abs(result - wanted).max() <= 1e-5 * np.abs(wanted).max()
        else:
            assert np.array_equal(result, wanted)
    if name in CLASSIFIERS and tag in TOP:
        assert int(results[0].argmax()) == TOP[tag]


@pytest.mark.parametrize(("name", "tag"), [*FAST, *REST])
def test_model_equals_litert(name: str, tag: str) -> None:
    check(name, tag)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tag"), SLOW)
def test_large_model_equals_litert(name: str, tag: str) -> None:
    check(name, tag)
