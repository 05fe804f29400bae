"""Random small models of one quantised operator each: `QUANTISED` has a row per kind and type of codes.

What LiteRT's reference kernels demand of scales and zero points is kept: 16-bit codes have no zero point, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numeric.litert_cases import Rng, activation, codes, dims, integers, like, pick, scale, windowed, zero_point
from tests.numeric.litert_models import Case, T, random_numbers

Make = Callable[[Rng, str, str], Case]
QUANTISED: dict[tuple[str, str], Make] = {}
"""By operator and type of codes."""


def quantised(*kinds: str, types: str) -> Callable[[Make], Make]:
    """Enter a function for these kinds and types."""

    def enter(make: Make) -> Make:
        QUANTISED.update({(kind, dtype): make for kind in kinds for dtype in types.split()})
        return make

    return enter


def options_of(kind: str) -> str:
    """The table of options of a kind: LEAKY_RELU has LeakyReluOptions."""
    return f"{kind.title().replace('_', '')}Options"


def ints16(rng: Rng, shape: list[int], dtype: str) -> T:
    """A tensor whose scale suits the width of its codes."""
    tensor = codes(rng, shape, dtype)
    if dtype == "int16":
        tensor.scale = scale(rng, 1e-5, 1e-2)
    return tensor


@quantised("RELU", "RELU6", types="int16")
def relu(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 3, 1, 9)
    return Case(kind, [ints16(rng, shape, dtype)], [ints16(rng, shape, dtype)], version=3)


@quantised("ADD", "SUB", "MUL", types="int16")
def binary(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 5)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    first, second = (shape, narrow) if rng.integers(2) else (narrow, shape)
    lhs, rhs, out = (ints16(rng, d, dtype) for d in (first, second, shape))
    values: dict[str, Any] = activation(rng)
    if kind == "MUL":
        out.scale = scale(rng, 1e-4, 1)
    elif (exponent := int(rng.integers(-12, -5))) % 2:
        values["potScaleInt16"] = bool(rng.integers(2))
    else:
        lhs, rhs = like(out, shape), like(out, shape)  # LiteRT aborts where these broadcast
        shift = int(rng.integers(0, 6))
        values["potScaleInt16"], out.scale = True, 2.0**exponent
        lhs.scale, rhs.scale = rng.permutation([2.0**exponent, 2.0 ** (exponent - shift)]).tolist()
    return Case(kind, [lhs, rhs], [out], options_of(kind), values, 2)


@quantised("MAXIMUM", "MINIMUM", types="int16")
def extreme(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 5)
    data = codes(rng, shape, dtype)
    return Case(kind, [data, like(data, [1, *shape[1:]])], [like(data, shape)], "MaximumMinimumOptions", {}, 3)


@quantised("CONCATENATION", types="int16")
def concatenation(rng: Rng, kind: str, dtype: str) -> Case:
    shape, other, axis = dims(rng, 3), int(rng.integers(1, 5)), int(rng.integers(3))
    first, second = codes(rng, shape, dtype), [other if i == axis else d for i, d in enumerate(shape)]
    whole = [d + other if i == axis else d for i, d in enumerate(shape)]
    inputs = [first, like(first, second)]
    return Case(kind, inputs, [like(first, whole)], "ConcatenationOptions", {"axis": axis}, 3)


@quantised("PAD", "PADV2", types="int16")
def pad(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 5)
    widths = rng.integers(0, 3, (4, 2)).astype(np.int32)
    data = codes(rng, shape, dtype)
    out = like(data, [d + int(w.sum()) for d, w in zip(shape, widths, strict=True)])
    filler = [like(data, random_numbers(rng, [1], dtype))] if kind == "PADV2" else []
    options = "PadOptions" if kind == "PAD" else "PadV2Options"
    return Case(kind, [data, T(widths, "int32"), *filler], [out], options, {}, 4)


@quantised("QUANTIZE", types="int16")
def quantize(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 2, 1, 20)
    pairs = ("float32 int16", "int16 int8", "int16 int16", "int8 int16", "uint8 int16", "int16 uint8")
    source, target = pick(rng, *pairs).split()
    return Case(kind, [ints16(rng, shape, source)], [ints16(rng, shape, target)], "QuantizeOptions", {}, 3)


@quantised("AVERAGE_POOL_2D", "MAX_POOL_2D", types="int16")
def pool(rng: Rng, kind: str, dtype: str) -> Case:
    batch, height, width, channels = dims(rng, 4, 1, 9)
    kernel = [int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))]
    stride, padding = dims(rng, 2, 1, 4), int(rng.integers(2))
    data = ints16(rng, [batch, height, width, channels], dtype)
    rows, columns = (windowed(d, k, s, 1, padding) for d, k, s in zip((height, width), kernel, stride, strict=True))
    values = {"padding": padding, "strideH": stride[0], "strideW": stride[1], **activation(rng)}
    values |= {"filterHeight": kernel[0], "filterWidth": kernel[1]}
    return Case(kind, [data], [like(data, [batch, rows, columns, channels])], "Pool2DOptions", values, 3)


@quantised("MEAN", "REDUCE_MAX", "REDUCE_MIN", types="int16")
def reduce(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 8)
    axes = sorted(int(a) for a in rng.choice(4, int(rng.integers(1, 4)), replace=False))
    keep = bool(rng.integers(2))
    kept = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
    data = codes(rng, shape, dtype)
    out = codes(rng, kept, dtype) if kind == "MEAN" and rng.integers(4) else like(data, kept)
    inputs = [data, T(np.array(axes, np.int32), "int32")]
    return Case(kind, inputs, [out], "ReducerOptions", {"keepDims": keep}, 3)


@quantised("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", types="int16")
def resize(rng: Rng, kind: str, dtype: str) -> Case:
    shape, size = dims(rng, 4, 1, 8), dims(rng, 2, 1, 12)
    align = bool(rng.integers(2))
    values = {"alignCorners": align, "halfPixelCenters": bool(rng.integers(2)) and not align}
    data = codes(rng, shape, dtype)
    out = like(data, [shape[0], *size, shape[3]])
    return Case(kind, [data, integers(*size)], [out], options_of(kind), values, 4)


def kernel_of(rng: Rng, shape: list[int], dtype: str, out: int, axis: int) -> T:
    """Weights of 8 bits for data of that type; per channel half of the time where that is allowed."""
    if dtype == "uint8":
        return T(random_numbers(rng, shape, "uint8"), "uint8", scale(rng), zero_point(rng, "uint8"))
    scales = [scale(rng) for _ in range(out if rng.integers(2) else 1)]
    return T(np.maximum(random_numbers(rng, shape, "int8"), -127), "int8", scales, 0, axis)


def bias_of(rng: Rng, out: int, data: T, kernel: T, only64: bool = False) -> T:
    """A bias of the product of the scales; of 16-bit data in 64 bits, sometimes in 32 unless `only64`."""
    dtype = "int32" if data.dtype != "int16" or (not only64 and rng.integers(4) == 0) else "int64"
    scales = np.atleast_1d(np.asarray(kernel.scale, np.float64)) * float(np.asarray(data.scale))
    return T(rng.integers(-5000, 5000, out).astype(dtype), dtype, [float(s) for s in scales])


def bias_type(bias: T | None) -> dict[str, int]:
    """16-bit layers must say so where their bias has 32 bits, else LiteRT reads it as 64."""
    return {"quantizedBiasType": {"int32": 2, "int64": 4}[bias.dtype]} if bias is not None else {}


@quantised("CONV_2D", "DEPTHWISE_CONV_2D", types="int16")
def convolution(rng: Rng, kind: str, dtype: str) -> Case:
    depthwise = kind == "DEPTHWISE_CONV_2D"
    (ky, kx), padding = dims(rng, 2, 1, 4), int(rng.integers(2))
    stride, dilation = dims(rng, 2, 1, 3), dims(rng, 2, 1, 3)
    if stride != [1, 1]:
        dilation = [1, 1]
    height, width = (max(d, (k - 1) * e + 1) for d, k, e in zip(dims(rng, 2, 3, 9), (ky, kx), dilation, strict=True))
    batch, channels = dims(rng, 2, 1, 5)
    out = channels * int(rng.integers(1, 3)) if depthwise else int(rng.integers(1, 20))
    data = ints16(rng, [batch, height, width, channels], dtype)
    kernel = kernel_of(rng, [1, ky, kx, out] if depthwise else [out, ky, kx, channels], dtype, out, 3 * depthwise)
    bias = bias_of(rng, out, data, kernel, depthwise)
    rows, columns = (
        windowed(*sizes, padding) for sizes in zip((height, width), (ky, kx), stride, dilation, strict=True)
    )
    result = T([batch, rows, columns, out], dtype, scale(rng, 1e-3, 0.1))
    values: dict[str, Any] = {
        "padding": padding,
        "strideH": stride[0],
        "strideW": stride[1],
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
        **activation(rng),
        **({"depthMultiplier": out // channels} if depthwise else bias_type(bias)),
    }
    options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    inputs = [data, kernel, bias]
    return Case(kind, inputs, [result], options, values, 5 if depthwise else 6)


@quantised("FULLY_CONNECTED", types="int16")
def fully_connected(rng: Rng, kind: str, dtype: str) -> Case:
    batch, inputs, units = dims(rng, 3, 1, 24)
    data = ints16(rng, [batch, inputs], dtype)
    kernel = kernel_of(rng, [units, inputs], dtype, units, 0)
    result = T([batch, units], dtype, scale(rng, 1e-3, 0.1))
    bias = bias_of(rng, units, data, kernel) if rng.integers(3) else None
    return Case(kind, [data, kernel, bias], [result], "FullyConnectedOptions", activation(rng) | bias_type(bias), 7)
