"""What each pass of a build leaves is text that reads back as the same, in the custom and the generic form, and also
after MLIR's own tool has read it and written it again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.passes import PassContext, PassInfo, PassInstrument
from relay.passes.checking import CrashReproducer
from tests.conftest import Cases
from tests.fuzz.random_modules import RandomModule
from tests.unit.pass_modules import DIGITS

MODELS = Path(__file__).parents[3] / "shared" / "models"
SMALL = ("ad01_int8", "kws_int8", "resnet8_int8", "resnet8_fp32", "vww_96_int8", "keras_lstm_mnist_ptq")
ARGMAX = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4xi32> {
  %0 = relay.argmax %x {axis = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xi32>
  func.return %0 : tensor<4xi32>
}"""
"""A loop nest of two results."""
LARGE = (
    "kws_fp32", "ad01_fp32", "vww_96_float", "mobilenet_v1_0.25_128_quant", "mobilenetv2_224_f32",
    "mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq", "deeplabv3_mnv2_dm05_pascal_quant",
    "resnet50_224_int8",
)  # fmt: skip
LEVELS = ("legalize", "relay-to-linalg", "bufferize", "schedule", "plan-memory")


ABOVE_UPSTREAM = "fuse-ops"
"""The last pass of a build that leaves ops of ours; after it all are upstream's."""
MLIR_OPT = shutil.which("mlir-opt-22")


def by_mlir(text: str, generic: bool) -> str:
    """The text as `mlir-opt` writes it."""
    assert MLIR_OPT is not None
    form = ["--mlir-print-op-generic"] if generic else []
    done = subprocess.run([MLIR_OPT, *form], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


class RoundTrip(PassInstrument):
    """Reads what each pass leaves, or some of them; `read` and `by_mlir` count the passes' texts, by form, that read
    back as the same. A text that a pass leaves as it was is counted and not read again."""

    def __init__(self, *names: str, weights: bool = True) -> None:
        self.names, self.weights = names, weights
        self.passes, self.texts = list[str](), dict[str, str]()
        self.upstream = False
        self.read = self.by_mlir = 0
        self.last: dict[bool, str] = {}

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.passes.append(info.name)
        if not self.names or info.name in self.names:
            for generic in (False, True):
                self.check(mod, info.name, generic)
            self.texts[info.name] = self.last[False]
        self.upstream |= info.name == ABOVE_UPSTREAM

    def check(self, mod: IRModule, name: str, generic: bool) -> None:
        """Our tools read the text and, at `LEVELS`, what `mlir-opt` writes of it, which it writes again for ours."""
        text = self.written(mod, generic)
        if text != self.last.get(generic):
            assert self.written(IRModule.parse(text), generic) == text, name
        self.last[generic] = text
        self.read += 1
        if self.upstream and MLIR_OPT is not None and name in LEVELS:
            theirs = by_mlir(text, generic)
            assert by_mlir(self.written(IRModule.parse(theirs), generic), generic) == theirs, name
            self.by_mlir += 1

    def written(self, mod: IRModule, generic: bool) -> str:
        return mod.to_text(weights=self.weights, generic=generic)


def built(mod: IRModule, trip: RoundTrip) -> None:
    with PassContext(instruments=[trip]):
        relay.default_pipeline()(mod)


def test_an_op_of_two_results_after_every_pass() -> None:
    built(IRModule.parse(ARGMAX), trip := RoundTrip())
    assert set(LEVELS) < set(trip.passes) and "linalg.generic" in (text := trip.texts["relay-to-linalg"])
    assert "-> (tensor<4xf32>, tensor<4xi32>)" in text and trip.read == 2 * len(trip.passes)
    assert trip.by_mlir == (0 if MLIR_OPT is None else 8)


@pytest.mark.ci
def test_the_digits_after_lowering() -> None:
    built(from_tflite(DIGITS), trip := RoundTrip("relay-to-linalg", "bufferize"))
    assert trip.read == 4 and trip.by_mlir == (0 if MLIR_OPT is None else 4)


def test_stage_2_is_built_from_its_text() -> None:
    lowered = relay.transform.RelayToLinalg()(relay.transform.Legalize()(IRModule.parse(ARGMAX)))
    numbers = np.random.default_rng(0).standard_normal((4, 8), np.float32)
    found = relay.build(IRModule.parse(lowered.to_text(weights=True))).run(numbers)
    assert (found == numbers.argmax(1)).all()


@relay.transform.module_pass(opt_level=0, name="crash-here")
def crash(mod: IRModule, ctx: PassContext) -> IRModule:
    raise KeyError("crash")


def test_a_reproducer_of_two_results_is_read(tmp_path: Path) -> None:
    lowered = relay.transform.RelayToLinalg()(relay.transform.Legalize()(IRModule.parse(ARGMAX)))
    assert "linalg.generic" in str(lowered)
    with pytest.raises(KeyError), PassContext(instruments=[CrashReproducer(path := tmp_path / "crash.mlir")]):
        relay.transform.Sequential([crash])(lowered)
    assert IRModule.parse(path.read_text()).op.is_structurally_equivalent(lowered.op)


@pytest.mark.fuzz
def test_random_modules_after_every_pass(cases: Cases) -> None:
    for number in cases(6):
        built(RandomModule(number, 1 + number % 4).module(), RoundTrip())


@pytest.mark.slow
@pytest.mark.parametrize("model", [DIGITS, *(MODELS / f"{name}.tflite" for name in SMALL)], ids=lambda path: path.stem)
def test_models_after_every_pass(model: Path) -> None:
    if not model.exists():
        pytest.skip("the model is not beside the checkout")
    built(from_tflite(model), trip := RoundTrip())
    assert set(LEVELS) < set(trip.passes)
    print(f"{model.stem}: {trip.read} round trips, {trip.by_mlir} by way of mlir-opt")


@pytest.mark.slow
@pytest.mark.parametrize("model", LARGE)
def test_large_models_at_every_level(model: str) -> None:
    """After the passes of `LEVELS` only, and with large weights as names."""
    if not (path := MODELS / f"{model}.tflite").exists():
        pytest.skip("the model is not beside the checkout")
    built(from_tflite(path), trip := RoundTrip(*LEVELS, weights=False))
    print(f"{model}: {trip.read} round trips, {trip.by_mlir} by way of mlir-opt")


def test_aliases_of_locations_may_follow_their_uses() -> None:
    """As `mlir-opt --mlir-print-debuginfo` writes them."""
    mod = IRModule.parse("""module {
  func.func private @f(%x: i32 loc(#loc2)) loc(#loc3)
} loc(#loc)
#loc = loc("a.mlir":0:0)
#loc1 = loc("a.mlir":2:1)
#loc2 = loc("a.mlir":2:9)
#loc3 = loc(callsite(#loc1 at #loc))""")
    text = mod.to_text(locations=True)
    assert 'loc(callsite("a.mlir":2:1 at "a.mlir":0:0))' in text and text.rstrip().endswith('} loc("a.mlir":0:0)')
