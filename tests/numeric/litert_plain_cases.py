"""Random small models of types that operators take beside those of their own cases: plain integers, truths, 16-bit
floats, weights of 4 bits, floats quantised at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numeric.litert_cases import Rng, activation, dims, integers, pick, scale, windowed
from tests.numeric.litert_models import Case, T, random_numbers
from tests.numeric.litert_quantised_cases import bias_of, ints16, kernel_of, options_of, quantised


def reduced(rng: Rng, shape: list[int]) -> tuple[T, list[int], dict[str, bool]]:
    """Axes, the shape without them, and whether they are kept."""
    axes = sorted(int(a) for a in rng.choice(len(shape), int(rng.integers(1, len(shape))), replace=False))
    keep = bool(rng.integers(2))
    kept = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
    return T(np.array(axes, np.int32), "int32"), kept, {"keepDims": keep}


@quantised("MEAN", types="int32 int64")
@quantised("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", types="bool")
def reduce(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 6)
    axes, kept, values = reduced(rng, shape)
    return Case(kind, [T(shape, dtype), axes], [T(kept, dtype)], "ReducerOptions", values, 2)


@quantised("ADD", "SUB", "MUL", "DIV", types="int32 int64")
def activated(rng: Rng, kind: str, dtype: str) -> Case:
    """Plain integers with a fused activation; LiteRT divides none of 64 bits."""
    shape = dims(rng, 3, 1, 6)
    wide = "int32" if kind == "DIV" else dtype
    numbers = {i: rng.integers(-9, 10, shape).astype(wide) for i in range(2)}
    numbers[1][numbers[1] == 0] = 3
    inputs = [T(shape, wide), T(shape, wide)]
    return Case(kind, inputs, [T(shape, wide)], options_of(kind), activation(rng), 1, (), numbers)


@quantised("FLOOR_DIV", "FLOOR_MOD", types="int8 int16")
def floored(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 3, 1, 6)
    numbers = {i: random_numbers(rng, shape, dtype) for i in range(2)}
    numbers[1][np.abs(numbers[1]) < 2] = 3
    inputs = [T(shape, dtype), T(shape, dtype)]
    return Case(kind, inputs, [T(shape, dtype)], options_of(kind), {}, 2, (), numbers)


@quantised("DIV", types="int16")
def divided(rng: Rng, kind: str, dtype: str) -> Case:
    """Scales for which LiteRT shifts by no more than 31."""
    shape = dims(rng, 3, 1, 6)
    lhs, rhs = ints16(rng, shape, dtype), ints16(rng, shape, dtype)
    ratio = float(np.asarray(lhs.scale)) / float(np.asarray(rhs.scale))
    numbers = {0: random_numbers(rng, shape, dtype), 1: rng.integers(1, 64, shape).astype(dtype)}
    numbers[1] *= rng.choice([-1, 1], shape).astype(dtype)
    out = T(shape, dtype, ratio / scale(rng, 32, 256))
    return Case(kind, [lhs, rhs], [out], "DivOptions", activation(rng), 2, (), numbers)


@quantised("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", types="int16")
def compare(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 3)
    numbers = {i: rng.integers(-4, 5, shape).astype(dtype) for i in range(2)}
    steps = [scale(rng, 1e-3, 1e-2)] * 2 if rng.integers(2) else [0.01, 0.02]
    inputs = [T(shape, dtype, step) for step in steps]
    return Case(kind, inputs, [T(shape, "bool")], options_of(kind), {}, 2, (), numbers)


@quantised("CAST", types="bool float16 saturated")
def cast(rng: Rng, kind: str, dtype: str) -> Case:
    """To and from truths and 16-bit floats; of floats out of an integer's range."""
    shape = dims(rng, 3)
    if dtype == "saturated":
        numbers = (rng.standard_normal(shape) * 10.0 ** rng.integers(0, 12)).astype(np.float32)
        target = pick(rng, "int8", "uint8", "int16", "int32")
        return Case(kind, [T(shape, "float32")], [T(shape, target)], "CastOptions", {}, 5, (), {0: numbers})
    other = pick(rng, "float32", "int32", "int64", "int8", "uint8", "int16", dtype)
    source, target = (dtype, other) if rng.integers(2) else (other, dtype)
    numbers = rng.integers(0, 3, shape).astype(source)
    return Case(kind, [T(shape, source)], [T(shape, target)], "CastOptions", {}, 5, (), {0: numbers})


