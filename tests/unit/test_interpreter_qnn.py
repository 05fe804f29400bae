"""Quantised ops against TFLite's formulas in exact or float arithmetic, written with Python's numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    BoolAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f32,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import Array, dtype_of, element_type, elements, ints
from relay.dialects.op import TensorOp
from relay.dialects.relay import ConstantOp
from relay.interpreters import compute, evaluate
from relay.interpreters.arithmetic import INT32_MAX, multiply_by_quantized_multiplier, quantize_multiplier
from relay.interpreters.qnn import softmax_exp_table, unary_table

RANDOM = np.random.default_rng(5)
EVERY_CODE = np.arange(-128, 128).astype(np.int8)


def real(value: float) -> FloatAttr[Float32Type]:
    return FloatAttr(value, f32)


def whole(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i32)


def rescale(x: int, factor: float) -> int:
    """TFLite's rescaling by a real factor; its arithmetic has tests of its own."""
    return int(multiply_by_quantized_multiplier(x, *quantize_multiplier(factor)))


def clamp(x: int, low: int = -128, high: int = 127) -> int:
    return min(max(x, low), high)


def away(x: float | Fraction) -> int:
    return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x))


def test_quantize_divides_and_rounds_away() -> None:
    x = np.array([0.25, -0.25, 0.74, 1e9, -1e9, math.inf], np.float32)
    (result,) = compute(qnn.QuantizeOp, [x], {"scale": real(0.5), "zero_point": whole(3), "out_dtype": i8})
    assert result.dtype == np.int8 and result.tolist() == [4, 2, 4, 127, -128, 127]


def test_quantize_and_dequantize_per_axis() -> None:
    scale, zero_point = elements([0.5, 2], np.float32), elements([0, -10], np.int32)
    given: dict[str, Attribute | None] = {"scale": scale, "zero_point": zero_point, "axis": IntegerAttr(0, i64)}
    x = np.array([[1, -3], [4, 5]], np.float32)
    (codes,) = compute(qnn.QuantizeOp, [x], given | {"out_dtype": i8})
    assert codes.tolist() == [[2, -6], [-8, -7]]
    (back,) = compute(qnn.DequantizeOp, [codes], given)
    assert back.dtype == np.float32 and back.tolist() == [[1, -3], [4, 6]]


def test_dequantize_multiplies_in_double() -> None:
    scale = np.float32(0.1)
    given = {"scale": real(float(scale)), "zero_point": whole(-5)}
    (result,) = compute(qnn.DequantizeOp, [EVERY_CODE], given)
    assert result.tolist() == [float(np.float32(float(scale) * (q + 5))) for q in range(-128, 128)]


def requantize(x: Array, factor: float, out: Attribute = i8, **more: Attribute) -> list[int]:
    multiplier, shift = quantize_multiplier(factor)
    given: dict[str, Attribute | None] = {
        "input_scale": real(factor), "output_scale": real(1), "output_zero_point": whole(-4),
        "multiplier": whole(multiplier), "shift": whole(shift), "out_dtype": out, **more,
    }  # fmt: skip
    (result,) = compute(qnn.RequantizeOp, [x], given)
    assert result.dtype == dtype_of(out)
    return result.tolist()


def test_requantize() -> None:
    x = np.append(RANDOM.integers(-(1 << 20), 1 << 20, 200), [INT32_MAX, -INT32_MAX - 1]).astype(np.int32)
    factor = 0.00012345
    assert requantize(x, factor) == [clamp(rescale(int(v), factor) - 4) for v in x]
    bounded = requantize(x, factor, min=whole(-4), max=whole(20))
    assert bounded == [clamp(rescale(int(v), factor) - 4, -4, 20) for v in x]
    assert requantize(x, factor, i16, min=whole(-100000)) == [
        clamp(rescale(int(v), factor) - 4, -32768, 32767) for v in x
    ]


def test_requantize_codes() -> None:
    moved = requantize(EVERY_CODE, 1.75, input_zero_point=whole(7))
    assert moved == [clamp(rescale(q - 7, 1.75) - 4) for q in range(-128, 128)]


def test_requantize_per_axis() -> None:
    x = np.array([[100, 100], [-7, -7]], np.int32)
    per_axis: dict[str, Attribute] = {
        "multiplier": elements([1 << 30, 1 << 30], np.int32),
        "shift": elements([0, -2], np.int32),
    }
    assert requantize(x, 0.5, axis=IntegerAttr(-1, i64), **per_axis) == [[46, 9], [-7, -5]]


def test_requantize_in_floats() -> None:
    x = np.array([1, 3, -1, -3, 5, 7, 1 << 30, -(1 << 30)], np.int32)
    double = requantize(x, 0.5, rounding=StringAttr("f64_away"), real_multiplier=elements(np.float64(0.5)))
    assert double == [clamp(away(Fraction(int(v), 2)) - 4) for v in x]
    even = requantize(x, 0.5, rounding=StringAttr("f32_even"))
    assert even == [clamp(round(Fraction(int(v), 2)) - 4) for v in x]


