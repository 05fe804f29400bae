"""The closed list of formulas, each written in numpy from its definition; a claim that names another formula is not
checked.

A formula takes arrays and the parameters of its row, and returns arrays. Integers wrap in their type unless the
definition says otherwise. Sources: gemmlowp's fixed-point definitions, TFLite's 8-bit quantization specification, and
the definitions in docs/operators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from relay.runtime.memory import Array

Parameters = Mapping[str, Any]
Formula: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"
HIGHEST = (1 << 31) - 1


def wrapped(value: Array) -> Array:
    """The int64 array modulo 2^32, as int32."""
    return value.astype(np.int64).astype(np.int32)


def doubling_high(a: Array, b: Array) -> Array:
    """floor((2 a b + 2^31) / 2^32), at most 2^31 - 1."""
    return np.minimum((a.astype(np.int64) * b.astype(np.int64) + (1 << 30)) >> 31, HIGHEST)


def divided_by_power(x: Array, exponent: Array) -> Array:
    """x / 2^exponent to the nearest integer, halves away from zero."""
    x, exponent = x.astype(np.int64), np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponent) >> 1
    magnitude = (np.abs(x) + half) >> exponent
    return np.where(x < 0, -magnitude, magnitude)


def fixed_point_multiply(p: Parameters, x: Array, multiplier: Array, shift: Array) -> Array:
    multiplier, shift = along(multiplier, p, x.ndim).astype(np.int64), along(shift, p, x.ndim).astype(np.int64)
    wide, rounding = x.astype(np.int64), p["rounding"]
    if rounding == "tflite":
        shifted = wrapped(wide << np.maximum(shift, 0))
        return wrapped(divided_by_power(doubling_high(shifted, multiplier), np.maximum(-shift, 0)))
    product, right = wide * multiplier, 31 - shift
    half = np.int64(1) << (right - 1)
    if rounding in ("tflite_single", "upward"):
        return wrapped((product + half) >> right)
    magnitude = (np.abs(product) + half) >> right
    return wrapped(np.where(product < 0, -magnitude, magnitude))


def along(vector: Array, p: Parameters, rank: int) -> Array:
    """Reshape a vector so that it lies along the axis that the formula's parameter `axis` names, and broadcasts along
    the other axes of a tensor of rank `rank`."""
    if vector.ndim != 1:
        return vector
    axis = int(p["axis"]) % rank
    return vector.reshape([-1 if each == axis else 1 for each in range(rank)])


def reciprocal(p: Parameters, x: Array) -> tuple[Array, Array]:
    """Return (mantissa, headroom) of 1 / x for positive x: headroom h is the number of leading zeros of x; mantissa is
    1 / (2 d) in Q0.31, where d = x * 2^(h - 32), by gemmlowp's three Newton-Raphson steps from 48/17 - 32/17 d."""
    wide = x.astype(np.int64)
    bits = np.frexp(wide.astype(np.float64))[1].astype(np.int64)
    headroom = 32 - bits
    fraction = (wide << headroom) - (1 << 31)
    half = (fraction + HIGHEST + 1) >> 1  # (fraction + one + 1) / 2: neither is negative
    estimate = 1515870810 + doubling_high(half, np.asarray(-1010580540))
    for _ in range(3):
        error = (1 << 29) - doubling_high(half, estimate)
        estimate = estimate + np.clip(doubling_high(estimate, error) << 2, -HIGHEST - 1, HIGHEST)
    return wrapped(np.clip(estimate << 1, -HIGHEST - 1, HIGHEST)), wrapped(headroom)


class Undefined(Exception):
    """Raised, with the reason, where a formula has no defined result for its inputs."""


def cast(p: Parameters, x: Array) -> Array:
    """Cast: integers wrap; floats are truncated to integers, and not-a-number gives 0. Raises Undefined if a float is
    out of the integer type's range."""
    to = np.dtype(p["dtype"])
    if x.dtype.kind == "f" and to.kind in "iu":
        info = np.iinfo(to)
        cut = np.trunc(np.where(np.isnan(x), 0, x).astype(np.float64))
        if cut.size and (cut.min() < float(info.min) or cut.max() >= float(info.max) + 1):
            raise Undefined(f"casts floats to {to} that are beyond it, where a cast is not defined")
        return cut.astype(np.int64).astype(to) if to != np.uint64 else cut.astype(to)
    return x.astype(to)


