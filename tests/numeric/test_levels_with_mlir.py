"""Real models at every level from `relay-to-linalg` on: MLIR's own parser and verifiers accept them."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.compile.pipeline import graph_passes, lowering_passes
from relay.dialects.context import make_context
from relay.frontend import import_model
from relay.passes import Sequential
from relay.target import host
from tests.numeric import mlir_runner

MODELS = Path(__file__).parents[2] / "../shared/models"
FAST = [
    "ad01_fp32",
    "ad01_int8",
    "kws_fp32",
    "kws_int8",
    "resnet8_int8",
]
SLOW = [
    "vww_96_int8",
    "resnet8_fp32",
    "keras_lstm_mnist_ptq",
    "mobilenet_v1_0.25_128_quant",
    "mobilenetv2_224_f32",
    "vww_96_float",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "mobilenet_v2_1.0_224_quant",
    "resnet50_224_int8",
    "tf2_mobilenet_v2_1.0_224_ptq",
]
NAMES = [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.mark.ci
@mlir_runner.needs_mlir
@pytest.mark.parametrize("name", NAMES)
def test_mlir_accepts_every_level_of_a_model(name: str):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    machine = host()
    mod = import_model(path, {})
    Sequential(graph_passes(machine)).apply(mod)
    for each in lowering_passes(machine):
        each.apply(make_context(), mod.op)
        mlir_runner.verify(mod, weights=False)


def test_every_model_is_listed():
    if not MODELS.exists():
        pytest.skip("the models are not here")
    assert {*FAST, *SLOW} == {path.stem for path in MODELS.glob("*.tflite")}
