"""Numpy implementation of dense and 2D convolution, bias, and softmax, and helpers for layouts and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, int_values, to_numpy
from relay.dialects.element_types import wider_dtype
from relay.dialects.layout import Layout, steps
from relay.interpreters.arithmetic import Dtype
from relay.interpreters.elementwise import exp
from relay.interpreters.meaning import Meaning, Meanings, along, cell_slices, number, padded

PATCH_ELEMENTS = 1 << 23
"""The largest number of elements in one block of patches; it bounds the memory that a convolution takes."""
NHWC, OHWI = Layout.parse("NHWC"), Layout.parse("OHWI")


def exact_type(data: Array, kernel: Array) -> Dtype:
    """The fastest type in which `data @ kernel.T` is exact for these integers.

    No partial sum exceeds `max |data| * max over rows of sum |kernel|`; if that is below 2^24 (2^53), every partial sum
    is exact in float32 (float64), in whatever order BLAS adds. Otherwise it is int64, which wraps as the sums must.
    """
    largest = max((abs(int(v)) for v in (data.min(), data.max())), default=0) if data.size else 0
    row = int(np.abs(kernel.astype(np.int64)).sum(axis=1).max()) if kernel.size else 0
    bound = max(largest * row, largest, row)
    return np.dtype(np.float32 if bound < 1 << 24 else np.float64 if bound < 1 << 53 else np.int64)


def matrix_product(data: Array, kernel: Array, out: Dtype) -> Array:
    """`data @ kernel.T` in the type `out`; integers are exact and wrap, f16 is summed in f32."""
    if data.dtype.kind == "f":
        wide = np.result_type(data.dtype, np.float32)
        return (data.astype(wide) @ kernel.astype(wide).T).astype(out)
    exact = exact_type(data, kernel)
    product: Array = data.astype(exact) @ kernel.astype(exact).T
    return product.astype(np.int64).astype(out)


def centred(codes: Array, zero_point: int) -> Array:
    """Quantized values minus their zero point, as int32; floats unchanged."""
    return codes if codes.dtype.kind == "f" else codes.astype(np.int32) - np.int32(zero_point)


def in_layout(array: Array, source: Layout, target: Layout) -> Array:
    """Transpose a tensor from one layout to another; the result is contiguous, so that float sums do not depend on the
    source layout."""
    for kind, numbers in steps(array.shape, source, target):
        array = array.reshape(numbers) if kind == "reshape" else array.transpose(numbers)
    return np.ascontiguousarray(array)


def window_cells(
    padded: Array, window: tuple[int, int], strides: tuple[int, ...], dilation: tuple[int, ...] = (1, 1)
) -> Iterator[tuple[int, int, Array]]:
    """Yield, for each cell (i, j) of a window, i, j, and a view [n, rows, columns, c] of the elements of `padded` that
    lie under the cell at each window position."""
    sizes = zip(padded.shape[1:3], window, strides, dilation, strict=True)
    counts = [(size - (cells - 1) * apart - 1) // stride + 1 for size, cells, stride, apart in sizes]
    for i, j in np.ndindex(*window):
        yield i, j, padded[cell_slices((i, j), counts, strides, dilation)]


def convolve(op: relay.Conv2dBase, data: Array, kernel: Array) -> Array:
    """A 2D convolution of operands from which zero points are already subtracted, in any layout."""
    layout, out_layout = Layout.parse(op.data_layout.data), Layout.parse(op.result_layout.data)
    data = in_layout(data, layout, NHWC)
    separable = 1 < op.groups.value.data == data.shape[3]
    if not op.depthwise:
        kernel = in_layout(kernel, Layout.parse(op.kernel_layout.data), OHWI)
        if separable:
            groups, (outputs, height, width, _) = data.shape[3], kernel.shape
            kernel = kernel.reshape(groups, outputs // groups, height, width).transpose(2, 3, 0, 1)
    result = nhwc(op, data, np.ascontiguousarray(kernel), op.depthwise or separable)
    return in_layout(result, NHWC, out_layout)


def nhwc(op: relay.Conv2dBase, data: Array, kernel: Array, separable: bool) -> Array:
    """A 2D convolution of NHWC data with an OHWI kernel, or with an HWOI kernel if `separable` (each channel is
    convolved by itself). All layouts use this function, so that floats are added in the same order."""
    strides, dilation = int_values(op.strides), int_values(op.dilation)
    top, left, bottom, right = int_values(op.padding)
    image = padded(data, ((0, 0), (top, bottom), (left, right), (0, 0)))
    out = wider_dtype(dtype_of(op.out_dtype))
    if separable:
        return depthwise(image, kernel, strides, dilation, out)
    groups, outputs, depth = op.groups.value.data, kernel.shape[0], kernel.shape[3]
    step = outputs // groups
    parts = [
        dense_windows(
            image[..., g * depth : (g + 1) * depth], kernel[g * step : (g + 1) * step], strides, dilation, out
        )
        for g in range(groups)
    ]
    return parts[0] if groups == 1 else np.concatenate(parts, axis=-1)


def depthwise(padded: Array, kernel: Array, strides: tuple[int, ...], dilation: tuple[int, ...], out: Dtype) -> Array:
    """A depthwise convolution with an HWOI kernel by shifted multiply-adds in the result's type; integers wrap, f16 is
    computed in f32."""
    wide = np.result_type(out, np.float32) if out.kind == "f" else out
    padded, kernel = padded.astype(wide), kernel.astype(wide)
    multiplier = kernel.shape[3]
    if multiplier > 1:
        padded = np.repeat(padded, multiplier, axis=-1)
    flat = kernel.reshape(*kernel.shape[:2], -1)
    total: Array | None = None
    for i, j, cells in window_cells(padded, (flat.shape[0], flat.shape[1]), strides, dilation):
        product = cells * flat[i, j]
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None
    return total.astype(out, copy=False)


def dense_windows(
    padded: Array, kernel: Array, strides: tuple[int, ...], dilation: tuple[int, ...], out: Dtype
) -> Array:
    """A convolution with an OHWI kernel: patches times kernel matrix, for one block of rows at a time."""
    outputs, kh, kw, _ = kernel.shape
    matrix = kernel.reshape(outputs, -1)
    if padded.dtype.kind != "f":
        exact = exact_type(padded, matrix)
        padded, matrix = padded.astype(exact), matrix.astype(exact)
    elif padded.dtype == np.float16:
        padded, matrix = padded.astype(np.float32), matrix.astype(np.float32)
    cells = list(window_cells(padded, (kh, kw), strides, dilation))
    n, rows, columns, _ = cells[0][2].shape
    result = np.empty((n, rows, columns, outputs), out)
    block = max(1, PATCH_ELEMENTS // max(1, n * columns * matrix.shape[1]))
    for start in range(0, rows, block):
        parts = [cell[:, start : start + block] for _, _, cell in cells]
        patches = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        product = patches.reshape(-1, matrix.shape[1]) @ matrix.T
        if out.kind != "f" and product.dtype.kind == "f":
            product = product.astype(np.int64)
        result[:, start : start + block] = product.astype(out).reshape(n, -1, columns, outputs)
    return result


def conv2d(op: relay.Conv2dOp | qnn.Conv2dOp, data: Array, kernel: Array) -> Array:
    return convolve(op, centred(data, number(op.input_zero_point)), centred(kernel, number(op.kernel_zero_point)))


def dense(op: relay.DenseOp | qnn.DenseOp, data: Array, kernel: Array) -> Array:
    data, kernel = centred(data, number(op.input_zero_point)), centred(kernel, number(op.kernel_zero_point))
    return matrix_product(data, kernel, wider_dtype(dtype_of(op.out_dtype)))


def weight_only_dense(
    op: relay.WeightOnlyDenseOp, data: Array, codes: Array, scales: Array, zero_points: Array
) -> Array:
    steps = codes.astype(np.float32) - zero_points[..., None].astype(np.float32)
    return matrix_product(data, (steps * scales[..., None]).reshape(len(codes), -1), np.dtype(np.float32))


def bias_add(op: relay.BiasAddOp, data: Array, bias: Array) -> Array:
    return data + along(bias, op.axis.value.data, data.ndim)


def channels_last(meaning: Callable[[Any, Array], Array]) -> Meaning:
    """Turn a function `meaning(op, data)` on channels-last arrays into an op's reference implementation in numpy, which
    takes and returns data in the op's own layout."""

    def of(op: relay.SpatialOp | relay.SubpixelOp, data: Array) -> Array:
        last = Layout.parse(f"N{''.join(sorted(op.axes.letters - {*'NC'}))}C")
        return in_layout(meaning(op, in_layout(data, op.axes, last)), last, op.axes)

    return of


def softmax(op: relay.SoftmaxOp, data: Array) -> Array:
    """Softmax, with sums added in the order of the elements as in TFLite's reference kernel."""
    if not data.size:
        return data
    axis = op.axis.value.data
    powers = exp((data - data.max(axis=axis, keepdims=True)) * to_numpy(op.beta).astype(data.dtype))
    return powers / np.cumsum(powers, axis=axis, dtype=data.dtype).take([-1], axis)


MEANINGS: Meanings = {
    relay.Conv2dOp: conv2d,
    relay.DenseOp: dense,
    relay.WeightOnlyDenseOp: weight_only_dense,
    relay.BiasAddOp: bias_add,
    relay.SoftmaxOp: softmax,
}