def rounded(p: Parameters, x: Array) -> Array:
    """Round to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), np.zeros_like(x))


def clip(p: Parameters, x: Array) -> Array:
    return np.clip(x, np.asarray(p["a_min"], x.dtype), np.asarray(p["a_max"], x.dtype))


def lookup(p: Parameters, codes: Array, table: Array) -> Array:
    """Look up quantized values in a table whose first element belongs to the type's smallest value."""
    return table[codes.astype(np.int64) - int(np.iinfo(codes.dtype).min)]


def convolution(p: Parameters, data: Array, kernel: Array) -> Array:
    """Convolution of NHWC data with coefficients [output, row, column, input]; with the parameter `depthwise`, each
    output channel reads one input channel."""
    (top, left, bottom, right), (sy, sx), (dy, dx) = p["padding"], p["strides"], p["dilation"]
    centred = np.pad(centred_data(p, data), ((0, 0), (top, bottom), (left, right), (0, 0)))
    _, kh, kw, _ = kernel.shape
    rows = (centred.shape[1] - (kh - 1) * dy - 1) // sy + 1
    columns = (centred.shape[2] - (kw - 1) * dx - 1) // sx + 1
    exact = exact_dtype(kernel, centred)
    centred, kernel = centred.astype(exact), kernel.astype(exact)
    total = np.zeros((data.shape[0], rows, columns, kernel.shape[0]), exact)
    for i in range(kh):
        for j in range(kw):
            cell = centred[:, i * dy : i * dy + (rows - 1) * sy + 1 : sy, j * dx : j * dx + (columns - 1) * sx + 1 : sx]
            if p.get("depthwise"):
                repeated = np.repeat(cell, kernel.shape[0] // cell.shape[3], axis=3)
                total += repeated * kernel[:, i, j, 0]
            else:
                total += cell @ kernel[:, i, j, :].T
    return total if data.dtype.kind == "f" else total.astype(np.int64)


def centred_data(p: Parameters, data: Array) -> Array:
    """Quantized data minus their zero point as int64; floats unchanged."""
    return data if data.dtype.kind == "f" else data.astype(np.int64) - int(p.get("input_zero_point") or 0)


def exact_dtype(kernel: Array, data: Array) -> np.dtype[Any]:
    """A type in which sums of products of these integers are exact (float32, float64 or int64); for floats float64."""
    if data.dtype.kind == "f":
        return np.dtype(np.float64)
    largest = int(np.abs(data).max(initial=0))
    bound = largest * int(np.abs(kernel.astype(np.int64)).reshape(kernel.shape[0], -1).sum(axis=1).max(initial=1))
    return np.dtype(np.float32 if bound < 1 << 24 else np.float64 if bound < 1 << 53 else np.int64)


def dense(p: Parameters, data: Array, kernel: Array) -> Array:
    """data @ kernel.T, where the kernel is [output, input]."""
    centred = centred_data(p, data)
    exact = exact_dtype(kernel, centred)
    total = centred.astype(exact) @ kernel.reshape(kernel.shape[0], -1).astype(exact).T
    return total if data.dtype.kind == "f" else total.astype(np.int64)


def windows(p: Parameters, data: Array, outside: float) -> tuple[list[Array], Array]:
    """Return a list and an array. The list has, for each cell of a pooling window, an array of the elements of NHWC
    data that lie under the cell at each window position, `outside` in the padding. The array has the number of cells
    inside the data at each window position."""
    (kh, kw), (sy, sx) = p["pool_size"], p.get("strides") or (1, 1)
    top, left, bottom, right = p.get("padding") or (0, 0, 0, 0)
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    wide = np.float64 if data.dtype.kind == "f" else np.int64
    padded = np.pad(data.astype(wide), around, constant_values=outside)
    inside = np.pad(np.ones((1, *data.shape[1:3], 1), np.int64), around)
    rows, columns = (padded.shape[1] - kh) // sy + 1, (padded.shape[2] - kw) // sx + 1
    cells: list[Array] = []
    count = np.zeros((1, rows, columns, 1), np.int64)
    for i in range(kh):
        for j in range(kw):
            y, x = slice(i, i + (rows - 1) * sy + 1, sy), slice(j, j + (columns - 1) * sx + 1, sx)
            cells.append(padded[:, y, x])
            count += inside[:, y, x]
    return cells, count


def avg_pool(p: Parameters, data: Array) -> Array:
    """The mean of each window; for integers to the nearest integer, halves away from zero."""
    cells, count = windows(p, data, 0)
    total, count = sum(cells, np.zeros_like(cells[0])), np.maximum(count, 1)
    if data.dtype.kind == "f":
        return total / count
    magnitude = (np.abs(total) + count // 2) // count
    return np.where(total < 0, -magnitude, magnitude)


def max_pool(p: Parameters, data: Array) -> Array:
    lowest = -np.inf if data.dtype.kind == "f" else int(np.iinfo(data.dtype).min)
    return np.maximum.reduce(windows(p, data, lowest)[0])


def reduced(combine: np.ufunc) -> Formula:
    """A formula that reduces its operand with `combine` along the axes that its parameter `axis` lists (without it, all
    axes); with `exclude`, along all other axes."""

    def formula(p: Parameters, x: Array) -> Array:
        named = {axis % x.ndim for axis in p.get("axis") or range(x.ndim)}
        axes = tuple(axis for axis in range(x.ndim) if (axis in named) != bool(p.get("exclude") and p.get("axis")))
        return combine.reduce(x, axis=axes, keepdims=bool(p.get("keepdims")), dtype=x.dtype)

    return formula


def strided_slice(p: Parameters, x: Array) -> Array:
    strides = list(p.get("strides") or [1] * len(p["begin"]))
    axes = list(p.get("axes") or range(len(p["begin"])))
    cuts = [slice(None)] * x.ndim
    for axis, begin, end, stride in zip(axes, p["begin"], p["end"], strides, strict=True):
        cuts[axis] = slice(begin, end, stride)
    return x[tuple(cuts)]


def transpose(p: Parameters, x: Array) -> Array:
    return x.transpose(p["axes"]) if p.get("axes") else x.transpose()


def softmax(p: Parameters, x: Array) -> Array:
    """exp(beta (x - max)) / sum, in float64."""
    wide = x.astype(np.float64)
    powers = np.exp(float(p["beta"]) * (wide - wide.max(axis=int(p["axis"]), keepdims=True)))
    return powers / powers.sum(axis=int(p["axis"]), keepdims=True)


def extreme(find: Callable[..., Array]) -> Formula:
    """A formula for the index along one axis of the largest or smallest element, the first among equal ones; `find` is
    `np.argmax` or `np.argmin`."""

    def formula(p: Parameters, x: Array) -> Array:
        (axis,) = p["axis"]
        return np.expand_dims(find(x, axis), axis) if p.get("keepdims") else find(x, axis)

    return formula


def take(p: Parameters, x: Array, indices: Array) -> Array:
    """Elements at `indices` along the parameter `axis`, or of the flattened array if there is no such parameter;
    indices out of range are clamped, or wrap, as the parameter `mode` says."""
    rows = x.reshape(-1) if p.get("axis") is None else x
    mode = "wrap" if p["mode"] == "wrap" else "clip"
    return np.take(rows, indices.astype(np.int64), axis=int(p.get("axis") or 0), mode=mode)


def resize(p: Parameters, x: Array) -> Array:
    """Resize NHWC images: `linear` is TFLite's reference RESIZE_BILINEAR in float32 (for integers 0.5 is added and the
    sum truncated), `nearest_neighbor` its RESIZE_NEAREST_NEIGHBOR."""
    if p["method"] == "linear" and x.dtype.kind == "i":
        return resize_codes(p, x)
    one, half = np.float32(1), np.float32(0.5)

    def place(size: int, out: int) -> tuple[Array, Array, Array]:
        # for each output position: the indices of the elements below and above, and the weight of the one above
        cornered = bool(p.get("align_corners")) and out > 1
        scale = np.float32(size - 1) / np.float32(out - 1) if cornered else np.float32(size) / np.float32(out)
        at = np.arange(out, dtype=np.float32)
        at = (at + half) * scale - half if p.get("half_pixel_centers") else at * scale
        if p["method"] != "linear":
            centre = (np.arange(out, dtype=np.float32) + half) * scale if p.get("half_pixel_centers") else at
            near = np.floor(centre + half) if p.get("align_corners") else np.floor(centre)
            near = np.clip(near, 0, size - 1).astype(np.int64)
            return near, near, np.zeros(out, np.float32)
        low = np.maximum(np.floor(at).astype(np.int64), 0)
        return low, np.minimum(np.ceil(at).astype(np.int64), size - 1), at - low.astype(np.float32)

    (y0, y1, dy), (x0, x1, dx) = (place(n, out) for n, out in zip(x.shape[1:3], p["size"], strict=True))
    if p["method"] != "linear":
        return x[:, y0][:, :, x0]
    wide, dy, dx = x.astype(np.float32), dy[:, None, None], dx[:, None]
    total = wide[:, y0][:, :, x0] * (one - dy) * (one - dx) + wide[:, y1][:, :, x0] * dy * (one - dx)
    total = total + wide[:, y0][:, :, x1] * (one - dy) * dx + wide[:, y1][:, :, x1] * dy * dx
    return total if x.dtype.kind == "f" else np.trunc(total + half)


def resize_codes(p: Parameters, x: Array) -> Array:
    """Linear resize of signed integers: TFLite's reference RESIZE_BILINEAR in 10-bit fixed point."""

    def place(size: int, out: int) -> tuple[Array, Array, Array]:
        cornered = bool(p.get("align_corners")) and out > 1
        above, below = (size - 1, out - 1) if cornered else (size, out)
        scale = (1024 * above + below // 2) // below
        at = np.arange(out) * scale + (scale // 2 - 512 if p.get("half_pixel_centers") else 0)
        low = np.maximum(np.trunc(at / 1024).astype(np.int64), 0)
        return low, np.minimum(np.trunc((at + 1023) / 1024).astype(np.int64), size - 1), at - 1024 * low

    (y0, y1, dy), (x0, x1, dx) = (place(n, out) for n, out in zip(x.shape[1:3], p["size"], strict=True))
    wide, dy, dx = x.astype(np.int64), dy[:, None, None], dx[:, None]
    upper = wide[:, y0][:, :, x0] * (1024 - dx) + wide[:, y0][:, :, x1] * dx
    lower = wide[:, y1][:, :, x0] * (1024 - dx) + wide[:, y1][:, :, x1] * dx
    total = upper * (1024 - dy) + lower * dy
    magnitude = (np.abs(total) + (1 << 19)) >> 20
    return np.where(total < 0, -magnitude, magnitude)


def plain(operation: Callable[..., Array]) -> Formula:
    """A formula that applies a numpy operation without parameters to arrays that broadcast, and computes in the arrays'
    type."""

    def formula(p: Parameters, *operands: Array) -> Array:
        return operation(*operands)

    return formula


def of_floats(operation: Callable[[Array], Array]) -> Formula:
    """A formula that applies a function of one float array in float64."""

    def formula(p: Parameters, x: Array) -> Array:
        return operation(x.astype(np.float64))

    return formula


def divide(p: Parameters, a: Array, b: Array) -> Array:
    """Division; integers are truncated towards zero, and division by 0 gives 0."""
    if a.dtype.kind == "f":
        return a / b
    return np.where(b == 0, 0, np.trunc(a.astype(np.float64) / np.where(b == 0, 1, b)))


def bias_add(p: Parameters, x: Array, bias: Array) -> Array:
    return x + along(bias, p, x.ndim)


def reshape(p: Parameters, x: Array) -> Array:
    return x.reshape(p["newshape"])


def concatenate(p: Parameters, *parts: Array) -> Array:
    return np.concatenate(parts, axis=int(p["axis"]))


def layer_norm(p: Parameters, x: Array, gamma: Array, beta: Array) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta along an axis, in float64."""
    wide, axis = x.astype(np.float64), int(p["axis"])
    centred = wide - wide.mean(axis=axis, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + float(p["epsilon"]))
    normal = normal * along(gamma, p, x.ndim) if p.get("scale", True) else normal
    return normal + along(beta, p, x.ndim) if p.get("center", True) else normal


def matrices(p: Parameters, a: Array, b: Array) -> Array:
    """a @ b for stacks of matrices, each transposed first if its parameter says so; zero points are subtracted from
    integers."""
    a, b = centred_data(p, a), centred_data({"input_zero_point": p.get("kernel_zero_point")}, b)
    a, b = a.swapaxes(-1, -2) if p.get("transpose_a") else a, b.swapaxes(-1, -2) if p.get("transpose_b") else b
    return a.astype(np.float64) @ b.astype(np.float64)  # exact for quantized values: sums stay below 2^53


def gather_nd(p: Parameters, x: Array, indices: Array) -> Array:
    """x[indices[..., :]], with indices clamped to the valid range."""
    axes = np.moveaxis(indices.astype(np.int64), -1, 0)
    return x[tuple(np.clip(each, 0, size - 1) for each, size in zip(axes, x.shape, strict=False))]


PLAIN = """
    abs add ceil equal floor greater left_shift less logical_and maximum minimum multiply negative right_shift subtract
    where
    """.split()
"""The formulas that are numpy's functions of the same name."""

FORMULAS: Mapping[str, Formula] = {
    **{name: plain(getattr(np, name)) for name in PLAIN},
    **{name: of_floats(getattr(np, name)) for name in ("exp", "log", "sqrt", "tanh")},
    "nn.conv2d": convolution,
    "nn.dense": dense,
    "nn.batch_matmul": matrices,
    "nn.layer_norm": layer_norm,
    "nn.bias_add": bias_add,
    "nn.avg_pool2d": avg_pool,
    "nn.max_pool2d": max_pool,
    "fixed_point_multiply": fixed_point_multiply,
    "rounding_doubling_high_multiply": plain(doubling_high),
    "rounding_right_shift": plain(divided_by_power),
    "fixed_point_reciprocal": reciprocal,
    "lookup": lookup,
    "clip": clip,
    "cast": cast,
    "round": rounded,
    "nn.softmax": softmax,
    "image.resize2d": resize,
    "argmax": extreme(np.argmax),
    "argmin": extreme(np.argmin),
    "take": take,
    "divide": divide,
    "rsqrt": of_floats(lambda x: 1 / np.sqrt(x)),
    "sigmoid": of_floats(lambda x: 1 / (1 + np.exp(-x))),
    "sum": reduced(np.add),
    "max": reduced(np.maximum),
    "min": reduced(np.minimum),
    "reshape": reshape,
    "transpose": transpose,
    "strided_slice": strided_slice,
    "concatenate": concatenate,
    "gather_nd": gather_nd,
}
"""The formulas that a saved file can claim its kernels compute, by the names under which the file stores them."""

POINTWISE = frozenset(
    {
        "nn.bias_add", "fixed_point_multiply", "rounding_doubling_high_multiply", "rounding_right_shift",
        "fixed_point_reciprocal", "lookup", "clip", "cast", "round", "add", "subtract", "multiply", "left_shift",
        "right_shift", "maximum", "minimum", "divide", "equal", "greater", "less", "logical_and", "where", "negative",
        "abs", "floor", "ceil", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid",
    }
)  # fmt: skip
"""The formulas that compute each element only from the elements at the same position."""


def call(formula: str, parameters: Parameters, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Evaluate a formula; return its results as a tuple."""
    with np.errstate(all="ignore"):
        found = FORMULAS[formula](parameters, *operands)
    return found if isinstance(found, tuple) else (found,)