def test_requantize_of_i64_cuts_the_multiplier() -> None:
    x = np.array([1 << 36, -(1 << 36), 12345678901, -5], np.int64)
    multiplier, shift = quantize_multiplier(1e-7)
    reduced = (multiplier + (1 << 15)) >> 16
    expected = [math.floor(Fraction(int(v) * reduced) * Fraction(2) ** (shift - 15) + Fraction(1, 2)) - 4 for v in x]
    assert requantize(x, 1e-7, i16) == expected


def test_convolution_and_dense_subtract_zero_points() -> None:
    given = {
        "input_scale": real(0.5), "input_zero_point": whole(10), "kernel_scale": real(0.1),
        "kernel_zero_point": whole(100),
    }  # fmt: skip
    data, kernel = np.array([[1, 2, 250]], np.uint8), np.array([[0, 255, 100]], np.uint8)
    assert compute(qnn.DenseOp, [data, kernel], given)[0].tolist() == [[9 * 100 - 8 * 155]]
    convolved = compute(qnn.Conv2dOp, [data.reshape(1, 1, 1, 3), kernel.reshape(1, 1, 1, 3)], given)[0]
    assert convolved.dtype == np.int32 and convolved.tolist() == [[[[9 * 100 - 8 * 155]]]]


def binary(scales: tuple[float, float, float], factor: float) -> dict[str, Attribute | None]:
    names = ("lhs_scale", "rhs_scale", "output_scale")
    multiplier, shift = quantize_multiplier(factor)
    return {
        **{name: real(s) for name, s in zip(names, scales, strict=True)},
        "lhs_zero_point": whole(3), "rhs_zero_point": whole(-7), "output_zero_point": whole(11),
        "multiplier": whole(multiplier), "shift": whole(shift),
    }  # fmt: skip


@pytest.mark.parametrize(("op", "sign"), [(qnn.AddOp, 1), (qnn.SubtractOp, -1)])
def test_sums_and_differences(op: type[TensorOp], sign: int) -> None:
    scales, left_shift = (0.02, 0.05, 0.04), 20
    twice = 2 * max(scales)
    factors = (scales[0] / twice, scales[1] / twice, twice / ((1 << left_shift) * scales[2]))
    given = binary(scales, factors[2]) | {"left_shift": whole(left_shift), "max": whole(100)}
    for side, factor in (("lhs", factors[0]), ("rhs", factors[1])):
        multiplier, shift = quantize_multiplier(factor)
        given |= {f"{side}_multiplier": whole(multiplier), f"{side}_shift": whole(shift)}
    (result,) = compute(op, [EVERY_CODE[::5, None], EVERY_CODE[None, ::7]], given)

    def expected(a: int, b: int) -> int:
        x, y = rescale((a - 3) << left_shift, factors[0]), rescale((b + 7) << left_shift, factors[1])
        return clamp(rescale(x + sign * y, factors[2]) + 11, -128, 100)

    assert result.dtype == np.int8
    assert result.tolist() == [[expected(a, b) for b in range(-128, 128, 7)] for a in range(-128, 128, 5)]
    real_sums = [[sign * 0.05 * (b + 7) + 0.02 * (a - 3) for b in range(-128, 128, 7)] for a in range(-128, 128, 5)]
    assert np.abs(np.clip(np.array(real_sums) / 0.04 + 11, -128, 100) - result).max() <= 0.51


def test_products() -> None:
    given = binary((0.02, 0.05, 0.04), 0.025) | {"min": whole(11)}
    (result,) = compute(qnn.MulOp, [EVERY_CODE[:, None], EVERY_CODE[None, ::17]], given)
    products = [[(a - 3) * (b + 7) for b in range(-128, 128, 17)] for a in range(-128, 128)]
    assert result.tolist() == [[clamp(rescale(p, 0.025) + 11, 11) for p in row] for row in products]


def test_mean() -> None:
    x = RANDOM.integers(-128, 128, (2, 3, 4, 5), dtype=np.int8)
    multiplier, shift = quantize_multiplier(0.8 / 12)
    given: dict[str, Attribute | None] = {
        "axis": ints([1, -2]), "keepdims": BoolAttr.from_bool(True), "input_scale": real(0.08),
        "input_zero_point": whole(9), "output_scale": real(0.1), "output_zero_point": whole(-3),
        "multiplier": whole(multiplier), "shift": whole(shift),
    }  # fmt: skip
    (result,) = compute(qnn.MeanOp, [x], given)
    sums = [[sum(int(v) - 9 for v in x[n, :, :, c].ravel()) for c in range(5)] for n in range(2)]
    assert result.dtype == np.int8 and result.shape == (2, 1, 1, 5)
    assert result[:, 0, 0].tolist() == [[clamp(rescale(s, 0.8 / 12) - 3) for s in row] for row in sums]


