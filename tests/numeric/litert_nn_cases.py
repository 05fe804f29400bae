"""Random small models of neural-network operators on floats: convolutions, products of matrices, slopes, norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.numeric.litert_cases import Rng, activation, cases, dims, integers, weights, windowed
from tests.numeric.litert_models import Case, T, random_numbers

LETTERS = "DHW"
OPTIMIZED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def bias(rng: Rng, out: int) -> list[T | None]:
    """A bias, perhaps."""
    return [T(weights(rng, [out], "float32"), "float32")] if rng.integers(3) else []


def spread(size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    """The size of the result of a transposed convolution: SAME (0) or VALID (1)."""
    return size * stride if padding == 0 else (size - 1) * stride + (kernel - 1) * dilation + 1


def named(prefix: str, numbers: Sequence[int], suffix: str = "") -> dict[str, int]:
    letters = LETTERS[len(LETTERS) - len(numbers) :]
    return {f"{prefix}{letter}{suffix}": number for letter, number in zip(letters, numbers, strict=True)}


@cases("TRANSPOSE_CONV")
def transpose_conv(rng: Rng, kind: str) -> Case:
    kernel, stride, size, padding = dims(rng, 2, 1, 5), dims(rng, 2, 1, 4), dims(rng, 2), int(rng.integers(2))
    batch, deep, wide = dims(rng, 3, 1, 5)
    shape = [batch, *(spread(*n, 1, padding) for n in zip(size, kernel, stride, strict=True)), wide]
    if padding == 0:  # SAME: any size that the strides lead to
        shape[1:3] = [max(n - int(rng.integers(s)), 1) for n, s in zip(shape[1:3], stride, strict=True)]
    data = T([batch, *size, deep], "float32")
    inputs = [integers(*shape), T(weights(rng, [wide, *kernel, deep], "float32"), "float32"), data, *bias(rng, wide)]
    values: dict[str, Any] = {"padding": padding, **named("stride", stride), **activation(rng)}
    return Case(kind, inputs, [T(shape, "float32")], "TransposeConvOptions", values, 4)


@cases("CONV_3D", "CONV_3D_TRANSPOSE")
def conv_3d(rng: Rng, kind: str) -> Case:
    transposed = kind == "CONV_3D_TRANSPOSE"
    kernel, stride, dilation = dims(rng, 3, 1, 4), dims(rng, 3, 1, 3), dims(rng, 3, 1, 3)
    padding, (batch, deep, wide) = int(rng.integers(2)), dims(rng, 3, 1, 4)
    size = dims(rng, 3, 1, 5)
    if not transposed:
        size = [max(n, (k - 1) * d + 1) for n, k, d in zip(size, kernel, dilation, strict=True)]
    data = T([batch, *size, deep], "float32")
    result = spread if transposed else windowed
    shape = [batch, *(result(*n, padding) for n in zip(size, kernel, stride, dilation, strict=True)), wide]
    values: dict[str, Any] = {"padding": padding, **named("stride", stride), **named("dilation", dilation, "Factor")}
    values |= activation(rng)
    channels = [wide, deep] if transposed else [deep, wide]
    taps = T(weights(rng, [*kernel, *channels], "float32"), "float32")
    inputs = [integers(*shape), taps, data] if transposed else [data, taps]
    return Case(kind, [*inputs, *bias(rng, wide)], [T(shape, "float32")], "Conv3DOptions", values)


@cases("BATCH_MATMUL")
def batch_matmul(rng: Rng, kind: str) -> Case:
    rows, inner, columns = dims(rng, 3, 1, 9)
    leading = dims(rng, int(rng.integers(0, 4)), 1, 4)
    left, right = ([n if rng.integers(3) else 1 for n in leading] for _ in range(2))
    adj_x, adj_y = (bool(n) for n in rng.integers(0, 2, 2))
    x = [*left, *((inner, rows) if adj_x else (rows, inner))]
    y = [*right, *((columns, inner) if adj_y else (inner, columns))]
    out = [*(max(a, b) for a, b in zip(left, right, strict=True)), rows, columns]
    rhs = T(random_numbers(rng, y, "float32") if rng.integers(2) else y, "float32")
    values = {"adjX": adj_x, "adjY": adj_y}
    return Case(kind, [T(x, "float32"), rhs], [T(out, "float32")], "BatchMatMulOptions", values, 3)


@cases("LEAKY_RELU", "ELU", "LOG_SOFTMAX", "L2_NORMALIZATION")
def row(rng: Rng, kind: str) -> Case:
    """There is no reference kernel of ELU."""
    shape = dims(rng, int(rng.integers(1, 5)), 1, 9)
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "LEAKY_RELU": ("LeakyReluOptions", {"alpha": float(np.float32(rng.uniform(-1, 2)))}),
        "LOG_SOFTMAX": ("LogSoftmaxOptions", {}),
        "L2_NORMALIZATION": ("L2NormOptions", {"fusedActivationFunction": 0}),
    }
    numbers = random_numbers(rng, shape, "float32") / np.float32(rng.choice([1, 30]))
    if kind == "L2_NORMALIZATION" and rng.integers(3) == 0:
        numbers[..., :] = 0
    out = [T(shape, "float32")]
    case = Case(kind, [T(shape, "float32")], out, *options.get(kind, ("", {})), custom_inputs={0: numbers})
    case.kernels = OPTIMIZED if kind == "ELU" else case.kernels
    return case


@cases("PRELU")
def prelu(rng: Rng, kind: str) -> Case:
    shape = dims(rng, int(rng.integers(1, 5)), 1, 9)
    alpha = [1 if rng.integers(2) else n for n in shape[int(rng.integers(len(shape))) :]]
    slopes = T(weights(rng, alpha, "float32"), "float32")
    return Case(kind, [T(shape, "float32"), slopes], [T(shape, "float32")])


@cases("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(rng: Rng, kind: str) -> Case:
    """The reference kernel leaves out the last channel of each window; TensorFlow and LiteRT's own choice do not."""
    shape = dims(rng, 4, 1, 9)
    bias, alpha, beta = (float(np.float32(n)) for n in rng.uniform((0.5, 1e-4, 0.25), (2, 0.1, 1.5)))
    values = {"radius": int(rng.integers(0, 6)), "bias": bias, "alpha": alpha, "beta": beta}
    case = Case(kind, [T(shape, "float32")], [T(shape, "float32")], "LocalResponseNormalizationOptions", values)
    case.kernels = OPTIMIZED
    return case


