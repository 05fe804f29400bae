"""Random small models of the quantised operators that 8-bit networks have beside sums, products and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numeric.litert_cases import Rng, activation, codes, dims, like, scale, zero_point
from tests.numeric.litert_models import Case, T, random_numbers
from tests.numeric.litert_quantised_cases import (
    QUANTISED,
    ints16,
    options_of,
    quantised,
)

__all__ = ["QUANTISED"]


@quantised("LEAKY_RELU", "GELU", types="int8 uint8 int16")
@quantised("RELU_0_TO_1", "HARD_SWISH", types="int8 uint8")
@quantised("NEG", "ELU", types="int8")
@quantised("ABS", "LOG", "EXP", types="int8 int16")
def unary(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 3, 1, 9)
    data, out = ints16(rng, shape, dtype), ints16(rng, shape, dtype)
    if kind == "ABS" and rng.integers(3) == 0:
        out = like(data, shape)
    values: dict[str, Any] = {}
    if kind == "LEAKY_RELU":
        values["alpha"] = float(np.float32(rng.uniform(-0.5, 1.5)))
    if kind == "GELU":
        values["approximate"] = bool(rng.integers(2))
    options = options_of(kind) if kind in ("LEAKY_RELU", "HARD_SWISH", "GELU", "ABS", "EXP") else ""
    version = {"LEAKY_RELU": 2, "ABS": 3, "LOG": 2, "EXP": 2}.get(kind, 1)
    kernels = "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if kind == "ELU" else "BUILTIN_REF"
    return Case(kind, [data], [out], options, values, version, kernels=kernels)


@quantised("RSQRT", "SQRT", types="int8 int16")
def root(rng: Rng, kind: str, dtype: str) -> Case:
    """Of numbers that are not negative: LiteRT stops at others."""
    shape = dims(rng, 3, 1, 9)
    data, out = ints16(rng, shape, dtype), ints16(rng, shape, dtype)
    numbers = np.maximum(random_numbers(rng, shape, dtype), data.zero_point).astype(dtype)
    return Case(kind, [data], [out], "", {}, 3 if kind == "RSQRT" else 2, (), {0: numbers})


@quantised("PRELU", types="int8 uint8")
def prelu(rng: Rng, kind: str, dtype: str) -> Case:
    shape = [int(rng.integers(1, 3)), *dims(rng, 3)]
    slope = [1, 1, shape[3]] if rng.integers(3) else shape[1:]
    alpha = codes(rng, random_numbers(rng, slope, dtype), dtype)
    return Case(kind, [codes(rng, shape, dtype), alpha], [codes(rng, shape, dtype)], version=1)


@quantised("SQUARED_DIFFERENCE", types="int8")
def squared_difference(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 5)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    first, second = (shape, narrow) if rng.integers(2) else (narrow, shape)
    out = T(shape, dtype, scale(rng, 1e-3, 0.5), zero_point(rng, dtype))
    return Case(kind, [codes(rng, first, dtype), codes(rng, second, dtype)], [out], options_of(kind), {}, 2)


COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


@quantised(*COMPARISONS, types="int8 uint8")
def compare(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 3)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    lhs = codes(rng, shape, dtype)
    rhs = like(lhs, narrow) if rng.integers(2) else codes(rng, narrow, dtype)
    return Case(kind, [lhs, rhs], [T(shape, "bool")], options_of(kind), {}, 2)


@quantised("L2_NORMALIZATION", types="int8 uint8")
def l2_normalization(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, int(rng.integers(1, 5)), 1, 20)
    out = T(shape, dtype, 1 / 128, 0 if dtype == "int8" else 128)
    return Case(kind, [codes(rng, shape, dtype)], [out], "L2NormOptions", {}, 2)


@quantised("DIV", types="uint8 int8")
def divide(rng: Rng, kind: str, dtype: str) -> Case:
    """Divisors and scales for which LiteRT shifts by no more than 31: it would be undefined."""
    shape = dims(rng, 4, 1, 5)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    first, second = (shape, narrow) if rng.integers(2) else (narrow, shape)
    lhs, rhs = codes(rng, first, dtype), codes(rng, second, dtype)
    out = T(
        shape,
        dtype,
        float(np.asarray(lhs.scale)) / float(np.asarray(rhs.scale)) / scale(rng, 32, 256),
        zero_point(rng, dtype),
    )
    info = np.iinfo(dtype)
    near = np.clip(rhs.zero_point + rng.integers(-63, 64, second), info.min, info.max)
    near[near == rhs.zero_point] = rhs.zero_point + (1 if rhs.zero_point < info.max else -1)
    return Case(kind, [lhs, rhs], [out], "DivOptions", activation(rng), 2, (), {1: near.astype(dtype)})
