"""Parameters and shapes beyond the usual: the numbers of LiteRT's reference kernels, or a row of docs/support.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.marks import ci
from tests.numeric.litert_models import Array, Case, Reference, T
from tests.numeric.test_quantised_operators_against_litert import use_functions_of_this_machine

SUPPORT = (Path(__file__).parents[2] / "docs/support.md").read_text()
EVERY = {
    "int8": np.arange(-128, 128).astype(np.int8),
    "uint8": np.arange(256).astype(np.uint8),
    "int16": np.arange(-(1 << 15), 1 << 15).astype(np.int16),
}


MORE = ([2, 14], [8, 7], [28, 2])


def equal(case: Case, feeds: list[Array], *, built: bool = True) -> None:
    """The integers of the interpreter and of compiled code are the reference's."""
    wanted = Reference(case.model()).run(feeds)
    module = from_tflite(case.model())
    np.testing.assert_array_equal(run(module, feeds)[0], wanted[0])
    if built:
        np.testing.assert_array_equal(relay.build(module).run(*feeds), wanted[0])


@pytest.fixture(autouse=True)
def litert() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")


COMPARISONS = "EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL"
SCALES = ((0.0021, 1.0), (0.0019, 1.0), (1e-4, 1.0), (1e-6, 3.0), (2e-9, 1e-8), (1e-7, 1e-3))
"""The first two are a shift of 15 and one of 16."""


@pytest.mark.parametrize("dtype", ["int8", pytest.param("uint8", marks=pytest.mark.ci)])
@pytest.mark.parametrize("scales", [*SCALES[:3], *ci(SCALES[3:])])
def test_hard_swish_with_wide_shifts(dtype: str, scales: tuple[float, float]) -> None:
    """gemmlowp's shift of 16 bits by 16 and more: its mask has only 16."""
    for zero in (0, 5, 100):
        tensors = [T([256], dtype, scale, zero) for scale in scales]
        equal(Case("HARD_SWISH", tensors[:1], tensors[1:], "HardSwishOptions"), [EVERY[dtype]], built=zero == 5)


