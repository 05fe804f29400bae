"""Real models, given to external compilers as a whole or in part, against the outputs of LiteRT's reference kernels."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import relay
from relay.byoc import Artifact, BuildInfo, find
from relay.runtime import Executable
from tests.numeric.external_sessions import Array, compare, installed

MODELS = Path(__file__).parents[2] / "../shared/models"
SMALL = ("resnet8_int8", "kws_int8", "resnet8_fp32")
LARGE = (
    "ad01_fp32",
    "ad01_int8",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v2_1.0_224_quant",
    "mobilenetv2_224_f32",
    "resnet50_224_int8",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "vww_96_float",
    "vww_96_int8",
)
UNSIGNED_KERNELS = ("deeplabv3_mnv2_dm05_pascal_quant", "mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant")
"""Models whose kernels have zero points, which oneDNN leaves to others."""
DRIFT = 8
"""Codes that the stored outputs of these models are off at most where each op may be one off (as measured)."""
SAME_PIXELS = 0.98
"""How many pixels then keep their class, at least (measured: 0.99)."""


@cache
def module(name: str) -> relay.IRModule:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    return relay.frontend.from_tflite(path)


@cache
def golden(name: str) -> tuple[list[Array], list[Array]]:
    """Inputs and outputs."""
    stored = np.load(MODELS / "golden" / f"{name}.npz")
    tag = "cat" if "cat_in0" in stored.files else "rand0"
    inputs, outputs = (
        [stored[key] for key in sorted(k for k in stored.files if k.startswith(f"{tag}_{kind}"))]
        for kind in ("in", "out")
    )
    return inputs, outputs


def results(executable: Executable, inputs: list[Array]) -> list[Array]:
    found = executable.run(*inputs)
    return [np.asarray(array) for array in (found if isinstance(found, list | tuple) else [found])]


def check(name: str, external: Mapping[str, Mapping[str, object]], codes: int) -> relay.IRModule:
    """Build and run; the best class is the same. The partitioned module."""
    parts = relay.build_external_compiler(module(name), external)
    executable = relay.build(parts)
    inputs, wanted = golden(name)
    for result, reference in zip(results(executable, inputs), wanted, strict=True):
        if result.dtype == np.int64 and codes:  # the class of each pixel
            assert (result == reference).mean() > SAME_PIXELS
            continue
        compare(result, reference, codes, name)
        assert result.argmax() == reference.argmax()
    return parts


def taken(parts: relay.IRModule) -> set[str]:
    """The compilers that functions of the module are for."""
    attrs = [function.attributes.get("compiler") for function in parts.functions.values()]
    return {attr.data for attr in attrs if isinstance(attr, StringAttr)}


def is_whole(parts: relay.IRModule) -> bool:
    """Whether the host only calls."""
    return {op.name for op in parts["main"].body.block.ops} == {"func.call", "func.return"}


@pytest.mark.parametrize(
    "name", ["kws_int8", *(pytest.param(n, marks=pytest.mark.ci) for n in SMALL if n != "kws_int8")]
)
@pytest.mark.parametrize("compiler", ["litert", "xnnpack", "onnxruntime", "onednn"])
def test_small_model_as_a_whole(compiler: str, name: str) -> None:
    installed(compiler)
    assert is_whole(check(name, {compiler: {}}, 0 if compiler == "litert" else DRIFT))


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("compiler", ["litert", "xnnpack", "onnxruntime", "onednn"])
def test_large_model_as_a_whole(compiler: str, name: str) -> None:
    installed(compiler)
    parts = check(name, {compiler: {}}, 0 if compiler == "litert" else DRIFT)
    assert is_whole(parts) == (compiler != "onednn" or name not in UNSIGNED_KERNELS)


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        pytest.param("litert", "c", 0, marks=pytest.mark.slow),
        pytest.param("xnnpack", "c", DRIFT, marks=pytest.mark.slow),
        ("onednn", "onnxruntime", DRIFT),
        ("onnxruntime", "litert", DRIFT),
    ],
)
def test_two_compilers_share_a_model(first: str, second: str, codes: int) -> None:
    installed(first)
    installed(second)
    parts = check("resnet8_int8", {first: {"only": ("qnn.conv2d",)}, second: {}}, codes)
    assert taken(parts) == {first, second}


@pytest.mark.parametrize(
    ("compiler", "kind", "line"),
    [
        ("xnnpack", "tflite", r"^%\d+:1x25x5x64xint8 = DEPTHWISE_CONV_2D .*padding=SAME stride_h=1"),
        ("onnxruntime", "onnx", r"^QLinearConv_\d+ = QLinearConv .*group=64 kernel_shape=\[3, 3\]"),
        ("onednn", "onednn", r"^%\d+:1x64x25x5xint8 = convolution .*:64x1x1x3x3xint8, .* dst:\[.*\]\*\(q\+128\)"),
    ],
)
def test_what_the_library_is_given_can_be_read(compiler: str, kind: str, line: str) -> None:
    """Every depthwise convolution of the model is a line of the listing."""
    installed(compiler)
    parts = relay.build_external_compiler(module("kws_int8"), compiler)
    (function,) = (f for f in parts.functions.values() if "compiler" in f.attributes)
    made = find(compiler).compile(function, BuildInfo())
    assert isinstance(made, Artifact)
    text = made.sources[kind]
    assert len(re.findall(line, text, re.MULTILINE)) == 4, text


@pytest.mark.parametrize("compiler", ["litert", "xnnpack", "onnxruntime", "onednn"])
def test_executable_is_saved_and_loaded(compiler: str, tmp_path: Path) -> None:
    installed(compiler)
    executable = relay.build(module("kws_int8"), external=compiler)
    executable.save(tmp_path / "kws")
    inputs, wanted = golden("kws_int8")
    for result, reference in zip(results(relay.runtime.load(tmp_path / "kws"), inputs), wanted, strict=True):
        compare(result, reference, 0 if compiler == "litert" else DRIFT, compiler)


@pytest.mark.parametrize("compiler", ["litert", "xnnpack", "onnxruntime", "onednn"])
def test_threads_call_at_the_same_time(compiler: str) -> None:
    installed(compiler)
    executable = relay.build(module("kws_int8"), external={compiler: {} if compiler == "litert" else {"threads": 2}})
    (shape,) = (array.shape for array in golden("kws_int8")[0])
    rng = np.random.default_rng(0)
    feeds = [rng.integers(-128, 128, shape).astype(np.int8) for _ in range(4)]
    alone = [results(executable, [feed]) for feed in feeds]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(8):
            if not np.array_equal(results(executable, [feeds[number]])[0], alone[number][0]):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(feeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_xnnpack_itself_runs_convolutions_with_one_scale() -> None:
    """Where LiteRT's delegate refuses an operator, its own kernels run: each gap is one delegate more."""
    installed("xnnpack")
    model = MODELS / "mobilenet_v1_0.25_128_quant.tflite"
    if not model.exists():
        pytest.skip("the model is not here")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    parted = relay.build_external_compiler(relay.frontend.from_tflite(model), "xnnpack")
    (function,) = [f for f in parted.functions.values() if "compiler" in f.attributes]
    made = find("xnnpack").compile(function, BuildInfo())
    assert isinstance(made, Artifact)
    loaded = Interpreter(model_content=made.data, experimental_op_resolver_type=OpResolverType.BUILTIN)
    loaded.allocate_tensors()
    private = "_get_ops_details"
    rows: list[dict[str, Any]] = getattr(loaded, private)()
    kinds = [row["op_name"] for row in rows]
    assert kinds.count("DEPTHWISE_CONV_2D") == 13 and kinds.count("DELEGATE") == 2