@quantised("DEQUANTIZE", types="float16")
def dequantize(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 2, 1, 20)
    numbers = rng.standard_normal(shape).astype(np.float16)
    data = T(numbers if rng.integers(2) else shape, dtype)
    return Case(kind, [data], [T(shape, "float32")], "DequantizeOptions", {}, 3, (), {0: numbers})


@quantised("GATHER", types="int16 batches")
def gather(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 4, 1, 5)
    batches = int(rng.integers(1, 3)) if dtype == "batches" else 0
    axis = int(rng.integers(batches, 4))
    wanted = [*shape[:batches], *dims(rng, int(rng.integers(0, 3)), 1, 4)]
    index = pick(rng, "int32", "int64", "int16") if batches else "int16"
    indices = rng.integers(0, shape[axis], wanted).astype(index)
    out = [*shape[:axis], *wanted[batches:], *shape[axis + 1 :]]
    data = pick(rng, "float32", "int32", "uint8")
    values = {"axis": axis - 4 if rng.integers(2) else axis, "batchDims": batches}
    return Case(kind, [T(shape, data), T(wanted, index)], [T(out, data)], "GatherOptions", values, 7, (), {1: indices})


@quantised("GATHER_ND", types="int16")
def gather_nd(rng: Rng, kind: str, dtype: str) -> Case:
    shape, depth, wanted = dims(rng, 3), int(rng.integers(1, 4)), dims(rng, int(rng.integers(1, 3)), 1, 4)
    indices = np.stack([rng.integers(0, shape[i], wanted) for i in range(depth)], -1).astype(dtype)
    inputs = [T(shape, "float32"), T([*wanted, depth], dtype)]
    return Case(kind, inputs, [T([*wanted, *shape[depth:]], "float32")], "GatherNdOptions", {}, 5, (), {1: indices})


@quantised("PAD", "PADV2", types="narrow")
def pad(rng: Rng, kind: str, dtype: str) -> Case:
    """Widths of 8 or 16 bits."""
    shape, narrow = dims(rng, 3, 1, 5), pick(rng, "int8", "int16")
    widths = rng.integers(0, 3, (3, 2)).astype(narrow)
    out = T([d + int(w.sum()) for d, w in zip(shape, widths, strict=True)], "float32")
    filler = [T(np.array([2.5], np.float32), "float32")] if kind == "PADV2" else []
    options = "PadOptions" if kind == "PAD" else "PadV2Options"
    return Case(kind, [T(shape, "float32"), T(widths, narrow), *filler], [out], options, {}, 5)


@quantised("RESIZE_NEAREST_NEIGHBOR", types="int32 bool")
def resize(rng: Rng, kind: str, dtype: str) -> Case:
    shape, size = dims(rng, 4, 1, 8), dims(rng, 2, 1, 12)
    align = bool(rng.integers(2))
    values = {"alignCorners": align, "halfPixelCenters": bool(rng.integers(2)) and not align}
    out = T([shape[0], *size, shape[3]], dtype)
    return Case(kind, [T(shape, dtype), integers(*size)], [out], "ResizeNearestNeighborOptions", values, 4)


@quantised("SCATTER_ND", types="bool")
def scatter_nd(rng: Rng, kind: str, dtype: str) -> Case:
    rows, places = dims(rng, 2, 1, 9)
    indices = rng.integers(0, rows, (places, 1)).astype(np.int32)
    inputs = [T([places, 1], "int32"), T([places, 2], dtype), integers(rows, 2)]
    return Case(kind, inputs, [T([rows, 2], dtype)], "ScatterNdOptions", {}, 1, (), {0: indices})


@quantised("SOFTMAX", types="unscaled")
def softmax(rng: Rng, kind: str, dtype: str) -> Case:
    """Of uint8 the output's scale is not looked at."""
    shape = dims(rng, 2, 1, 12)
    out = T(shape, "uint8", scale(rng), int(rng.integers(256)))
    return Case(kind, [T(shape, "uint8", scale(rng, 1e-3, 1), 7)], [out], "SoftmaxOptions", {"beta": 1.0}, 2)


@quantised("FAKE_QUANT", types="float32")
def fake_quant(rng: Rng, kind: str, dtype: str) -> Case:
    shape = dims(rng, 3, 1, 9)
    low, high = (float(np.float32(n)) for n in rng.uniform((-20, 0.1), (0, 20)))
    values = {"min": low, "max": high, "numBits": int(rng.integers(2, 17)), "narrowRange": bool(rng.integers(2))}
    return Case(kind, [T(shape, dtype)], [T(shape, dtype)], "FakeQuantOptions", values, 1)


