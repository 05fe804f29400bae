"""Random small models of one operator each: a function per kind, entered in `CASES` by `@cases`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numeric.litert_models import Array, Case, T, random_numbers

Rng = np.random.Generator
CASES: dict[str, Callable[[Rng, str], Case]] = {}
CODES = ("int8", "uint8")
MOVED = (*CODES, "float32", "int32")
"""Types that operators take which only move elements."""


def cases(*kinds: str) -> Callable[[Callable[[Rng, str], Case]], Callable[[Rng, str], Case]]:
    def enter(make: Callable[[Rng, str], Case]) -> Callable[[Rng, str], Case]:
        CASES.update(dict.fromkeys(kinds, make))
        return make

    return enter


def pick(rng: Rng, *items: str) -> str:
    return items[int(rng.integers(len(items)))]


def dims(rng: Rng, count: int, low: int = 1, high: int = 6) -> list[int]:
    return [int(d) for d in rng.integers(low, high, count)]


def scale(rng: Rng, low: float = 1e-3, high: float = 0.2) -> float:
    return float(np.float32(math.exp(rng.uniform(math.log(low), math.log(high)))))


def zero_point(rng: Rng, dtype: str) -> int:
    return 0 if dtype == "int16" else int(random_numbers(rng, [], dtype))


def codes(rng: Rng, value: Array | list[int], dtype: str, **other: Any) -> T:
    """A tensor of a random scale and zero point; floats have none."""
    if dtype not in (*CODES, "int16"):
        return T(value, dtype, **other)
    return T(value, dtype, scale(rng), zero_point(rng, dtype), **other)


def like(tensor: T, value: Array | list[int]) -> T:
    """Another tensor of the same type, scale and zero point."""
    return T(value, tensor.dtype, tensor.scale, tensor.zero_point)


def activation(rng: Rng) -> dict[str, int]:
    return {"fusedActivationFunction": int(rng.integers(0, 4))}


def weights(rng: Rng, shape: list[int], dtype: str) -> Array:
    """Floats are small, so that sums stay near the bounds of activations; int8 has no -128, as TFLite's rules say."""
    numbers = random_numbers(rng, shape, dtype)
    if dtype == "float32":
        return numbers / np.float32(100)
    return np.maximum(numbers, -127) if dtype == "int8" else numbers


def integers(*values: Any) -> T:
    return T(np.array(values if len(values) != 1 else values[0], np.int32), "int32")


