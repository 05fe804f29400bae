"""What each pass of a build leaves is printed as text that reads back as the same, and that MLIR's own tools read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import relay
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.passes import PassContext, PassInfo, PassInstrument
from tests.unit.pass_modules import DIGITS

MODELS = Path(__file__).parents[3] / "shared" / "models"
SMALL = ("ad01_int8", "kws_int8", "resnet8_int8", "resnet8_fp32", "vww_96_int8", "keras_lstm_mnist_ptq")
ARGMAX = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4xi32> {
  %0 = relay.argmax %x {axis = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xi32>
  func.return %0 : tensor<4xi32>
}"""
"""A loop nest of two results."""
LEVELS = ("legalize", "relay-to-linalg", "bufferize", "schedule", "plan-memory")


class RoundTrip(PassInstrument):
    """Reads what each pass leaves, or some of them."""

    def __init__(self, *names: str) -> None:
        self.names, self.read, self.texts = names, list[str](), dict[str, str]()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.names and info.name not in self.names:
            return
        self.read.append(info.name)
        self.texts[info.name] = text = mod.to_text(weights=True)
        assert IRModule.parse(text).to_text(weights=True) == text, info.name


def built(mod: IRModule, trip: RoundTrip) -> None:
    with PassContext(instruments=[trip]):
        relay.default_pipeline()(mod)


def test_an_op_of_two_results_after_every_pass() -> None:
    built(IRModule.parse(ARGMAX), trip := RoundTrip())
    assert set(LEVELS) < set(trip.read) and "linalg.generic" in (text := trip.texts["relay-to-linalg"])
    assert "-> (tensor<4xf32>, tensor<4xi32>)" in text
    if (tool := shutil.which("mlir-opt-22")) is not None:
        subprocess.run([tool], input=text, text=True, check=True, stdout=subprocess.DEVNULL)


def test_the_digits_after_lowering() -> None:
    built(from_tflite(DIGITS), trip := RoundTrip("relay-to-linalg"))
    assert trip.read == ["relay-to-linalg"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [DIGITS, *(MODELS / f"{name}.tflite" for name in SMALL)], ids=lambda path: path.stem)
def test_models_after_every_pass(model: Path) -> None:
    if not model.exists():
        pytest.skip("the model is not beside the checkout")
    built(from_tflite(model), trip := RoundTrip())
    assert set(LEVELS) < set(trip.read)
