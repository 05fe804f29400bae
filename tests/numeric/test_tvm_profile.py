"""`numerics="tvm"` against TVM's formulas, written out here, and compiled against interpreted."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relay.compile.entry import build
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Array, Case, T
from tests.numeric.litert_shape_cases import CASES

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"


def fixed_point(scale_in: np.float32, scale_out: float) -> Callable[[Array], Array]:
    """`fixed_point_multiply` by the quotient of the scales: one rounding, halves up."""
    fraction, exponent = math.frexp(float(np.float64(scale_in) / np.float64(np.float32(scale_out))))
    multiplier = math.floor(fraction * 2**31 + 0.5)
    return lambda x: (x * multiplier + (1 << (30 - exponent))) >> (31 - exponent)


def scale_of(tensor: T | None) -> np.float32:
    assert tensor is not None and isinstance(tensor.scale, float)
    return np.float32(tensor.scale)


def clipped(case: Case, x: Array) -> Array:
    """To the activation's bounds, halves to even, and to the type's."""
    out = case.outputs[0]
    limits = np.iinfo(out.dtype)
    which: int = case.values.get("fusedActivationFunction", 0)
    low, high = [(-math.inf, math.inf), (0.0, math.inf), (-1.0, 1.0), (0.0, 6.0)][which]
    bottom = limits.min if math.isinf(low) else round(low / float(scale_of(out))) + out.zero_point
    top = limits.max if math.isinf(high) else round(high / float(scale_of(out))) + out.zero_point
    return np.clip(np.clip(x, limits.min, limits.max), bottom, top).astype(out.dtype)


def steps(case: Case, feeds: list[Array]) -> list[Array]:
    return [x.astype(np.int64) - t.zero_point for x, t in zip(feeds, case.inputs, strict=False) if t is not None]


def add(case: Case, feeds: list[Array]) -> Array:
    out = case.outputs[0]
    sides = [
        x if s == scale_of(out) else fixed_point(s, float(scale_of(out)))(x)
        for x, s in zip(steps(case, feeds), map(scale_of, case.inputs), strict=True)
    ]
    return clipped(case, (sides[0] + sides[1] if case.kind == "ADD" else sides[0] - sides[1]) + out.zero_point)


def multiply(case: Case, feeds: list[Array]) -> Array:
    lhs, rhs = steps(case, feeds)
    product = scale_of(case.inputs[0]) * scale_of(case.inputs[1])
    out = case.outputs[0]
    return clipped(case, fixed_point(product, float(scale_of(out)))(lhs * rhs) + out.zero_point)


def average_pool(case: Case, feeds: list[Array]) -> Array:
    (x,), values = feeds, case.values
    out = np.zeros(tuple(case.outputs[0].value), np.int64)
    kernel, stride = (values["filterHeight"], values["filterWidth"]), (values["strideH"], values["strideW"])
    before = [0, 0]
    if values["padding"] == 0:
        before = [max((out.shape[1 + i] - 1) * stride[i] + kernel[i] - x.shape[1 + i], 0) // 2 for i in range(2)]
    for row, column in np.ndindex(out.shape[1], out.shape[2]):
        top, left = row * stride[0] - before[0], column * stride[1] - before[1]
        window = x[:, max(top, 0) : top + kernel[0], max(left, 0) : left + kernel[1]].astype(np.int64)
        count = window.shape[1] * window.shape[2]
        total = window.sum(axis=(1, 2))
        out[:, row, column] = np.sign(total) * (np.abs(total) // count)
    return clipped(case, out)


def mean(case: Case, feeds: list[Array]) -> Array:
    data, axes, out = case.inputs[0], case.inputs[1], case.outputs[0]
    assert data is not None and axes is not None and isinstance(axes.value, np.ndarray)
    over = tuple(int(axis) % 4 for axis in axes.value.reshape(-1))
    total = feeds[0].astype(np.int64).sum(axis=over, keepdims=bool(case.values["keepDims"]))
    count = math.prod(feeds[0].shape[axis] for axis in over)
    quotient = np.sign(total) * (np.abs(total) // count) - data.zero_point
    if scale_of(data) != scale_of(out):
        quotient = fixed_point(scale_of(data), float(scale_of(out)))(quotient)
    return clipped(case, quotient + out.zero_point)


FORMULAS = {"ADD": add, "SUB": add, "MUL": multiply, "AVERAGE_POOL_2D": average_pool, "MEAN": mean}


@pytest.mark.parametrize("kind", FORMULAS)
def test_operators_have_tvms_formulas(kind: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema, which writes the models, is not installed")
    rng, count = np.random.default_rng(9), 0
    while count < 12:
        case = CASES[kind](rng, kind)
        if case.outputs[0].dtype not in ("int8", "uint8"):
            continue
        feeds = case.feeds(rng)
        module = from_tflite(case.model(), numerics="tvm")
        (found,) = run(module, feeds)
        assert np.array_equal(found, FORMULAS[kind](case, feeds)), case
        if count == 0:
            assert np.array_equal(np.asarray(build(module, opt_level=1).run(*feeds)), found)
        count += 1


def test_a_compiled_model_equals_the_interpreter() -> None:
    module = from_tflite(DIGITS, numerics="tvm")
    executable = build(module, opt_level=1)
    image = np.random.default_rng(1).integers(-128, 128, executable.inputs[0].shape).astype(np.int8)
    assert np.array_equal(np.asarray(executable.run(image)), run(module, [image])[0])