def windowed(size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    """The size of the result: SAME (0) or VALID (1)."""
    return -(-size // stride) if padding == 0 else (size + stride - (kernel - 1) * dilation - 1) // stride


@cases("CONV_2D", "DEPTHWISE_CONV_2D")
def convolution(rng: Rng, kind: str) -> Case:
    depthwise = kind == "DEPTHWISE_CONV_2D"
    flavour = pick(rng, "int8", "int8", "uint8", "float32", *([] if depthwise else ["hybrid"]))
    dtype = "float32" if flavour == "hybrid" else flavour
    (ky, kx), padding = dims(rng, 2, 1, 4), int(rng.integers(2))
    stride, dilation = dims(rng, 2, 1, 3), dims(rng, 2, 1, 3)
    if stride != [1, 1]:
        dilation = [1, 1]
    height, width = (max(d, (k - 1) * e + 1) for d, k, e in zip(dims(rng, 2, 3, 9), (ky, kx), dilation, strict=True))
    batch, channels, groups = int(rng.integers(1, 3)), int(rng.integers(1, 5)), 1
    out = channels * int(rng.integers(1, 3)) if depthwise else int(rng.integers(1, 6))
    if not depthwise and dtype != "float32" and channels % 2 == 0 and rng.integers(2):
        groups, out = 2, 2 * out
    data = codes(rng, [batch, height, width, channels], dtype)
    shape = [1, ky, kx, out] if depthwise else [out, ky, kx, channels // groups]
    kernel_dtype = "int8" if flavour == "hybrid" else dtype
    per_channel = flavour == "int8" and rng.integers(2)
    scales = [scale(rng) for _ in range(out if per_channel else 1)]
    kernel = T(weights(rng, shape, kernel_dtype), kernel_dtype)
    bias_dtype = "float32" if dtype == "float32" else "int32"
    bias = T(weights(rng, [out], bias_dtype), bias_dtype)
    if kernel_dtype != "float32":
        kernel.scale, kernel.axis = scales, 3 if depthwise else 0
        kernel.zero_point = zero_point(rng, "uint8") if kernel_dtype == "uint8" else 0
    if dtype != "float32":
        bias.scale = [float(data.scale) * s for s in scales] if isinstance(data.scale, float) else None
    rows, columns = (
        windowed(*sizes, padding) for sizes in zip((height, width), (ky, kx), stride, dilation, strict=True)
    )
    result = codes(rng, [batch, rows, columns, out], dtype)
    if result.scale is not None:
        result.scale = scale(rng, 0.05, 5)
    values = {
        "padding": padding,
        "strideH": stride[0],
        "strideW": stride[1],
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
        **activation(rng),
        **({"depthMultiplier": out // channels} if depthwise else {}),
    }
    return Case(
        kind, [data, kernel, bias], [result], "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", values, 3
    )


@cases("FULLY_CONNECTED")
def fully_connected(rng: Rng, kind: str) -> Case:
    flavour = pick(rng, "int8", "int8", "uint8", "float32", "hybrid")
    dtype, kernel_dtype = ("float32", "int8") if flavour == "hybrid" else (flavour, flavour)
    batch, inputs, units = dims(rng, 3, 1, 9)
    keep = bool(rng.integers(2))
    data = codes(rng, [2, batch, inputs] if keep else [batch, inputs], dtype)
    kernel = T(weights(rng, [units, inputs], kernel_dtype), kernel_dtype)
    scales = [scale(rng) for _ in range(units if flavour == "int8" and units > 1 and rng.integers(2) else 1)]
    if kernel_dtype != "float32":
        kernel.scale, kernel.zero_point = scales, zero_point(rng, "uint8") if kernel_dtype == "uint8" else 0
    bias_dtype = "float32" if dtype == "float32" else "int32"
    bias = T(weights(rng, [units], bias_dtype), bias_dtype)
    if isinstance(data.scale, float):
        bias.scale = [data.scale * s for s in scales]
    result = codes(rng, [*([2] if keep else []), batch, units], dtype)
    if result.scale is not None:
        result.scale = scale(rng, 0.02, 3)
    values = {"keepNumDims": keep, **activation(rng)}
    inputs_ = [data, kernel, bias if rng.integers(3) else None]
    return Case(kind, inputs_, [result], "FullyConnectedOptions", values, 5 if flavour != "hybrid" else 3)


@cases("ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "MAXIMUM", "MINIMUM")
def binary(rng: Rng, kind: str) -> Case:
    fused = kind in ("ADD", "SUB", "MUL", "DIV")
    dtype = pick(rng, *(() if kind in ("DIV", "FLOOR_DIV") else CODES), "float32", "int32")
    shape = dims(rng, 4, 1, 5)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    first, second = (shape, narrow) if rng.integers(2) or kind in ("DIV", "FLOOR_DIV") else (narrow, shape)
    lhs, rhs, out = (codes(rng, d, dtype) for d in (first, second, shape))
    if kind in ("MAXIMUM", "MINIMUM"):
        rhs, out = like(lhs, second), like(lhs, shape)
    options = "MaximumMinimumOptions" if kind in ("MAXIMUM", "MINIMUM") else f"{kind.title().replace('_', '')}Options"
    values: dict[str, Any] = activation(rng) if fused and dtype != "int32" else {}
    if kind in ("ADD", "SUB"):
        values["potScaleInt16"] = False
    divisor = random_numbers(rng, second, dtype)
    divisor[divisor == 0] = 1
    return Case(kind, [lhs, rhs], [out], options, values, 2 if dtype in CODES else 1, (), {1: divisor})


@cases("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(rng: Rng, kind: str) -> Case:
    dtype = pick(rng, *CODES, "float32")
    batch, height, width, channels = dims(rng, 4, 1, 9)
    kernel = [int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))]
    stride, padding = dims(rng, 2, 1, 4), int(rng.integers(2))
    data = codes(rng, [batch, height, width, channels], dtype)
    rows, columns = (windowed(d, k, s, 1, padding) for d, k, s in zip((height, width), kernel, stride, strict=True))
    values = {"padding": padding, "strideH": stride[0], "strideW": stride[1], **activation(rng)}
    values |= {"filterHeight": kernel[0], "filterWidth": kernel[1]}
    return Case(kind, [data], [like(data, [batch, rows, columns, channels])], "Pool2DOptions", values, 2)


@cases("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
def reduce(rng: Rng, kind: str) -> Case:
    dtype = pick(rng, *(() if kind == "SUM" else CODES), "float32", *(() if kind == "MEAN" else ("int32",)))
    shape = dims(rng, 4, 1, 8)
    axes = sorted(int(a) for a in rng.choice(4, int(rng.integers(1, 4)), replace=False))
    keep = bool(rng.integers(2))
    kept = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
    data = codes(rng, shape, dtype)
    out = codes(rng, kept, dtype) if kind == "MEAN" and rng.integers(4) else like(data, kept)
    negative = [a - 4 if rng.integers(2) else a for a in axes]
    inputs = [data, T(np.array(negative, np.int32), "int32")]
    return Case(kind, inputs, [out], "ReducerOptions", {"keepDims": keep}, 2 if dtype in CODES else 1)


@cases("ARG_MAX", "ARG_MIN")
def arg(rng: Rng, kind: str) -> Case:
    dtype, index = pick(rng, *CODES, "float32"), pick(rng, "int32", "int64")
    shape, axis = dims(rng, 3), int(rng.integers(-3, 3))
    out = T([d for i, d in enumerate(shape) if i != axis % 3], index)
    options = f"{kind.title().replace('_', '')}Options"
    return Case(
        kind,
        [codes(rng, shape, dtype), integers(axis)],
        [out],
        options,
        {"outputType": 2 if index == "int32" else 4},
        2,
    )


@cases("SOFTMAX")
def softmax(rng: Rng, kind: str) -> Case:
    dtype, shape = pick(rng, *CODES, "float32"), dims(rng, int(rng.integers(1, 5)), 1, 12)
    data = codes(rng, shape, dtype)
    if dtype == "float32":
        out = T(shape, dtype)
    else:
        data.scale = scale(rng, 1e-3, 1)
        out = T(shape, dtype, 1 / 256, -128 if dtype == "int8" else 0)
    beta = float(np.float32(rng.choice([1.0, 0.5, 2.0, rng.uniform(0.1, 3)])))
    return Case(kind, [data], [out], "SoftmaxOptions", {"beta": beta}, 2)


@cases("LOGISTIC", "TANH")
def curve(rng: Rng, kind: str) -> Case:
    dtype, shape = pick(rng, *CODES, "float32"), [256, int(rng.integers(1, 3))]
    steps = 256 if kind == "LOGISTIC" else 128
    lowest = {"LOGISTIC": {"int8": -128, "uint8": 0}, "TANH": {"int8": 0, "uint8": 128}}[kind]
    out = T(shape, dtype) if dtype == "float32" else T(shape, dtype, 1 / steps, lowest[dtype])
    return Case(kind, [codes(rng, shape, dtype)], [out], version=2)


@cases("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH")
def clamp(rng: Rng, kind: str) -> Case:
    """Numbers around the bounds."""
    dtype, shape = pick(rng, *CODES, "float32"), dims(rng, 3, 1, 9)
    version = 2 if kind in ("RELU", "RELU6") else 1
    numbers = {0: random_numbers(rng, shape, dtype) / np.float32(rng.choice([1, 4]))} if dtype == "float32" else {}
    options = "HardSwishOptions" if kind == "HARD_SWISH" else ""
    data, out = codes(rng, shape, dtype), codes(rng, shape, dtype)
    return Case(kind, [data], [out], options, {}, version, (), numbers)


@cases("ABS", "EXP", "FLOOR", "LOG", "NEG", "RSQRT", "SQRT")
def float_function(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 3, 1, 9)
    numbers = random_numbers(rng, shape, "float32")
    numbers = np.abs(numbers) + np.float32(0.1) if kind in ("LOG", "RSQRT", "SQRT") else numbers
    if kind == "NEG":
        dtype = pick(rng, "float32", "int32", "int64")
        numbers = numbers.astype(dtype)
        return Case(kind, [T(shape, dtype)], [T(shape, dtype)], custom_inputs={0: numbers})
    return Case(kind, [T(shape, "float32")], [T(shape, "float32")], custom_inputs={0: numbers})


@cases("QUANTIZE")
def quantize(rng: Rng, kind: str) -> Case:
    shape, source = dims(rng, 2, 1, 20), pick(rng, "float32", *CODES)
    return Case(kind, [codes(rng, shape, source)], [codes(rng, shape, pick(rng, *CODES))], "QuantizeOptions", {}, 2)


@cases("DEQUANTIZE")
def dequantize(rng: Rng, kind: str) -> Case:
    shape, source = dims(rng, 2, 1, 20), pick(rng, *CODES, "int16")
    return Case(kind, [codes(rng, shape, source)], [T(shape, "float32")], "DequantizeOptions", {}, 3)


@cases("CAST")
def cast(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 3)
    source, target = (pick(rng, "float32", "int32", "int64", "int8", "uint8") for _ in range(2))
    numbers = rng.integers(0, 100, shape).astype(source)
    if source == "float32":
        numbers = (numbers + rng.random(shape)).astype(np.float32)
    return Case(kind, [T(shape, source)], [T(shape, target)], "CastOptions", {}, 1, (), {0: numbers})
