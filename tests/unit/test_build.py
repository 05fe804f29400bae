"""`build`: what it takes, its options, and that none of them changes the integers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay import signature
from relay.compile.entry import build
from relay.compile.pipeline import optimize
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import Executable
from relay.target import CpuTarget, host, resolve
from tests.marks import ci

EXAMPLES = Path(__file__).parents[2] / "examples" / "digits"
DIGITS = EXAMPLES / "digits_int8.tflite"
DATA = np.load(EXAMPLES / "digits_test.npz")
FIRST = 15
"""The tensor that the first convolution makes."""
IMAGES, CODES = DATA["int8_images"][:20], DATA["int8_out"][:20]
DENSE = """func.func @main(%x: tensor<2x3xi8>) -> tensor<2x4xi32> {
  %w = relay.constant {label = "weights"} dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, -2, -3]]> : tensor<4x3xi8>
  %b = relay.constant {label = "bias"} dense<[10, 20, 30, 40]> : tensor<4xi32>
  %0 = relay.nn.dense %x, %w : (tensor<2x3xi8>, tensor<4x3xi8>) -> tensor<2x4xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<2x4xi32>, tensor<4xi32>) -> tensor<2x4xi32>
  func.return %1 : tensor<2x4xi32>
}
"""
X = np.array([[1, -2, 3], [4, 5, -128]], np.int8)
WEIGHTS = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, -2, -3]], np.int8)
BIAS = np.array([10, 20, 30, 40], np.int32)


def product(weights: Array = WEIGHTS, bias: Array = BIAS) -> Array:
    return X.astype(np.int32) @ weights.astype(np.int32).T + bias


def classify(executable: Executable) -> Array:
    return np.concatenate([np.asarray(executable.run(image[None])) for image in IMAGES])


def test_takes_a_path_its_text_bytes_and_modules():
    module = from_tflite(DIGITS)
    before = str(module)
    for model in (DIGITS, str(DIGITS), DIGITS.read_bytes(), module, module.op):
        assert np.array_equal(classify(build(model)), CODES)
    assert str(module) == before, "build leaves the module as it is"
    assert relay.build is build


def test_builds_what_optimize_returns():
    module = from_tflite(DIGITS)
    inputs, _ = signature.read(module["main"])
    optimized = optimize(module)
    assert "qnn." not in str(optimized) and "qnn." in str(module)
    executable = build(optimized)
    assert executable.inputs[0].scale == inputs[0].scale
    assert np.array_equal(classify(executable), CODES)


@pytest.mark.parametrize("level", [0, *ci((1, 2)), 3])
def test_no_integer_depends_on_opt_level(level: int):
    assert np.array_equal(classify(build(DIGITS, opt_level=level)), CODES)


@pytest.mark.parametrize("level", [-1, 5, 17])
def test_refuses_another_opt_level(level: int):
    with pytest.raises(InvalidArgument, match=f"opt_level={level}: is not one of 0, 1, 2, 3, 4"):
        build(DIGITS, opt_level=level)


def test_params_replace_weights_by_name():
    module = IRModule.parse(DENSE)
    assert np.array_equal(np.asarray(build(module).run(X)), product())
    weights, bias = -WEIGHTS, BIAS * 3
    changed = build(module, params={"weights": weights})
    assert np.array_equal(np.asarray(changed.run(X)), product(weights))
    changed = build(module, params={"weights": weights, "bias": bias})
    assert np.array_equal(np.asarray(changed.run(X)), product(weights, bias))
    assert np.array_equal(np.asarray(build(module).run(X)), product()), "the given module keeps its weights"
    weights[:] = 0
    assert np.array_equal(np.asarray(changed.run(X)), product(-WEIGHTS, bias)), "the executable keeps its own"


def test_params_replace_weights_of_a_file():
    names = from_tflite(DIGITS).weights
    zeros = {name: np.zeros_like(array) for name, array in names.items() if array.dtype == np.int8}
    assert zeros
    assert not np.array_equal(classify(build(DIGITS, params=zeros)), CODES)
    assert np.array_equal(classify(build(DIGITS, params=names)), CODES)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"weight": WEIGHTS}, r"params\['weight'\]: the module has no weight of that name"),
        ({"weights": WEIGHTS.T.copy()}, r"params\['weights'\]: is tensor<3x4xi8>; the weight is tensor<4x3xi8>"),
        ({"weights": WEIGHTS.astype(np.uint8)}, r"params\['weights'\]: is tensor<4x3xui8>"),
        ({"bias": BIAS.astype(np.float32)}, r"params\['bias'\]: is tensor<4xf32>"),
        ({"bias": BIAS, "weights": WEIGHTS[:2]}, r"params\['weights'\]: is tensor<2x3xi8>"),
    ],
)
def test_wrong_params(params: dict[str, Array], message: str):
    with pytest.raises(InvalidArgument, match=message):
        build(IRModule.parse(DENSE), params=params)


def test_frontend_options_reach_the_importer():
    inner = "functional_2_1/functional_1/add_1/Add"
    executable = build(DIGITS, frontend={"outputs": [inner]})
    assert [spec.name for spec in executable.outputs] == [inner]
    (wanted,) = run(from_tflite(DIGITS, outputs=[inner]), [IMAGES[:1]])
    assert np.array_equal(np.asarray(executable.run(IMAGES[:1])), wanted)
    four = build(DIGITS, frontend={"batch": 4, "outputs": [FIRST]})
    assert four.inputs[0].shape == (4, *IMAGES.shape[1:])
    with pytest.raises(InvalidArgument, match="numerics"):
        build(DIGITS, numerics="abacus")
    with pytest.raises(InvalidArgument, match="frontend: options are for model files"):
        build(from_tflite(DIGITS), frontend={"batch": 4})


OPEN = """
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %r = relay.nn.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %r : tensor<?x4xf32>
}"""


def test_a_number_of_images():
    eight = build(DIGITS, batch=8, outputs=[FIRST])
    assert eight.inputs[0].shape == (8, *IMAGES.shape[1:])
    assert build(from_tflite(DIGITS), batch=1).inputs[0].shape[0] == 1
    x = np.array([[-1, 2, -3, 4]] * 3, np.float32)
    assert np.array_equal(np.asarray(build(IRModule.parse(OPEN), batch=3).run(x)), np.maximum(x, 0))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (DIGITS, {"batch": 8, "frontend": {"batch": 8}}, "batch: is given twice; leave it out of frontend"),
        (DIGITS, {"batch": 0}, "batch is 0; it must be"),
        (OPEN, {"batch": True}, "batch: is True; it must be"),
        (
            OPEN.replace("?", "2"),
            {"batch": 3},
            "batch: the module's arguments have the shapes 2x4; give relay.build the",
        ),
        (OPEN.replace("?x4", "2x?"), {"batch": 3}, "batch: the module's arguments have the shapes 2x[?]; give relay"),
    ],
)
def test_numbers_of_images_that_are_none(model: Any, options: dict[str, Any], message: str):
    with pytest.raises(InvalidArgument, match=message):
        build(IRModule.parse(model) if model.__class__ is str else model, **options)


@pytest.mark.parametrize("target", ["", "CUDA", "LLVM", "x86-64"])
def test_refuses_an_unknown_target(target: str):
    known = 'known are "llvm" .this machine., "cuda", "opencl", .*, aarch64, .*, and triples a'
    with pytest.raises(Unsupported, match=f"target '{target}': is not known; (did you mean .*\\? )?{known}"):
        build(DIGITS, target)


def test_a_target_without_features_gives_the_same():
    machine = host()
    plain = CpuTarget(machine.triple, "x86-64" if machine.triple.startswith("x86_64") else "generic", frozenset())
    executable = build(DIGITS, plain)
    assert executable.graph["target"]["features"] == []
    assert "zmm" not in executable.get_source("asm")
    assert np.array_equal(classify(executable), CODES)


def test_resolve():
    assert resolve("llvm") == host()
    machine = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", frozenset({"sse2", "avx2"}))
    assert resolve(machine) is machine
    assert machine.feature_string == "+avx2,+sse2"


@pytest.mark.parametrize(
    ("name", "triple"),
    [
        ("aarch64", "aarch64-unknown-linux-gnu"),
        ("riscv64", "riscv64-unknown-linux-gnu"),
        ("thumbv7em", "thumbv7em-none-eabi"),
        ("wasm32", "wasm32-unknown-unknown"),
        ("x86_64", "x86_64-unknown-linux-gnu"),
    ],
)
def test_names_of_processors_stand_for_triples(name: str, triple: str):
    assert resolve(name) == resolve(triple) and resolve(name).triple == triple


def test_options_behind_the_name_of_a_processor():
    assert "sve" in resolve("aarch64 -mattr=+sve").features


@pytest.mark.parametrize(
    "target", ["x86_64-pc-windows-msvc", "x86_64-apple-darwin", "aarch64-apple-ios", "arm64-apple-darwin"]
)
def test_other_systems_are_refused(target: str):
    with pytest.raises(Unsupported, match=f"target '{target}': is of Windows or macOS, which are not supported; see d"):
        build(DIGITS, target)


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")])
def test_other_hosts_are_refused(monkeypatch: pytest.MonkeyPatch, system: str, machine: str):
    build(IRModule.parse(DENSE))  # here; llvmlite, once loaded, asks for the platform no more
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(
        Unsupported, match=f"host {system} {machine}: native code is made for Linux on x86-64 and aarch64"
    ):
        build(IRModule.parse(DENSE))


def test_what_is_no_model(tmp_path: Path):
    file = tmp_path / "model.bin"
    file.write_bytes(b"no model")
    for model in (file, b"", b"no model"):
        with pytest.raises(Malformed):
            build(model)
    with pytest.raises((RelayError, OSError), match="missing.tflite"):
        build(tmp_path / "missing.tflite")
    with pytest.raises(RelayError, match="main"):
        build(IRModule())


def test_the_graph_tells_what_was_compiled():
    executable = build(DIGITS)
    graph = executable.graph
    assert graph["target"]["triple"] == host().triple
    assert set(graph["kernels"]) == set(graph["functions"])
    assert any(name.startswith("conv2d") for name in graph["kernels"])
    ends = [row["offset"] + row["size"] for row in graph["buffers"]]
    assert max(ends) <= graph["arena_bytes"] <= sum(row["size"] for row in graph["buffers"]) + 128 * len(ends)
    params = executable.params
    for row in graph["constants"]:
        array = params[row["name"]]
        assert (str(array.dtype), list(array.shape)) == (row["dtype"], row["shape"])
        assert row["offset"] % 64 == 0 and row["offset"] + array.nbytes <= graph["constants_bytes"]


@pytest.mark.ci
def test_builds_in_several_threads():
    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(build, [DIGITS] * 3))
    assert all(np.array_equal(classify(executable), CODES) for executable in built)


def test_names_the_options_of_the_importer():
    with pytest.raises(InvalidArgument, match=r"frontend\['bach'\]: is no option of the importer; it has batch"):
        build(DIGITS, frontend={"bach": 1})


@pytest.mark.parametrize(
    "old, new",
    {
        "driver.default_pipeline": "relay.default_pipeline",
        "driver.import_model": "relay.frontend.import_model",
        "building.build": "relay.build",
        "building.uncollected": "relay.compile.entry.gc_paused",
        "build_cache.keeps": "relay.compile.cache.keeps",
        "progress.bar": "relay.compile.progress.bar",
    }.items(),
)
def test_old_places_name_the_new_ones(old: str, new: str):
    module, name = old.split(".")
    former = import_module(f"relay.{module}")
    with pytest.warns(DeprecationWarning, match=rf"relay.{old} is deprecated: write {new}$"):
        assert callable(getattr(former, name))
    assert not hasattr(former, "nonsense")
    for each in dir(former):
        with pytest.warns(DeprecationWarning):
            getattr(former, each)