def softmax(x: Array, scale: float) -> Array:
    multiplier, shift = quantize_multiplier(min(scale * 2.0**26, 2.0**31 - 1))
    given = {"beta": real(1), "input_scale": real(scale), "multiplier": whole(multiplier), "shift": whole(shift)}
    return compute(qnn.SoftmaxOp, [x], given)[0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scale", [0.01, 0.11, 0.9])
def test_softmax_is_within_a_step_of_the_real_one(dtype: type[np.integer], scale: float) -> None:
    low = np.iinfo(dtype).min
    x = RANDOM.integers(low, low + 256, (6, 10)).astype(dtype)
    result = softmax(x, scale)
    powers = np.exp(scale * (x.astype(int) - x.max(axis=-1, keepdims=True).astype(int)))
    exact = np.minimum(256 * powers / powers.sum(axis=-1, keepdims=True), 255) + int(low)
    assert result.dtype == dtype and np.abs(result - exact).max() <= 0.52


def test_softmax_of_known_rows() -> None:
    assert softmax(np.array([[5, 5], [127, -128]], np.int8), 0.5).tolist() == [[0, 0], [127, -128]]
    assert softmax(np.full((1, 3), 40, np.uint8), 0.5).tolist() == [[85, 85, 85]]
    # A shift by 32: 256 / 1001 of a step rounds to none.
    assert set(softmax(np.zeros((1, 1001), np.int8), 0.1).ravel().tolist()) == {-128}


def test_softmax_exp_table() -> None:
    multiplier, shift = quantize_multiplier(0.25 * 2.0**26)
    table = softmax_exp_table(multiplier, shift)
    lowest = -math.floor(31 * 2**26 / 2**shift)
    assert table.dtype == np.int32 and table.shape == (256,) and table[255] == INT32_MAX
    difference = np.arange(-255, 1)
    assert (table[difference < lowest] == 0).all() and (table[difference >= max(lowest, -60)] > 0).all()
    np.testing.assert_allclose(table, np.exp(0.25 * difference) * 2.0**31, atol=400)


def unary(
    input_scale: float, input_zero_point: int, output_scale: float, output_zero_point: int
) -> dict[str, Attribute | None]:
    return {
        "input_scale": real(input_scale), "input_zero_point": whole(input_zero_point),
        "output_scale": real(output_scale), "output_zero_point": whole(output_zero_point),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_functions_of_codes(dtype: type[np.integer]) -> None:
    low = int(np.iinfo(dtype).min)
    codes = np.arange(low, low + 256).astype(dtype)
    (sigmoid,) = compute(qnn.SigmoidOp, [codes], unary(0.05, low + 120, 1 / 256, low))
    (tanh,) = compute(qnn.TanhOp, [codes], unary(0.05, low + 120, 1 / 128, low + 128))
    x = 0.05 * (np.arange(256) - 120)
    assert sigmoid.dtype == tanh.dtype == dtype
    assert np.abs(sigmoid - np.minimum(256 / (1 + np.exp(-x)) + low, low + 255)).max() <= 0.501
    assert np.abs(tanh - np.minimum(128 * np.tanh(x) + low + 128, low + 255)).max() <= 0.501


def test_the_table_is_the_function() -> None:
    data = qnn.DynamicQuantizeOp.make([constant(np.ones((1, 256), np.float32))]).codes
    op = qnn.TanhOp.make([data], unary(0.02, 0, 1 / 128, 0))
    table = unary_table(op)
    assert table.dtype == np.int8 and evaluate(op, [EVERY_CODE[None]])[0].tolist() == [table.tolist()]


def constant(array: Array) -> SSAValue:
    return ConstantOp.make([], {"value": elements(array)}).result


def test_concatenate_rescales_what_differs() -> None:
    parts = [np.array([[10, 20]], np.uint8), np.array([[10, 255]], np.uint8)]
    given = {
        "axis": IntegerAttr(1, i64), "input_scales": elements([0.5, 0.25], np.float32),
        "input_zero_points": elements([3, 5], np.int32), "output_scale": real(0.5), "output_zero_point": whole(3),
    }  # fmt: skip
    (result,) = compute(qnn.ConcatenateOp, parts, given)
    assert result.dtype == np.uint8 and result.tolist() == [[10, 20, 6, 128]]


def test_dynamic_quantize() -> None:
    x = np.array([[1, -2, 0.5], [0, 0, 0], [127, 0.5, -1.5]], np.float32)
    codes, scale = compute(qnn.DynamicQuantizeOp, [x])
    assert codes.dtype == np.int8 and codes.tolist() == [[64, -127, 32], [0, 0, 0], [127, 1, -2]]
    assert scale.dtype == np.float32
    assert scale.tolist() == [float(np.float32(2) / np.float32(127)), 1, 1]
    assert element_type(codes.dtype) == i8