@pytest.mark.parametrize("dims", [[4, 7], *ci(MORE), [56, 1]])
def test_fully_connected_flattens_matrices(dims: list[int]) -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (5, 28)).astype(np.int8)
    x = rng.integers(-128, 128, dims).astype(np.int8)
    data, kernel = T(dims, "int8", 0.1, 3), T(weights, "int8", 0.02)
    out = T([x.size // 28, 5], "int8", 0.7, -4)
    equal(Case("FULLY_CONNECTED", [data, kernel, None], [out], "FullyConnectedOptions", {}, 4), [x])


def function16(kind: str, scale: float) -> tuple[Case, list[Array]]:
    case = Case(kind, [T([1 << 16], "int16", scale)], [T([1 << 16], "int16", 1 / 32768)], version=3)
    return case, [EVERY["int16"]]


def subtraction(dtype: str, ratio: float) -> tuple[Case, list[Array]]:
    rng, scales = np.random.default_rng(1), (1.0, 0.5, ratio)
    zero = 128 if dtype == "uint8" else 0
    lhs, rhs, out = (T([4096], dtype, scale, zero) for scale in scales)
    values = {"fusedActivationFunction": 0, "potScaleInt16": False}
    info = np.iinfo(dtype)
    feeds = [rng.integers(info.min, info.max + 1, 4096).astype(dtype) for _ in range(2)]
    return Case("SUB", [lhs, rhs], [out], "SubOptions", values, 2), feeds


def gelu(dtype: str, scale: float, step: float = 0.05) -> tuple[Case, list[Array]]:
    tensors = [T([EVERY[dtype].size], dtype, each) for each in (step, scale)]
    return Case("GELU", tensors[:1], tensors[1:], "GeluOptions", {"approximate": False}), [EVERY[dtype]]


def root(dtype: str, scale: float) -> tuple[Case, list[Array]]:
    tensors = [T([EVERY[dtype].size], dtype, step) for step in (0.05, scale)]
    return Case("SQRT", tensors[:1], tensors[1:], "", {}, 2), [np.maximum(EVERY[dtype], 0).astype(dtype)]


def clamp(dtype: str, scale: float) -> tuple[Case, list[Array]]:
    """Shifts by no more than 30, beyond which the importer refuses."""
    tensors = [T([EVERY[dtype].size], dtype, step) for step in (2.0**28 * scale, scale)]
    return Case("RELU6", tensors[:1], tensors[1:], "", {}, 3 if dtype == "int16" else 2), [EVERY[dtype]]


def product(dtype: str, ratio: float) -> tuple[Case, list[Array]]:
    case, feeds = subtraction(dtype, ratio)
    for tensor in case.inputs:
        assert tensor is not None
        tensor.scale = 1.0
    return Case("MUL", case.inputs, case.outputs, "MulOptions", {"fusedActivationFunction": 0}, 2), feeds


def dense(dtype: str, scale: float) -> tuple[Case, list[Array]]:
    size = EVERY[dtype].size
    kernel, out = T(np.array([[127]], np.int8), "int8", 1.0), T([size, 1], dtype, scale)
    case = Case("FULLY_CONNECTED", [T([size, 1], dtype, 1.0), kernel, None], [out], "FullyConnectedOptions", {}, 7)
    return case, [EVERY[dtype][:, None]]


def comparison(dtype: str, scale: float) -> tuple[Case, list[Array]]:
    _, feeds = subtraction(dtype, 1.0)
    tensors = [T([4096], dtype, step) for step in (scale, 0.01)]
    return Case("LESS", tensors, [T([4096], "bool")], "LessOptions", {}, 2), feeds


UNDEFINED = [
    ("FULLY_CONNECTED", "int8, int16", dense("int8", 7.6e-6), dense("int8", 7.5e-6)),
    ("FULLY_CONNECTED", "int8, int16", dense("int16", 1.95e-3), dense("int16", 1.93e-3)),
    ("SQRT", "int8, int16", root("int8", 1.2e-9), root("int8", 1.1e-9)),
    ("SQRT", "int8, int16", root("int16", 1.9e-8), root("int16", 1.88e-8)),
    ("RELU6", "int8, uint8, int16", clamp("int8", 2.8e-9), clamp("int8", 2.79e-9)),
    ("RELU6", "int8, uint8, int16", clamp("int16", 2.8e-9), clamp("int16", 2.79e-9)),
    ("MUL", "int8, uint8, int16", product("int8", 2.0**-30.9), product("int8", 2.0**-31.1)),
    ("MUL", "int8, uint8, int16", product("int16", 2.0**-30.9), product("int16", 2.0**-31.1)),
    ("LOGISTIC, TANH", "int16", function16("LOGISTIC", 5.33), function16("LOGISTIC", 5.34)),
    ("LOGISTIC, TANH", "int16", function16("TANH", 5.33), function16("TANH", 5.34)),
    ("SUB", "int8, uint8", subtraction("int8", 2.0**-18.9), subtraction("int8", 2.0**-19.1)),
    ("SUB", "int8, uint8", subtraction("uint8", 2.0**-18.9), subtraction("uint8", 2.0**-19.1)),
    ("SUB", "int16", subtraction("int16", 2.0**-13.9), subtraction("int16", 2.0**-14.1)),
    *(
        (COMPARISONS, "int8, uint8, int16", comparison(dtype, 0.999), comparison(dtype, 2.5))
        for dtype in ("int8", "uint8")
    ),
    ("GELU", "int8, uint8", gelu("uint8", 1e-8), gelu("uint8", 1e-20)),
]
"""Rows of docs/support.md: a model this side of the bound, and one beyond it."""


@pytest.mark.parametrize(("operators", "types", "inside", "beyond"), UNDEFINED)
def test_where_litert_leaves_numbers_undefined(
    operators: str, types: str, inside: tuple[Case, list[Array]], beyond: tuple[Case, list[Array]]
) -> None:
    equal(*inside, built=False)
    case, feeds = beyond
    wanted, result = Reference(case.model()).run(feeds)[0], run(from_tflite(case.model()), feeds)[0]
    assert not np.array_equal(result, wanted), "LiteRT is defined here: take the row out"
    assert f"| {operators} | {types} | " in SUPPORT


@pytest.mark.parametrize("scale", [1e12, 3e38])
@pytest.mark.parametrize(("kind", "ends"), [("LOGISTIC", (0, 16384, 32767)), ("TANH", (-32768, 0, 32767))])
def test_functions_of_words_saturate(kind: str, ends: tuple[int, int, int], scale: float) -> None:
    """Where LiteRT's product leaves 32 bits, and one of 64 bits would overflow, too."""
    case, (x,) = function16(kind, scale)
    np.testing.assert_allclose(run(from_tflite(case.model()), [x])[0], np.choose(np.sign(x) + 1, ends), atol=1)


def quantised_in_runs(kind: str, rng: np.random.Generator) -> tuple[Case, list[int]]:
    """A layer of floats by int8 weights, and the shape of its data."""
    rows, depth, units = (int(d) for d in rng.integers(1, [4, 40, 6]))
    scales = [float(s) for s in 2.0 ** rng.integers(-2, 3, units)] if rng.integers(2) else [1.0] * units
    if kind in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        shape, out, values = [rows, depth], [rows, units], {"asymmetricQuantizeInputs": bool(rng.integers(2))}
        kernel = [units, depth] if kind == "FULLY_CONNECTED" else [depth, units]
        options = "FullyConnectedOptions" if kind == "FULLY_CONNECTED" else "BatchMatMulOptions"
        weights = T(rng.integers(-127, 128, kernel).astype(np.int8), "int8", scales[:1])
    else:
        depthwise = kind == "DEPTHWISE_CONV_2D"
        shape, out = [rows, 3, 4, units if depthwise else depth], [rows, 3, 4, units]
        values = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
        values |= {"depthMultiplier": 1} if depthwise else {}
        options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        kernel = [1, 2, 2, units] if depthwise else [units, 1, 1, depth]
        weights = T(rng.integers(-127, 128, kernel).astype(np.int8), "int8", scales, 0, 3 * depthwise)
    version = {"FULLY_CONNECTED": 12, "BATCH_MATMUL": 4, "CONV_2D": 7, "DEPTHWISE_CONV_2D": 6}[kind]
    bias = [] if kind == "BATCH_MATMUL" else [T(np.zeros(units, np.float32), "float32")]
    inputs = [T(shape, "float32"), weights, *bias]
    return Case(kind, inputs, [T(out, "float32")], options, values, version), shape


def half_way(rng: np.random.Generator, shape: list[int]) -> Array:
    """Multiples of half a step, and a zero point that is half way between two codes, too."""
    step = float(rng.random()) if rng.integers(2) else 2.0 ** -float(rng.integers(6))
    low = -(rng.integers(1, 254) + 0.5) * step
    data = np.clip(rng.integers(-255, 256, shape) * 0.5 * step, low, low + 255 * step).reshape(shape[0], -1)
    data[:, 0], data[:, -1] = low, low + 255 * step
    return data.reshape(shape).astype(np.float32)


@pytest.mark.parametrize(
    "kind",
    [
        "FULLY_CONNECTED",
        "CONV_2D",
        *ci(("BATCH_MATMUL", "DEPTHWISE_CONV_2D")),
    ],
)
def test_floats_half_way_between_codes(kind: str) -> None:
    """Which end gives the zero point, what is rounded before what is added, and one scale or several: each by the
    step of the code in the sum."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        case, shape = quantised_in_runs(kind, rng)
        try:
            reference = Reference(case.model())
        except RuntimeError:
            continue  # depthwise by one scale for several channels
        module, data = from_tflite(case.model()), half_way(rng, shape)
        wanted = reference.run([data])[0]
        np.testing.assert_allclose(run(module, [data])[0], wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


def test_below_half_a_step() -> None:
    """LiteRT adds 0.5 in float32 and cuts, in all but the last elements of a row."""
    kernel = T(np.eye(16, dtype=np.int8), "int8", [1.0])
    values, size = {"asymmetricQuantizeInputs": True}, T([1, 16], "float32")
    case = Case("FULLY_CONNECTED", [size, kernel, None], [size], "FullyConnectedOptions", values, 12)
    data = np.array([[-128, 127, *[np.float32(0.49999997)] * 14]], np.float32)
    wanted, result = Reference(case.model()).run([data])[0], run(from_tflite(case.model()), [data])[0]
    assert (wanted[0, 2:] == 1).all(), "LiteRT rounds here: take the row out"
    assert (result[0, 2:] == 0).all()
    assert "| float32 | 0.5 - 2^-25 steps, " in SUPPORT


def test_tables_are_those_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A code of the table is off by one with correctly rounded functions, none with those that LiteRT calls."""
    case, feeds = gelu("int16", 5.459165e-05, 9.911173e-05)
    wanted, rounded = Reference(case.model()).run(feeds)[0], run(from_tflite(case.model()), feeds)[0]
    assert np.abs(rounded.astype(int) - wanted).max() <= 1
    use_functions_of_this_machine(monkeypatch)
    np.testing.assert_array_equal(run(from_tflite(case.model()), feeds)[0], wanted)


EDGES = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-40, 88.8, -88.8, 2.5], np.float32)
LEFT, RIGHT = np.repeat(EDGES, EDGES.size), np.tile(EDGES, EDGES.size)
LARGEST = np.finfo(np.float32).max


