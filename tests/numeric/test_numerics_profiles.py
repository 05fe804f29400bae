"""Each numerics profile against the runtime whose integers it promises, on random operators and on real models."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from relay import signature
from relay.compile.entry import build
from relay.errors import Unsupported
from relay.frontend import from_tflite
from relay.frontend.tflite.profiles import PROFILES
from relay.interpreters import run
from tests.conftest import Cases
from tests.numeric.litert_models import Array, Case, T
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.profile_references import Delegated, Micro

MODELS = Path(__file__).parents[2] / "../shared/models"
MICRO_KINDS = sorted(
    "ADD ARG_MAX ARG_MIN AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEQUANTIZE FULLY_CONNECTED LOGISTIC "
    "MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL PACK PAD PADV2 QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE "
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SLICE SOFTMAX SPLIT SPLIT_V STRIDED_SLICE SUB SVDF TANH TRANSPOSE "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK".split()
)
SLOW_MODELS = ("resnet8_int8", "vww_96_int8", "tf2_mobilenet_v2_1.0_224_ptq", "keras_lstm_mnist_ptq")
UNCOVERED = [("tflm", "CONV_2D", "uint8"), ("tvm", "RESIZE_BILINEAR", "int8")]
XNNPACK_KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MUL", "QUANTIZE", "ADD")


class Runtime(Protocol):
    def run(self, feeds: list[Array], outputs: int) -> list[Array]: ...


def compare(case: Case, rng: np.random.Generator, numerics: str, runtime: Callable[[bytes], Runtime]) -> bool:
    """Two runs, states carried on; False where the runtime does not take the model, or it has no codes."""
    model, feeds = case.model(), [case.feeds(rng) for _ in range(2)]
    if case.outputs[0].dtype == "float32" and case.kind != "DEQUANTIZE":
        return False
    try:
        reference = runtime(model)
        expected = [reference.run(each, len(case.outputs)) for each in feeds]
    except (RuntimeError, ValueError):
        return False
    module = from_tflite(model, numerics=numerics)
    inputs, outputs = signature.read(module["main"])
    states = [np.array(info.initial) for info in inputs if info.kind == "state"]
    count = sum(info.kind == "output" for info in outputs)
    for each, wanted in zip(feeds, expected, strict=True):
        results = run(module, [*each, *states])
        states = list(results[count:])
        for result, right in zip(results[:count], wanted, strict=True):
            assert result.shape == right.shape and np.array_equal(result, right), f"{numerics} {case}"
    return True


def compare_many(
    kind: str, numerics: str, runtime: Callable[[bytes], Runtime], numbers: Iterable[int], dtype: str = ""
) -> None:
    """A model that the runtime takes for each of the numbers."""
    rng = np.random.default_rng([5, zlib.crc32(kind.encode())])
    accepted = tried = 0
    for _ in numbers:
        taken = False
        while not taken:
            case = CASES[kind](rng, kind)
            first = case.inputs[0]
            if dtype and (first is None or {first.dtype, case.outputs[0].dtype} != {dtype}):
                continue
            tried += 1
            taken = compare(case, rng, numerics, runtime)
            assert tried < 60 * (accepted + 4), "few models are taken"
        accepted += 1
    print(f"{numerics} {kind}: {tried} tried, {tried - accepted} not taken, {accepted} equal")


@pytest.fixture
def micro() -> Callable[[bytes], Runtime]:
    pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")
    return Micro


@pytest.fixture
def delegated() -> Callable[[bytes], Runtime]:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    return Delegated


@pytest.mark.parametrize("kind", MICRO_KINDS)
def test_tflm_is_tflite_micro(micro: Callable[[bytes], Runtime], kind: str) -> None:
    compare_many(kind, "tflm", micro, range(4))


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", MICRO_KINDS)
def test_many_operators_are_tflite_micro(micro: Callable[[bytes], Runtime], kind: str, cases: Cases) -> None:
    compare_many(kind, "tflm", micro, cases(200))


@pytest.mark.parametrize("kind", XNNPACK_KINDS)
def test_xnnpack_is_litert_with_its_delegate(delegated: Callable[[bytes], Runtime], kind: str) -> None:
    compare_many(kind, "xnnpack", delegated, range(10), "int8")


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", XNNPACK_KINDS)
def test_many_products_are_litert_with_its_delegate(
    delegated: Callable[[bytes], Runtime], kind: str, cases: Cases
) -> None:
    compare_many(kind, "xnnpack", delegated, cases(200), "int8")


def compare_model(name: str, numerics: str, runtime: Callable[[bytes], Runtime]) -> None:
    """Compiled, on the inputs of the golden answers."""
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{name} is not at hand")
    executable, reference = build(path, numerics=numerics), runtime(path.read_bytes())
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    inputs = [golden[key] for key in golden.files if key.endswith("_in0")]
    states: list[Array] = []
    for image in inputs:
        found = executable.run(image, *states)
        assert found is not None
        result, *states = found if isinstance(found, tuple) else (found,)
        assert np.array_equal(result, reference.run([image], 1)[0])


@pytest.mark.parametrize("name", ["kws_int8", "ad01_int8"])
def test_models_in_tflite_micro(micro: Callable[[bytes], Runtime], name: str) -> None:
    compare_model(name, "tflm", micro)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_MODELS)
def test_more_models_in_tflite_micro(micro: Callable[[bytes], Runtime], name: str) -> None:
    compare_model(name, "tflm", micro)


@pytest.mark.parametrize("name", ["kws_int8", pytest.param("resnet8_int8", marks=pytest.mark.slow)])
def test_models_in_litert_with_its_delegate(delegated: Callable[[bytes], Runtime], name: str) -> None:
    compare_model(name, "xnnpack", delegated)


@pytest.mark.parametrize("groups", [1, 6])
@pytest.mark.parametrize("per_channel", [False, True])
def test_ort_is_onnx_runtime(groups: int, per_channel: bool) -> None:
    """QLinearConv on the same numbers, with and without groups."""
    onnxruntime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    helper: Any = pytest.importorskip("onnx", reason="onnx is not installed").helper
    rng = np.random.default_rng([groups, per_channel])
    channels, out = 6, 6
    data = T([1, 9, 9, channels], "int8", 0.0513, 7)
    kernel = rng.integers(-127, 128, (out, 3, 3, channels // groups)).astype(np.int8)
    scales = rng.uniform(1e-3, 1e-2, out if per_channel else 1).astype(np.float32).tolist()
    target = 0.31 if groups > 1 else 0.83
    bias = rng.integers(-4000, 4000, out).astype(np.int32)
    result = T([1, 7, 7, out], "int8", target, -3)
    depthwise = groups > 1
    stored = kernel.transpose(3, 1, 2, 0) if depthwise else kernel
    weights = T(stored, "int8", scales, 0, 3 if depthwise else 0)
    values = {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    values |= {"depthMultiplier": 1} if depthwise else {}
    options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    case = Case(
        "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [data, weights, T(bias, "int32")], [result], options, values, 3
    )
    image = rng.integers(-128, 128, (1, 9, 9, channels)).astype(np.int8)
    (ours,) = run(from_tflite(case.model(), numerics="ort"), [image])
    constants = {
        "xs": np.float32(0.0513), "xz": np.int8(7), "w": kernel.transpose(0, 3, 1, 2),
        "ws": np.array(scales if per_channel else scales[0], np.float32),
        "wz": np.zeros(out if per_channel else (), np.int8), "ys": np.float32(target), "yz": np.int8(-3), "b": bias,
    }  # fmt: skip
    tensors = [
        helper.make_tensor(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.tobytes(), raw=True)
        for k, v in ((k, np.ascontiguousarray(v)) for k, v in constants.items())
    ]
    for tensor, value in zip(tensors, constants.values(), strict=True):
        tensor.dims[:] = list(np.shape(value))
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], group=groups)
    int8 = helper.np_dtype_to_tensor_dtype(np.dtype(np.int8))
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", int8, [1, channels, 9, 9])],
        [helper.make_tensor_value_info("y", int8, [1, out, 7, 7])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"x": np.ascontiguousarray(image.transpose(0, 3, 1, 2))})
    assert np.array_equal(ours, theirs.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("kind", ["ADD", "MUL"])
def test_ort_adds_and_multiplies_as_onnx_runtime(kind: str) -> None:
    """QLinearAdd and QLinearMul on the same numbers."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    from tests.numeric.onnx_quantised import MICROSOFT, Graph

    graph, found, differing = Graph(np.random.default_rng(4)), list[Array](), 0
    for number in range(24):
        dtype, factor = ("int8", "uint8")[number % 2], graph.scale()
        scales = graph.scale(), factor, graph.scale(-4, 1) * (factor if kind == "MUL" else 1)
        codes = [(np.float32(scale), graph.zero(np.dtype(dtype).type)) for scale in scales]
        specs = [T([3, 70], dtype, float(scale), int(zero)) for scale, zero in codes]
        case = Case(kind, specs[:2], specs[2:], f"{kind.title()}Options", {}, 2)
        feeds = [graph.codes(dtype, 3, 70) for _ in range(2)]
        found += run(from_tflite(case.model(), numerics="ort"), feeds)
        differing += bool((run(from_tflite(case.model()), feeds)[0] != found[-1]).any())
        names = [[graph.constant(scale), graph.constant(zero)] for scale, zero in codes]
        inputs = [graph.input(feeds[0]), *names[0], graph.input(feeds[1]), *names[1], *names[2]]
        graph.node(f"QLinear{kind.title()}", inputs, dtype, MICROSOFT)
    session = onnxruntime.InferenceSession(graph.model().SerializeToString(), providers=["CPUExecutionProvider"])
    for ours, theirs in zip(found, session.run(None, graph.inputs), strict=True):
        assert np.array_equal(ours, theirs)
    assert differing, "the profile changes nothing"