@cases("L2_POOL_2D")
def l2_pool(rng: Rng, kind: str) -> Case:
    batch, height, width, channels = dims(rng, 4, 1, 9)
    kernel = [int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))]
    stride, padding = dims(rng, 2, 1, 4), int(rng.integers(2))
    rows, columns = (windowed(d, k, s, 1, padding) for d, k, s in zip((height, width), kernel, stride, strict=True))
    values = {"padding": padding, "strideH": stride[0], "strideW": stride[1], **activation(rng)}
    values |= {"filterHeight": kernel[0], "filterWidth": kernel[1]}
    out = [T([batch, rows, columns, channels], "float32")]
    return Case(kind, [T([batch, height, width, channels], "float32")], out, "Pool2DOptions", values)


@cases("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(rng: Rng, kind: str) -> Case:
    """Boxes of a unit square, corners in any order; scores that differ. V5 without decay."""
    count, most = int(rng.integers(1, 40)), int(rng.integers(0, 12))
    numbers = [rng.uniform(0, 1, (count, 4)).astype(np.float32), rng.permutation(count).astype(np.float32) / count]
    bounds = [np.asarray(n, np.float32) for n in (rng.choice([0.0, 0.1, 0.4]), rng.uniform(-0.1, 0.6))]
    constants = [T(np.asarray(most, np.int32), "int32"), *(T(each, "float32") for each in bounds)]
    out = [T([most], "int32"), T([], "int32")]
    if kind == "NON_MAX_SUPPRESSION_V5":
        constants.append(T(np.asarray(0, np.float32), "float32"))
        out.insert(1, T([most], "float32"))
    options = f"NonMaxSuppressionV{kind[-1]}Options"
    given = [T([count, 4], "float32"), T([count], "float32"), *constants]
    return Case(kind, given, out, options, custom_inputs=dict(enumerate(numbers)))