def infinity(result: Array, wanted: Array) -> Array:
    return np.isinf(result) & (np.abs(wanted) == LARGEST)


def nan(result: Array, wanted: Array) -> Array:
    return np.isnan(result)


def denormal(result: Array, wanted: Array) -> Array:
    return (result == 0) & (wanted < np.finfo(np.float32).tiny)


def binary(kind: str) -> tuple[Case, list[Array]]:
    options = "MaximumMinimumOptions" if kind in ("MAXIMUM", "MINIMUM") else f"{kind.title()}Options"
    size = T([LEFT.size], "float32")
    return Case(kind, [size, size], [size], options), [LEFT, RIGHT]


def reduction(kind: str) -> tuple[Case, list[Array]]:
    inputs = [T([LEFT.size, 2], "float32"), T(np.array([1], np.int32), "int32")]
    return Case(kind, inputs, [T([LEFT.size], "float32")], "ReducerOptions"), [np.stack([LEFT, RIGHT], 1)]


def pool(kind: str) -> tuple[Case, list[Array]]:
    values = {"padding": 1, "strideW": 1, "strideH": 1, "filterWidth": 2, "filterHeight": 1}
    shapes = [T([1, LEFT.size, 2, 1], "float32"), T([1, LEFT.size, 1, 1], "float32")]
    return Case(kind, shapes[:1], shapes[1:], "Pool2DOptions", values), [np.stack([LEFT, RIGHT], 1)[None, :, :, None]]


