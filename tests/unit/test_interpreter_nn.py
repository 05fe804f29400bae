"""Convolution, dense, pooling, softmax and resizing against loops written from the definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Attribute

from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, ints, scalar_attr
from relay.interpreters import compute
from relay.interpreters.nn import exact_type

RANDOM = np.random.default_rng(3)


def codes(*shape: int, dtype: type[np.integer] = np.int8) -> Array:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, int(info.max) + 1, shape, dtype=dtype)


def convolution(
    data: Array, kernel: Array, strides: tuple[int, int], padding: tuple[int, int, int, int],
    dilation: tuple[int, int], groups: int,
) -> Array:  # fmt: skip
    """The sum of `Conv2dBase`'s docstring, kernel OHWI, one product at a time, in Python's integers."""
    n, h, w, _ = data.shape
    outputs, kh, kw, depth = kernel.shape
    rows = (h + padding[0] + padding[2] - (kh - 1) * dilation[0] - 1) // strides[0] + 1
    columns = (w + padding[1] + padding[3] - (kw - 1) * dilation[1] - 1) // strides[1] + 1
    result = np.zeros((n, rows, columns, outputs), object)
    for b, y, x, o, i, j in np.ndindex(n, rows, columns, outputs, kh, kw):
        row, column = y * strides[0] + i * dilation[0] - padding[0], x * strides[1] + j * dilation[1] - padding[1]
        if 0 <= row < h and 0 <= column < w:
            first = o // (outputs // groups) * depth
            for c in range(depth):
                result[b, y, x, o] += data[b, row, column, first + c].item() * kernel[o, i, j, c].item()
    return result


GEOMETRIES = [
    ((1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((2, 1), (1, 0, 2, 1), (1, 1), 1),
    ((1, 2), (2, 2, 1, 1), (2, 1), 2),
    ((2, 2), (0, 1, 0, 1), (1, 2), 4),
]


def properties(
    strides: tuple[int, int], padding: tuple[int, int, int, int], dilation: tuple[int, int], groups: int
) -> dict[str, Attribute | None]:
    return {
        "strides": ints(strides),
        "padding": ints(padding),
        "dilation": ints(dilation),
        "groups": IntegerAttr(groups, i64),
    }


@pytest.mark.parametrize(("strides", "padding", "dilation", "groups"), GEOMETRIES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integer_convolution(
    strides: tuple[int, int], padding: tuple[int, int, int, int], dilation: tuple[int, int], groups: int,
    dtype: type[np.integer],
) -> None:  # fmt: skip
    data, kernel = codes(2, 6, 5, 4, dtype=dtype), codes(8, 3, 2, 4 // groups, dtype=dtype)
    expected = convolution(data.astype(int) - 3, kernel.astype(int) + 2, strides, padding, dilation, groups)
    given = properties(strides, padding, dilation, groups)
    given |= {"input_zero_point": IntegerAttr(3, i32), "kernel_zero_point": IntegerAttr(-2, i32)}
    (result,) = compute(relay.Conv2dOp, [data, kernel], given)
    assert result.dtype == np.int32 and result.tolist() == expected.tolist()


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_convolution_is_a_grouped_one(multiplier: int) -> None:
    data, kernel = codes(1, 5, 5, 4), codes(3, 2, 4, multiplier)
    grouped = kernel.transpose(2, 3, 0, 1).reshape(4 * multiplier, 3, 2, 1)
    geometry = ((2, 1), (1, 1, 0, 1), (1, 1), 4)
    expected = convolution(data.astype(int) + 5, grouped, *geometry)
    given = {"kernel_layout": StringAttr("HWOI"), "input_zero_point": IntegerAttr(-5, i32)}
    (result,) = compute(relay.Conv2dOp, [data, kernel], properties(*geometry) | given)
    assert result.dtype == np.int32 and result.tolist() == expected.tolist()


@pytest.mark.parametrize("depthwise", [False, True])
def test_float_convolution(depthwise: bool) -> None:
    data = RANDOM.standard_normal((1, 6, 6, 4)).astype(np.float32)
    kernel = RANDOM.standard_normal((4, 3, 3, 1 if depthwise else 4)).astype(np.float32)
    geometry = ((1, 1), (1, 1, 1, 1), (1, 1), 4 if depthwise else 1)
    expected = convolution(data, kernel, *geometry).astype(np.float64)
    given = properties(*geometry) | {"out_dtype": f32}
    if depthwise:
        kernel = np.ascontiguousarray(kernel.transpose(1, 2, 0, 3))
        given["kernel_layout"] = StringAttr("HWOI")
    (result,) = compute(relay.Conv2dOp, [data, kernel], given)
    assert result.dtype == np.float32
    assert np.abs(result - expected).max() <= 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("kernel_layout", ["OHWI", "HWOI"])
def test_sums_wrap_in_i32_and_not_in_i64(kernel_layout: str) -> None:
    data = np.full((1, 2, 2, 1), -32768, np.int16)
    kernel = np.full((1, 2, 2, 1) if kernel_layout == "OHWI" else (2, 2, 1, 1), -32768, np.int16)
    for out, expected in ((i32, 0), (i64, 1 << 32)):
        given = {"out_dtype": out, "kernel_layout": StringAttr(kernel_layout)}
        assert compute(relay.Conv2dOp, [data, kernel], given)[0].tolist() == [[[[expected]]]]


def test_the_type_of_a_matrix_product_holds_every_sum() -> None:
    row = np.full((1, 1000), 127, np.int32)
    assert exact_type(np.full((1, 1000), 255), row) == np.float64
    assert exact_type(np.full((1, 1000), -132), row) == np.float32
    assert exact_type(np.full((1, 1), 1 << 40), np.full((1, 1), 1 << 13)) == np.int64


def test_dense() -> None:
    data, kernel = codes(2, 3, 70), codes(5, 70, dtype=np.uint8)
    given = {"input_zero_point": IntegerAttr(-128, i32), "kernel_zero_point": IntegerAttr(7, i32)}
    (result,) = compute(relay.DenseOp, [data, kernel], given)
    expected = np.einsum("abk,uk->abu", data.astype(np.int64) + 128, kernel.astype(np.int64) - 7)
    assert result.dtype == np.int32 and result.tolist() == expected.tolist()


def test_bias_add_wraps_along_its_axis() -> None:
    data, bias = np.array([[1, 2], [3, 2**31 - 1]], np.int32), np.array([10, 1], np.int32)
    assert compute(relay.BiasAddOp, [data, bias])[0].tolist() == [[11, 3], [13, -(2**31)]]
    along_rows = {"axis": IntegerAttr(0, i64)}
    assert compute(relay.BiasAddOp, [data, bias], along_rows)[0].tolist() == [[11, 12], [4, -(2**31)]]


def pooled(data: Array, size: tuple[int, int], strides: tuple[int, int], padding: tuple[int, ...]) -> list[list[Array]]:
    """The cells inside the image under each window of a one-image, one-channel tensor."""
    h, w = data.shape[1:3]
    rows = (h + padding[0] + padding[2] - size[0]) // strides[0] + 1
    columns = (w + padding[1] + padding[3] - size[1]) // strides[1] + 1
    tops = [y * strides[0] - padding[0] for y in range(rows)]
    lefts = [x * strides[1] - padding[1] for x in range(columns)]
    return [[data[0, max(t, 0) : t + size[0], max(left, 0) : left + size[1], 0] for left in lefts] for t in tops]


def towards_zero_of_half_away(cells: Array) -> int:
    mean = Fraction(int(cells.astype(int).sum()), cells.size)
    return int(math.copysign(math.floor(abs(mean) + Fraction(1, 2)), mean))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_pooling_of_codes(dtype: type[np.integer]) -> None:
    data, size, strides, padding = codes(1, 7, 6, 1, dtype=dtype), (3, 2), (2, 1), (1, 1, 2, 0)
    cells = pooled(data, size, strides, padding)
    given = {"pool_size": ints(size), "strides": ints(strides), "padding": ints(padding)}
    (largest,) = compute(relay.MaxPool2dOp, [data], given)
    (mean,) = compute(relay.AvgPool2dOp, [data], given)
    assert largest.dtype == mean.dtype == dtype
    assert largest[0, :, :, 0].tolist() == [[int(c.max()) for c in row] for row in cells]
    assert mean[0, :, :, 0].tolist() == [[towards_zero_of_half_away(c) for c in row] for row in cells]


def test_mean_of_a_half_goes_away_from_zero() -> None:
    given = {"pool_size": ints([1, 2])}
    for values, expected in (([1, 2], 2), ([-1, -2], -2), ([-1, 0], -1), ([0, 1], 1)):
        data = np.array(values, np.int8).reshape(1, 1, 2, 1)
        assert compute(relay.AvgPool2dOp, [data], given)[0].ravel().tolist() == [expected]


def test_pooling_of_floats() -> None:
    data = RANDOM.standard_normal((1, 5, 5, 1)).astype(np.float32) - 5
    cells = pooled(data, (3, 3), (1, 1), (1, 1, 1, 1))
    given = {"pool_size": ints([3, 3]), "padding": ints([1, 1, 1, 1])}
    np.testing.assert_allclose(
        compute(relay.AvgPool2dOp, [data], given)[0][0, :, :, 0], [[c.mean() for c in row] for row in cells], rtol=1e-6
    )
    assert compute(relay.MaxPool2dOp, [data], given)[0][0, :, :, 0].tolist() == [
        [float(c.max()) for c in row] for row in cells
    ]


def test_softmax() -> None:
    data = np.array([[1, 2, 300], [-4, -4, -4]], np.float32)
    (result,) = compute(relay.SoftmaxOp, [data], {"beta": scalar_attr(0.5, f32)})
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, [[0, 0, 1], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)
    (result,) = compute(relay.SoftmaxOp, [data[:, :2]], {"beta": scalar_attr(0.5, f32)})
    np.testing.assert_allclose(result[0], [1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5))], rtol=1e-6)


def resize(data: list[float], size: int, dtype: type[np.generic], **given: Attribute) -> list[float]:
    image = np.array(data, dtype).reshape(1, 1, -1, 1)
    (result,) = compute(relay.Resize2dOp, [image], {"size": ints([1, size]), **given})
    assert result.dtype == dtype and element_type(dtype) == element_type(result.dtype)
    return result.ravel().tolist()


NEAREST, TRUE = StringAttr("nearest_neighbor"), BoolAttr.from_bool(True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32])
def test_nearest_neighbour(dtype: type[np.generic]) -> None:
    assert resize([10, 20, 30], 6, dtype, method=NEAREST) == [10, 10, 20, 20, 30, 30]
    assert resize([10, 20, 30], 2, dtype, method=NEAREST) == [10, 20]
    assert resize([10, 20, 30], 2, dtype, method=NEAREST, half_pixel_centers=TRUE) == [10, 30]
    assert resize([10, 20, 30], 4, dtype, method=NEAREST, align_corners=TRUE) == [10, 20, 20, 30]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32])
def test_bilinear(dtype: type[np.generic]) -> None:
    assert resize([0, 100], 4, dtype) == [0, 50, 100, 100]
    assert resize([0, 100], 4, dtype, half_pixel_centers=TRUE) == [0, 25, 75, 100]
    assert resize([0, 60, 100], 5, dtype, align_corners=TRUE) == [0, 30, 60, 80, 100]


def test_bilinear_rounds_codes() -> None:
    assert resize([-1, 0], 4, np.int8) == [-1, -1, 0, 0]
    assert resize([0, 1], 4, np.int8) == [0, 1, 1, 1]
    assert resize([0, 1], 4, np.uint8) == [0, 1, 1, 1]
    assert resize([-3, 0], 4, np.int16, half_pixel_centers=TRUE) == [-3, -2, -1, 0]


def test_the_largest_of_booleans_beside_padding_is_theirs():
    x = np.array([[False, False, True, False]]).reshape(1, 1, 4, 1)
    window = {"pool_size": ints([1, 2]), "strides": ints([1, 1]), "padding": ints([0, 1, 0, 0])}
    (found,) = compute(relay.MaxPool2dOp, [x], {**window, "layout": StringAttr("NHWC")})
    assert found.dtype == np.bool_ and found.reshape(-1).tolist() == [False, False, True, True]