@quantised("EMBEDDING_LOOKUP", types="float32 int8")
def embedding_lookup(rng: Rng, kind: str, dtype: str) -> Case:
    shape, count = dims(rng, 3, 1, 6), int(rng.integers(1, 9))
    table = T(random_numbers(rng, shape, dtype), dtype, 0.1 if dtype == "int8" else None)
    places = rng.integers(0, shape[0], count).astype(np.int32)
    out = T([count, *shape[1:]], dtype, table.scale)
    return Case(kind, [T([count], "int32"), table], [out], "", {}, 1, (), {0: places})


@quantised("EMBEDDING_LOOKUP", types="rows8 rows4 rows2 blocks4 blocks2")
def embedding_of_codes(rng: Rng, kind: str, dtype: str) -> Case:
    """Rows that become floats; LiteRT reads wrong ones where those of 2 and 4 bits do not end with a byte."""
    rows, bits = int(rng.integers(1, 9)), int(dtype[-1])
    columns = int(rng.integers(1, 9)) * (32 if dtype.startswith("blocks") else 8 // bits)
    codes = rng.integers(-1 << (bits - 1), 1 << (bits - 1), (rows, columns)).astype(np.int8)
    if dtype.startswith("blocks"):
        scales = T(rng.uniform(0.01, 0.1, (rows, columns // 32)).astype(np.float16), "float16")
        table = T(codes, f"int{bits}", blocks={"scales": scales, "blockSize": 32})
    else:
        table = T(codes, f"int{bits}", [scale(rng) for _ in range(rows if rng.integers(2) else 1)])
    places = rng.integers(0, rows, 5).astype(np.int32)
    return Case(kind, [T([5], "int32"), table], [T([5, columns], "float32")], "", {}, 5, (), {0: places})


@quantised("GATHER", types="int4")
def gather_of_codes(rng: Rng, kind: str, dtype: str) -> Case:
    """Of rows that end with a byte: LiteRT reads wrong ones of others."""
    rows, columns = dims(rng, 2, 1, 6)
    shape = rows, 2 * columns
    codes = rng.integers(-8, 8, shape).astype(np.int8)
    places = rng.integers(0, shape[0], 3).astype(np.int32)
    out = T([3, shape[1]], "int8", 0.1)
    return Case(kind, [T(codes, dtype, 0.1), T([3], "int32")], [out], "GatherOptions", {"axis": 0}, 7, (), {1: places})


@quantised("EXP", "LOG", "GELU", "SQRT", "RSQRT", types="steep")
def steep(rng: Rng, kind: str, dtype: str) -> Case:
    """Functions of 16-bit codes whose table's lines are too steep for 16 bits."""
    shape = [64]
    data, out = T(shape, "int16", scale(rng, 1e-4, 1.0)), T(shape, "int16", scale(rng, 1e-6, 1e-3))
    numbers = random_numbers(rng, shape, "int16")
    numbers = np.abs(numbers // 2).astype(np.int16) if kind.endswith("SQRT") else numbers
    options = options_of(kind) if kind in ("EXP", "GELU") else ""
    values = {"approximate": bool(rng.integers(2))} if kind == "GELU" else {}
    return Case(kind, [data], [out], options, values, 3 if kind == "RSQRT" else 2, (), {0: numbers})


def narrow_weights(rng: Rng, kernel: T, dtype: str = "int4") -> T:
    """The same tensor of weights between -7 and 7, packed two to a byte, or between -1 and 1, four to a byte."""
    assert isinstance(kernel.value, np.ndarray)
    most = 7 if dtype == "int4" else 1
    kernel.value, kernel.dtype = rng.integers(-most, most + 1, kernel.value.shape).astype(np.int8), dtype
    return kernel


@quantised("CONV_2D", "DEPTHWISE_CONV_2D", types="hybrid int4")
def convolution(rng: Rng, kind: str, dtype: str) -> Case:
    """Scales per channel; of CONV_2D also one."""
    depthwise, hybrid = kind == "DEPTHWISE_CONV_2D", dtype == "hybrid"
    (ky, kx), padding, stride = dims(rng, 2, 1, 4), int(rng.integers(2)), dims(rng, 2, 1, 3)
    height, width = (max(d, k) for d, k in zip(dims(rng, 2, 3, 9), (ky, kx), strict=True))
    batch, channels = dims(rng, 2, 1, 5)
    out = channels * int(rng.integers(1, 3)) if depthwise else int(rng.integers(2, 9))
    data = (
        T([batch, height, width, channels], "float32")
        if hybrid
        else ints16(rng, [batch, height, width, channels], "int8")
    )
    shape = [1, ky, kx, out] if depthwise else [out, ky, kx, channels]
    kernel = kernel_of(rng, shape, "int8", out, 3 * depthwise)
    if depthwise and hybrid:
        kernel.scale = [scale(rng) for _ in range(out)]
    if dtype == "int4":
        kernel = narrow_weights(rng, kernel)
    bias = T(random_numbers(rng, [out], "float32"), "float32") if hybrid else bias_of(rng, out, data, kernel)
    size = (windowed(*sizes, 1, padding) for sizes in zip((height, width), (ky, kx), stride, strict=True))
    shape = [batch, *size, out]
    result = T(shape, "float32") if hybrid else T(shape, "int8", scale(rng, 0.02, 1), 5)
    values: dict[str, Any] = {"padding": padding, "strideH": stride[0], "strideW": stride[1], **activation(rng)}
    values |= {"dilationHFactor": 1, "dilationWFactor": 1}
    values |= {"depthMultiplier": out // channels} if depthwise else {}
    options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    return Case(kind, [data, kernel, bias], [result], options, values, 6 if depthwise else 7)


@quantised("FULLY_CONNECTED", types="asymmetric int4 int2")
def fully_connected(rng: Rng, kind: str, dtype: str) -> Case:
    batch, depth, units = dims(rng, 3, 1, 12)
    scales = [scale(rng) for _ in range(units if rng.integers(2) else 1)]
    kernel = T(np.maximum(random_numbers(rng, [units, depth], "int8"), -127), "int8", scales)
    if dtype == "asymmetric":
        bias = T(random_numbers(rng, [units], "float32"), "float32") if rng.integers(3) else None
        values = activation(rng) | {"asymmetricQuantizeInputs": True}
        inputs = [T([batch, depth], "float32"), kernel, bias]
        return Case(kind, inputs, [T([batch, units], "float32")], "FullyConnectedOptions", values, 12)
    kernel = narrow_weights(rng, kernel, dtype)
    data = ints16(rng, [batch, depth], "int8")
    inputs = [data, kernel, bias_of(rng, units, data, kernel)]
    out = T([batch, units], "int8", scale(rng, 0.02, 1), -3)
    return Case(kind, inputs, [out], "FullyConnectedOptions", activation(rng), 12)


@quantised("FULLY_CONNECTED", types="blocks")
def of_blocks(rng: Rng, kind: str, dtype: str) -> Case:
    """Weights of 4 bits, with a scale for each block of 32; LiteRT's reference kernel has no formula for them, and its
    other one gives zeros where there are fewer than 4 units."""
    (rows, count), units = dims(rng, 2, 1, 9), int(rng.integers(4, 12))
    blocks = {"scales": T(rng.uniform(0.01, 0.1, (units, count)).astype(np.float16), "float16"), "blockSize": 32}
    kernel = T(rng.integers(-8, 8, (units, 32 * count)).astype(np.int8), "int4", blocks=blocks)
    bias = T(random_numbers(rng, [units], "float32"), "float32") if rng.integers(2) else None
    inputs, out = [T([rows, 32 * count], "float32"), kernel, bias], T([rows, units], "float32")
    kernels = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    return Case(kind, inputs, [out], "FullyConnectedOptions", version=12, kernels=kernels)


@quantised("BATCH_MATMUL", types="hybrid asymmetric")
def batch_matmul(rng: Rng, kind: str, dtype: str) -> Case:
    """LiteRT takes wrong scales where two leading dimensions are more than 1."""
    rows, depth, columns = dims(rng, 3, 1, 9)
    outer = [*[1] * int(rng.integers(0, 2)), *dims(rng, int(rng.integers(0, 2)), 1, 4)]
    adj_x, adj_y = bool(rng.integers(2)), bool(rng.integers(2))
    lhs = T([*outer, *((depth, rows) if adj_x else (rows, depth))], "float32")
    second = [*outer, *((columns, depth) if adj_y else (depth, columns))]
    rhs = T(np.maximum(random_numbers(rng, second, "int8"), -127), "int8", scale(rng))
    values = {"adjX": adj_x, "adjY": adj_y, "asymmetricQuantizeInputs": dtype == "asymmetric"}
    return Case(kind, [lhs, rhs], [T([*outer, rows, columns], "float32")], "BatchMatMulOptions", values, 4)