def unary(kind: str) -> tuple[Case, list[Array]]:
    return Case(kind, [T([EDGES.size], "float32")], [T([EDGES.size], "float32")]), [EDGES]


AT_EDGES = {
    "ADD": (binary, infinity), "SUB": (binary, infinity), "MUL": (binary, infinity), "DIV": (binary, infinity),
    "MAXIMUM": (binary, nan), "MINIMUM": (binary, nan), "REDUCE_MAX": (reduction, nan, infinity),
    "REDUCE_MIN": (reduction, nan, infinity), "MAX_POOL_2D": (pool, nan, infinity),
    "AVERAGE_POOL_2D": (pool, infinity), "L2_POOL_2D": (pool, infinity), "LOGISTIC": (unary, denormal),
    "SUM": (reduction,), "MEAN": (reduction,), "TANH": (unary,), "RELU": (unary,), "LOG": (unary,), "SQRT": (unary,),
}  # fmt: skip
"""Models of floats at the edges, and which differences docs/support.md names."""


@pytest.mark.parametrize("kind", AT_EDGES)
def test_floats_at_the_edges(kind: str) -> None:
    make, *named = AT_EDGES[kind]
    case, feeds = make(kind)
    wanted, result = Reference(case.model()).run(feeds)[0], run(from_tflite(case.model()), feeds)[0]
    same = (result == wanted) | (np.isnan(result) & np.isnan(wanted)) | np.isclose(result, wanted, rtol=1e-6, atol=0)
    for allowed in named:
        assert (allowed(result, wanted) & ~same).any() or len(named) > 1, "no difference: take the row out"
        same |= allowed(result, wanted)
    assert same.all()
    assert kind in SUPPORT
