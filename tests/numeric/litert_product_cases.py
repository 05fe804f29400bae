"""Random small models of quantised matrix products and transposed convolutions, of layers whose data is quantised at
run time, and of 16-bit softmax and curves."""

from __future__ import annotations

import numpy as np

from tests.numeric import litert_plain_cases, litert_recurrent_cases
from tests.numeric.litert_cases import Rng, activation, codes, dims, integers, scale
from tests.numeric.litert_function_cases import QUANTISED
from tests.numeric.litert_models import Case, T, random_numbers
from tests.numeric.litert_quantised_cases import bias_of, bias_type, ints16, kernel_of, quantised

__all__ = ["QUANTISED", "litert_plain_cases", "litert_recurrent_cases"]


@quantised("TRANSPOSE_CONV", types="int8 uint8 int16")
def transpose_conv(rng: Rng, kind: str, dtype: str) -> Case:
    (height, width), (ky, kx), (sy, sx) = dims(rng, 2, 2, 6), dims(rng, 2, 1, 5), dims(rng, 2, 1, 4)
    batch, channels, out = dims(rng, 3, 1, 5)
    padding = int(rng.integers(2))
    rows, columns = (
        size * stride - int(rng.integers(stride)) if padding == 0 else (size - 1) * stride + kernel
        for size, kernel, stride in ((height, ky, sy), (width, kx, sx))
    )
    data = ints16(rng, [batch, height, width, channels], dtype)
    kernel = kernel_of(rng, [out, ky, kx, channels], dtype, out, 0)
    shape = [batch, rows, columns, out]
    inputs: list[T] = [integers(*shape), kernel, data]
    if rng.integers(2):
        inputs.append(bias_of(rng, out, data, kernel))
    result = codes(rng, shape, dtype)
    result.scale = scale(rng, 0.05, 3)
    values = {"padding": padding, "strideH": sy, "strideW": sx, **activation(rng)}
    values |= bias_type(inputs[3]) if len(inputs) > 3 else {}
    return Case(kind, inputs, [result], "TransposeConvOptions", values, 3)


@quantised("BATCH_MATMUL", types="int8 int16")
def batch_matmul(rng: Rng, kind: str, dtype: str) -> Case:
    rows, depth, columns = dims(rng, 3, 1, 12)
    outer = dims(rng, int(rng.integers(0, 3)), 1, 4)
    others = [d if rng.integers(3) else 1 for d in outer]
    adj_x, adj_y = bool(rng.integers(2)), bool(rng.integers(2))
    lhs = ints16(rng, [*outer, *((depth, rows) if adj_x else (rows, depth))], dtype)
    second = [*others, *((columns, depth) if adj_y else (depth, columns))]
    rhs = ints16(rng, second, dtype)
    if rng.integers(2):
        rhs.value = random_numbers(rng, second, dtype)
    out = ints16(rng, [*outer, rows, columns], dtype)
    out.scale = scale(rng, 0.01, 2)
    values = {"adjX": adj_x, "adjY": adj_y}
    return Case(kind, [lhs, rhs], [out], "BatchMatMulOptions", values, 3)


@quantised("LOGISTIC", "TANH", types="int16")
def curve16(rng: Rng, kind: str, dtype: str) -> Case:
    step = 2.0 ** -int(rng.integers(10, 14)) if rng.integers(2) else scale(rng, 1e-5, 1e-2)
    shape = [64, int(rng.integers(1, 65))]
    return Case(kind, [T(shape, dtype, step)], [T(shape, dtype, 1 / 32768)], version=3)


@quantised("SOFTMAX", types="int16")
def softmax16(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, int(rng.integers(1, 5)), 1, 12)
    beta = float(np.float32(rng.choice([1.0, 0.5, 2.0, rng.uniform(0.1, 3)])))
    data = T(shape, dtype, scale(rng, 1e-5, 1e-3))
    return Case(kind, [data], [T(shape, dtype, 1 / 32768)], "SoftmaxOptions", {"beta": beta}, 3)


@quantised("SUM", types="uint8")
def total(rng: Rng, kind: str, dtype: str) -> Case:
    """Of uint8: as such LiteRT's reference reads all codes."""
    shape = dims(rng, 4, 1, 8)
    axes = sorted(int(a) for a in rng.choice(4, int(rng.integers(1, 4)), replace=False))
    keep = bool(rng.integers(2))
    kept = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
    inputs = [codes(rng, shape, dtype), T(np.array(axes, np.int32), "int32")]
    return Case(kind, inputs, [codes(rng, kept, dtype)], "ReducerOptions", {"keepDims": keep}, 2)


@quantised("FULLY_CONNECTED", types="hybrid")
def dynamic_range(rng: Rng, kind: str, dtype: str) -> Case:
    """Floats, quantised at run time, by weights of one scale or one for each unit."""
    batch, units, depth = dims(rng, 3, 1, 9)
    scales = [scale(rng) for _ in range(units if rng.integers(2) else 1)]
    kernel = T(np.maximum(random_numbers(rng, [units, depth], "int8"), -127), "int8", scales)
    bias = T(random_numbers(rng, [units], "float32"), "float32") if rng.integers(3) else None
    inputs = [T([batch, depth], "float32"), kernel, bias]
    version = 12 if len(scales) > 1 else 3
    return Case(kind, inputs, [T([batch, units], "float32")], "FullyConnectedOptions", activation(rng), version)
