"""Elementwise ops: wrapping, division, rounding, broadcasting; fixed-point ops and lookups."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, scalar_attr
from relay.dialects.op import TensorOp
from relay.errors import InvalidArgument
from relay.interpreters import compute

I8 = np.array([-128, -127, -7, -1, 0, 1, 7, 127], np.int8)
F32 = np.array([-2.5, -0.5, -0.0, 0.3, 0.5, 1.5, 2.5, 80.0], np.float32)


def wrap8(x: int) -> int:
    return (x + 128) % 256 - 128


BINARY: list[tuple[type[TensorOp], Callable[[int, int], int]]] = [
    (relay.AddOp, lambda a, b: wrap8(a + b)),
    (relay.SubtractOp, lambda a, b: wrap8(a - b)),
    (relay.MultiplyOp, lambda a, b: wrap8(a * b)),
    (relay.DivideOp, lambda a, b: wrap8(math.trunc(a / b)) if b else 0),
    (relay.FloorDivideOp, lambda a, b: wrap8(a // b) if b else 0),
    (relay.MaximumOp, max),
    (relay.MinimumOp, min),
    (relay.EqualOp, lambda a, b: a == b),
    (relay.GreaterOp, lambda a, b: a > b),
    (relay.LessOp, lambda a, b: a < b),
]


@pytest.mark.parametrize(("op", "function"), BINARY, ids=lambda x: getattr(x, "name", ""))
def test_integers_wrap_and_broadcast(op: type[TensorOp], function: Callable[[int, int], int]) -> None:
    (result,) = compute(op, [I8[:, None], I8[None, :]])
    assert result.dtype == (np.bool_ if issubclass(op, relay.CompareOp) else np.int8)
    assert result.tolist() == [[function(int(a), int(b)) for b in I8] for a in I8]


def test_rank_0_operands_wrap_in_their_type() -> None:
    (result,) = compute(relay.AddOp, [np.array(100, np.int8), np.array(100, np.int8)])
    assert isinstance(result, np.ndarray) and result.dtype == np.int8 and result.tolist() == -56


def test_unsigned_division() -> None:
    (result,) = compute(relay.DivideOp, [np.array([255, 7, 3], np.uint8), np.array([2, 0, 4], np.uint8)])
    assert result.dtype == np.uint8 and result.tolist() == [127, 0, 0]


def test_shifts() -> None:
    amount = np.array([1, 3], np.int8)
    assert compute(relay.LeftShiftOp, [np.array([64, -3], np.int8), amount])[0].tolist() == [-128, -24]
    assert compute(relay.RightShiftOp, [np.array([-1, -24], np.int8), amount])[0].tolist() == [-1, -3]
    unsigned = np.array([255], np.uint8)
    assert compute(relay.RightShiftOp, [unsigned, np.array([1], np.uint8)])[0].tolist() == [127]


def test_float_division() -> None:
    a, b = np.array([1, -7, 0.3], np.float32), np.array([0, 2, 0.1], np.float32)
    assert compute(relay.DivideOp, [a, b])[0].tolist() == [math.inf, -3.5, float(np.float32(0.3) / np.float32(0.1))]
    assert compute(relay.FloorDivideOp, [a, b])[0].tolist() == [math.inf, -4, 3]


def test_where_broadcasts() -> None:
    (result,) = compute(relay.WhereOp, [np.array([[True], [False]]), I8[:3], np.array(5, np.int8)])
    assert result.tolist() == [[-128, -127, -7], [5, 5, 5]]


UNARY: list[tuple[type[TensorOp], Callable[[float], float]]] = [
    (relay.NegativeOp, lambda x: -x),
    (relay.AbsOp, abs),
    (relay.ExpOp, math.exp),
    (relay.TanhOp, math.tanh),
    (relay.SigmoidOp, lambda x: 1 / (1 + math.exp(-x))),
    (relay.RoundOp, lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    (relay.FloorOp, math.floor),
    (relay.CeilOp, math.ceil),
]


@pytest.mark.parametrize(("op", "function"), UNARY, ids=lambda x: getattr(x, "name", ""))
def test_float_functions(op: type[TensorOp], function: Callable[[float], float]) -> None:
    (result,) = compute(op, [F32])
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, [np.float32(function(float(x))) for x in F32], rtol=2e-7)


def test_functions_of_positive_floats() -> None:
    x = np.array([0.25, 1, 2, 1e-30], np.float32)
    assert compute(relay.SqrtOp, [x])[0].tolist() == [float(np.float32(math.sqrt(float(v)))) for v in x]
    np.testing.assert_allclose(compute(relay.RsqrtOp, [x])[0], [1 / math.sqrt(float(v)) for v in x], rtol=2e-7)
    assert compute(relay.LogOp, [x])[0].tolist() == [float(np.float32(math.log(float(v)))) for v in x]


def test_the_smallest_integer_is_its_own_absolute_and_negative() -> None:
    assert compute(relay.AbsOp, [I8])[0].tolist() == [-128, 127, 7, 1, 0, 1, 7, 127]
    assert compute(relay.NegativeOp, [I8])[0].tolist() == [-128, 127, 7, 1, 0, -1, -7, -127]


@pytest.mark.parametrize("x", [I8, F32], ids=["i8", "f32"])
def test_clip(x: Array) -> None:
    bounds = {"a_min": scalar_attr(-2, i8), "a_max": scalar_attr(3, i8)}
    if x.dtype == np.float32:
        bounds = {"a_min": scalar_attr(-2, f32), "a_max": scalar_attr(3, f32)}
    (result,) = compute(relay.ClipOp, [x], bounds)
    assert result.dtype == x.dtype
    assert result.tolist() == [min(max(float(v), -2), 3) for v in x]


CASTS: list[tuple[Array, Attribute, list[object]]] = [
    (np.array([300, -129, 127], np.int32), i8, [44, 127, 127]),
    (np.array([200, 255], np.uint8), i8, [-56, -1]),
    (np.array([-1.9, 1.9], np.float32), i32, [-1, 1]),
    (np.array([0, 2, -1], np.int32), i1, [False, True, True]),
    (np.array([True, False]), f32, [1.0, 0.0]),
    (np.array([2**31 - 1], np.int32), i64, [2**31 - 1]),
    (np.array([0.1], np.float32), f64, [float(np.float32(0.1))]),
]


@pytest.mark.parametrize(("x", "dtype", "expected"), CASTS)
def test_cast(x: Array, dtype: Attribute, expected: list[object]) -> None:
    (result,) = compute(relay.CastOp, [x], {"dtype": dtype})
    assert result.dtype == dtype_of(dtype) and result.tolist() == expected


def test_fixed_point_multiply_per_axis() -> None:
    x = np.array([[-24, 100], [24, -100]], np.int32)
    multiplier, shift = np.array([1 << 30, 3 << 29], np.int32), np.array([-3, 1], np.int32)
    axis = {"axis": IntegerAttr(0, i64)}
    (result,) = compute(relay.FixedPointMultiplyOp, [x, multiplier, shift], axis)
    assert result.dtype == np.int32 and result.tolist() == [[-2, 6], [36, -150]]
    (up,) = compute(relay.FixedPointMultiplyOp, [x, multiplier, shift], {**axis, "rounding": StringAttr("upward")})
    assert up.tolist() == [[-1, 6], [36, -150]]


def test_high_multiply_and_shift() -> None:
    low = -(1 << 31)
    a, b = np.array([low, 1 << 30, -(1 << 30)], np.int32), np.array([low, 1, 1], np.int32)
    assert compute(relay.HighMultiplyOp, [a, b])[0].tolist() == [(1 << 31) - 1, 1, 0]
    x, amount = np.array([-3, 3, 5, low], np.int32), np.array([1, 1, 0, 31], np.int32)
    assert compute(relay.RoundingRightShiftOp, [x, amount])[0].tolist() == [-2, 2, 5, -1]


def test_reciprocal_of_a_power_of_two() -> None:
    mantissa, headroom = compute(relay.FixedPointReciprocalOp, [np.array([1 << 19, 1 << 20], np.int32)])
    assert mantissa.dtype == headroom.dtype == np.int32
    assert mantissa.tolist() == [(1 << 31) - 1] * 2 and headroom.tolist() == [12, 11]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_lookup_starts_at_the_lowest_code(dtype: type[np.integer]) -> None:
    info = np.iinfo(dtype)
    table = np.arange(info.max - int(info.min) + 1, dtype=np.int32) * 3
    codes = np.array([info.min, info.max, 5], dtype)
    assert compute(relay.LookupOp, [codes, table])[0].tolist() == [0, int(table[-1]), 3 * (5 - int(info.min))]


def test_compute_refuses_what_the_verifier_refuses() -> None:
    with pytest.raises(InvalidArgument, match="relay.add: .*element types differ"):
        compute(relay.AddOp, [I8, F32])
