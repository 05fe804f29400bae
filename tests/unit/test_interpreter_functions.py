"""Functions, comparisons, logic, remainders and powers: what they mean at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import i64

from relay.dialects import relay
from relay.dialects.op import TensorOp
from relay.errors import InvalidArgument
from relay.interpreters import compute

FUNCTIONS: list[tuple[type[TensorOp], Callable[[float], float], float]] = [
    (relay.AcosOp, math.acos, 0.3),
    (relay.AcoshOp, math.acosh, 1.7),
    (relay.AsinOp, math.asin, -0.4),
    (relay.AsinhOp, math.asinh, -2.0),
    (relay.AtanOp, math.atan, 3.0),
    (relay.AtanhOp, math.atanh, 0.9),
    (relay.CosOp, math.cos, 2.0),
    (relay.CoshOp, math.cosh, -1.5),
    (relay.ErfOp, math.erf, 0.7),
    (relay.Expm1Op, math.expm1, 1e-3),
    (relay.FastErfOp, math.erf, 0.7),
    (relay.FastExpOp, math.exp, 0.7),
    (relay.FastTanhOp, math.tanh, 0.7),
    (relay.Log2Op, math.log2, 10.0),
    (relay.Log10Op, math.log10, 10.0),
    (relay.SinOp, math.sin, 2.0),
    (relay.SinhOp, math.sinh, 2.0),
    (relay.TanOp, math.tan, 1.0),
    (relay.TruncOp, math.trunc, -1.7),
]


@pytest.mark.parametrize(("op", "function", "x"), FUNCTIONS, ids=lambda x: getattr(x, "name", ""))
def test_functions_of_the_mathematical_library(
    op: type[TensorOp], function: Callable[[float], float], x: float
) -> None:
    argument = np.array([x], np.float32)
    (result,) = compute(op, [argument])
    assert result.dtype == np.float32 and result[0] == np.float32(function(float(argument[0])))


def test_tests_of_numbers() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1e38], np.float32)
    assert compute(relay.IsnanOp, [x])[0].tolist() == [True, False, False, False, False]
    assert compute(relay.IsinfOp, [x])[0].tolist() == [False, True, True, False, False]
    assert compute(relay.IsfiniteOp, [x])[0].tolist() == [False, False, False, True, True]
    assert compute(relay.NotEqualOp, [x, x])[0].tolist() == [True, False, False, False, False]


def test_signs() -> None:
    (result,) = compute(relay.SignOp, [np.array([-3.5, -0.0, 2.0, np.nan], np.float32)])
    assert result[:3].tolist() == [-1, 0, 1] and np.isnan(result[3])
    assert compute(relay.SignOp, [np.array([-128, 0, 7], np.int8)])[0].tolist() == [-1, 0, 1]
    assert compute(relay.SignOp, [np.array([0, 200], np.uint8)])[0].tolist() == [0, 1]


def test_remainders_follow_the_dividend_or_the_divisor() -> None:
    lhs, rhs = np.array([7, -7, 7, -7, 5, -128], np.int8), np.array([3, 3, -3, -3, 0, -1], np.int8)
    assert compute(relay.ModOp, [lhs, rhs])[0].tolist() == [1, -1, 1, -1, 0, 0]
    assert compute(relay.FloorModOp, [lhs, rhs])[0].tolist() == [1, 2, -2, -1, 0, 0]
    floats = [x[:4].astype(np.float32) + np.float32(0.5) for x in (lhs, rhs)]
    assert compute(relay.ModOp, floats)[0].tolist() == [math.fmod(a, b) for a, b in zip(*floats, strict=True)]
    assert compute(relay.FloorModOp, floats)[0].tolist() == [float(a) % float(b) for a, b in zip(*floats, strict=True)]


def test_powers_of_integers_wrap() -> None:
    lhs, rhs = np.array([2, 3, -2, 0, 5, 3], np.int8), np.array([7, 4, 3, 0, -1, 5], np.int8)
    assert compute(relay.PowerOp, [lhs, rhs])[0].tolist() == [-128, 81, -8, 1, 0, 243 - 256]


def test_logic_and_bits() -> None:
    a, b = np.array([True, True, False]), np.array([True, False, False])
    for op, wanted in (
        (relay.LogicalAndOp, [True, False, False]),
        (relay.LogicalOrOp, [True, True, False]),
        (relay.LogicalXorOp, [False, True, False]),
    ):
        assert compute(op, [a, b])[0].tolist() == wanted
    assert compute(relay.LogicalNotOp, [b])[0].tolist() == [False, True, True]
    x, y = np.array([0b1100], np.uint8), np.array([0b1010], np.uint8)
    for op, wanted in ((relay.BitwiseAndOp, 0b1000), (relay.BitwiseOrOp, 0b1110), (relay.BitwiseXorOp, 0b0110)):
        assert compute(op, [x, y])[0].tolist() == [wanted]
    assert compute(relay.BitwiseNotOp, [x])[0].tolist() == [0b11110011]


def test_what_only_looks_at_the_type() -> None:
    x = np.full((2, 3), 7, np.int16)
    assert compute(relay.ShapeOfOp, [x])[0].tolist() == [2, 3]
    (size,) = compute(relay.NdarraySizeOp, [x], {"dtype": i64})
    assert size.dtype == np.int64 and size.tolist() == 6
    assert compute(relay.ZerosLikeOp, [x])[0].tolist() == [[0] * 3] * 2
    assert compute(relay.OnesLikeOp, [x])[0].tolist() == [[1] * 3] * 2
    assert compute(relay.CopyOp, [x])[0].tolist() == x.tolist()


@pytest.mark.parametrize("op", [relay.LogicalNotOp, relay.SinOp, relay.IsnanOp])
def test_other_types_are_refused(op: type[TensorOp]) -> None:
    with pytest.raises(InvalidArgument, match=r"takes (i1|floats), not i32"):
        compute(op, [np.array([1], np.int32)])