def old_case(seed: int) -> tuple[Case, Array]:
    """A FULLY_CONNECTED of int8 where integer and float64 multipliers often differ."""
    rng = np.random.default_rng(seed)
    units, inputs = 12, 40
    scales = rng.uniform(1e-3, 1e-2, units if seed % 2 else 1).astype(np.float32).tolist()
    data_scale = float(np.float32(rng.uniform(0.01, 0.1)))
    data = T([96, inputs], "int8", data_scale, int(rng.integers(-128, 128)))
    kernel = T(rng.integers(-127, 128, (units, inputs)).astype(np.int8), "int8", scales)
    bias = T(rng.integers(-9000, 9000, units).astype(np.int32), "int32", [data_scale * s for s in scales])
    result = T([96, units], "int8", float(np.float32(rng.uniform(0.01, 0.05))), int(rng.integers(-128, 128)))
    case = Case("FULLY_CONNECTED", [data, kernel, bias], [result], "FullyConnectedOptions", {}, 5)
    return case, rng.integers(-128, 128, (96, inputs)).astype(np.int8)


def test_litert_1_2_has_its_golden_answers() -> None:
    """Checksums of what ai-edge-litert 1.2.0 computed with its reference kernels, and of what 2.3.0 did."""
    golden: list[list[int]] = json.loads((Path(__file__).parent / "litert_1_2.json").read_text())
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    differ = 0
    for seed, (old, new) in enumerate(golden):
        case, codes = old_case(seed)
        found = [
            zlib.crc32(run(from_tflite(case.model(), numerics=which), [codes])[0].tobytes())
            for which in ("litert-1.2", "litert")
        ]
        assert found == [old, new], seed
        differ += old != new
    assert differ


@pytest.mark.parametrize(("numerics", "kind", "dtype"), UNCOVERED)
def test_what_a_profile_does_not_cover_is_unsupported(numerics: str, kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    rng = np.random.default_rng(0)
    case = next(c for c in (CASES[kind](rng, kind) for _ in range(99)) if c.outputs[0].dtype == dtype)
    with pytest.raises(Unsupported, match=rf"operator 0 {kind} 'out0'.*{numerics}.*{dtype.upper()}"):
        from_tflite(case.model(), numerics=numerics)


def test_profiles_name_kinds_of_the_table() -> None:
    from relay.frontend import supported_operators

    for name, numerics in PROFILES.items():
        assert {*(numerics.kinds or ()), *numerics.rows} <= {*supported_operators()}, name
