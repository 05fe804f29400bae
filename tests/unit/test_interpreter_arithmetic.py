"""gemmlowp's primitives against Python's unbounded integers, and its functions against real ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from relay.errors import InvalidArgument
from relay.interpreters import arithmetic
from relay.interpreters.arithmetic import FIXED16, FIXED32, INT32_MAX, INT32_MIN

EDGES = [INT32_MIN, INT32_MIN + 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, (1 << 30) - 1, 1 << 30, INT32_MAX - 1, INT32_MAX]


def samples(count: int = 300) -> list[int]:
    return EDGES + [int(x) for x in np.random.default_rng(1).integers(INT32_MIN, INT32_MAX + 1, count)]


def away(x: Fraction) -> int:
    """Nearest integer, halves away from zero."""
    return math.floor(x + Fraction(1, 2)) if x >= 0 else -math.floor(-x + Fraction(1, 2))


def up(x: Fraction) -> int:
    """Nearest integer, halves up."""
    return math.floor(x + Fraction(1, 2))


def wrap(x: int) -> int:
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def high_multiply(a: int, b: int) -> int:
    return INT32_MAX if a == b == INT32_MIN else up(Fraction(a * b, 1 << 31))


def test_wrap32() -> None:
    numbers = [0, INT32_MAX, INT32_MAX + 1, INT32_MIN - 1, 1 << 40, -(1 << 40) - 5]
    assert arithmetic.wrap32(numbers).tolist() == [wrap(x) for x in numbers]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_away_is_exact_next_to_a_half(dtype: type[np.floating]) -> None:
    below = np.nextafter(dtype(0.5), dtype(0))
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, below, -below, 2.0**23 + 1], dtype)
    assert arithmetic.round_away(x).tolist() == [1, -1, 2, 3, -3, 0, 0, 2.0**23 + 1]


def test_truncating_divide() -> None:
    a, b = [7, -7, 7, -7, 6, 0, -1], [2, 2, -2, -2, 3, 5, 3]
    assert arithmetic.truncating_divide(a, b).tolist() == [
        math.trunc(Fraction(x, y)) for x, y in zip(a, b, strict=True)
    ]


def test_rounding_doubling_high_multiply() -> None:
    numbers = samples(60)
    a, b = np.meshgrid(numbers, numbers)
    expected = [high_multiply(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)]
    assert arithmetic.rounding_doubling_high_multiply(a, b).ravel().tolist() == expected


def test_high_multiply_halves_go_up_and_the_lowest_square_saturates() -> None:
    products = arithmetic.rounding_doubling_high_multiply([1 << 30, -(1 << 30), INT32_MIN], [1, 1, INT32_MIN])
    assert products.tolist() == [1, 0, INT32_MAX]
    assert arithmetic.rounding_doubling_high_multiply(-32768, -32768, bits=16).tolist() == 32767


@pytest.mark.parametrize("amount", [0, 1, 2, 5, 15, 30, 31, 32, 34])
def test_rounding_right_shift(amount: int) -> None:
    numbers = samples() + [(2 * k + 1) << max(amount - 1, 0) for k in range(-3, 3) if amount < 30]
    expected = [away(Fraction(x, 1 << amount)) for x in numbers]
    assert arithmetic.rounding_right_shift(numbers, amount).tolist() == expected


@pytest.mark.parametrize("shift", [-31, -30, -9, -1, 0, 1, 7, 30])
@pytest.mark.parametrize("multiplier", [0, 1 << 30, 1527099593, INT32_MAX])
def test_multiply_by_quantized_multiplier(multiplier: int, shift: int) -> None:
    numbers = samples()
    exact = [Fraction(x * multiplier) * Fraction(2) ** (shift - 31) for x in numbers]
    twice = [away(Fraction(high_multiply(wrap(x << max(shift, 0)), multiplier), 1 << max(-shift, 0))) for x in numbers]
    multiply = arithmetic.multiply_by_quantized_multiplier
    assert multiply(numbers, multiplier, shift).tolist() == twice
    assert multiply(numbers, multiplier, shift, "upward").tolist() == [wrap(up(x)) for x in exact]
    assert multiply(numbers, multiplier, shift, "tflite_single").tolist() == [wrap(up(x)) for x in exact]
    assert multiply(numbers, multiplier, shift, "tonearest").tolist() == [wrap(away(x)) for x in exact]


def test_the_roundings_differ_on_known_numbers() -> None:
    # -24 / 16 is a tie: twice rounded and away from zero give -2, halves up gives -1.
    assert arithmetic.multiply_by_quantized_multiplier(-24, 1 << 30, -3).tolist() == -2
    assert arithmetic.multiply_by_quantized_multiplier(-24, 1 << 30, -3, "tonearest").tolist() == -2
    assert arithmetic.multiply_by_quantized_multiplier(-24, 1 << 30, -3, "upward").tolist() == -1
    # Rounding twice lifts 55 * 1234567891 / 2^37 = 0.494 over the half: 31.6 becomes 32, and 32 / 64 becomes 1.
    single = arithmetic.multiply_by_quantized_multiplier(55, 1234567891, -6, "upward").tolist()
    assert (arithmetic.multiply_by_quantized_multiplier(55, 1234567891, -6).tolist(), single) == (1, 0)


def test_an_unknown_rounding_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="rounding sideways: is unknown"):
        arithmetic.multiply_by_quantized_multiplier(1, 1 << 30, 0, "sideways")


def test_the_64_bit_multiply_cuts_the_multiplier() -> None:
    for multiplier in (1 << 30, 1527099593, 0x7FFEFFFF, 0x7FFF0000, INT32_MAX):
        reduced = min((multiplier + (1 << 15)) >> 16, 0x7FFF)
        for shift in (-12, -3, 0, 2):
            numbers = [x << 9 for x in samples(20)]
            exact = [up(Fraction(x * reduced) * Fraction(2) ** (shift - 15)) for x in numbers]
            expected = [(x + (1 << 31)) % (1 << 32) - (1 << 31) for x in exact]
            assert arithmetic.multiply_by_quantized_multiplier_64(numbers, multiplier, shift).tolist() == expected


def test_the_64_bit_multiply_wraps_in_32_bits() -> None:
    numbers, multiplier = [1 << 31, (1 << 32) + 3, -(1 << 31) - 1, 3 << 30], 1 << 30  # by 2^14 / 2^14: themselves
    wrapped = arithmetic.multiply_by_quantized_multiplier_64(numbers, multiplier, 1).tolist()
    assert wrapped == [-(1 << 31), 3, (1 << 31) - 1, -(1 << 30)]


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        (0.0, (0, 0)),
        (1.0, (1 << 30, 1)),
        (0.5, (1 << 30, 0)),
        (0.75, (3 << 29, 0)),
        (math.nextafter(1.0, 0.0), (1 << 30, 1)),
        (2.0**-32, (1 << 30, -31)),
        (2.0**-33, (0, 0)),
        (1000.25, (2097676288, 10)),
    ],
)
def test_quantize_multiplier(real: float, expected: tuple[int, int]) -> None:
    assert arithmetic.quantize_multiplier(real) == expected


@pytest.mark.parametrize("real", [-1.0, math.inf, math.nan])
def test_quantize_multiplier_refuses(real: float) -> None:
    with pytest.raises(InvalidArgument, match="is not a finite number"):
        arithmetic.quantize_multiplier(real)


def test_leading_zeros32() -> None:
    numbers = [0, 1, 2, 3, 1 << 19, (1 << 19) + 1, INT32_MAX, -1, INT32_MIN]
    assert arithmetic.leading_zeros32(numbers).tolist() == [32 - (x & 0xFFFFFFFF).bit_length() for x in numbers]


def test_exp_on_negative_values() -> None:
    x = -np.arange(0, 1 << 31, 1234567, dtype=np.int64)
    error = FIXED32.exp_on_negative_values(x, 5) / 2.0**31 - np.exp(x / 2.0**26)
    assert np.abs(error).max() < 2e-7
    assert FIXED32.exp_on_negative_values([0, -(16 << 26)], 5).tolist() == [INT32_MAX, 242]


def test_reciprocal() -> None:
    numbers = np.array([1, 2, 3, 1 << 19, 1000 << 19, 12345678, (1 << 30) - 1, 1 << 30, INT32_MAX])
    mantissa, headroom = arithmetic.reciprocal(numbers)
    assert headroom.tolist() == [32 - int(x).bit_length() for x in numbers]
    np.testing.assert_allclose(mantissa * 2.0 ** (headroom - 62), 1 / numbers, rtol=1e-8)
    assert mantissa[0] == INT32_MAX


def test_one_over_one_plus_against_the_formula() -> None:
    for x in (0, 1, 1 << 30, INT32_MAX, 987654321):
        a = (x + (1 << 31)) >> 1
        r = 1515870810 + high_multiply(a, -1010580540)
        for _ in range(3):
            r += min(max(high_multiply(r, (1 << 29) - high_multiply(a, r)) << 2, INT32_MIN), INT32_MAX)
        assert int(FIXED32.one_over_one_plus(x)) == min(2 * r, INT32_MAX)


@pytest.mark.parametrize("integer_bits", [0, 1, 3, 4, 6])
def test_activations_of_16_bits(integer_bits: int) -> None:
    x = np.arange(-(1 << 15), 1 << 15)
    real = x * 2.0 ** (integer_bits - 15)
    assert np.abs(FIXED16.tanh(x, integer_bits) / 2.0**15 - np.tanh(real)).max() < 6e-4
    if integer_bits:
        assert np.abs(FIXED16.logistic(x, integer_bits) / 2.0**15 - 1 / (1 + np.exp(-real))).max() < 4e-4
    tanh = FIXED16.tanh(x, integer_bits)
    assert tanh[1 << 15] == 0 and (tanh[1:] == -tanh[:0:-1]).all()


def rounded32(x: Fraction) -> np.float32:
    """The nearest float32, halves to even."""
    if x == 0:
        return np.float32(0)
    unit = Fraction(2) ** (math.floor(math.log2(abs(x))) - 23)
    return np.float32(float(round(x / unit) * unit))


def test_fused_multiply_add_rounds_once() -> None:
    """Next to numbers at random, sums that float64 rounds on to the middle of two float32."""
    random = np.random.default_rng(2)
    a, b, c = (random.standard_normal(500).astype(np.float32) for _ in range(3))
    c[:250] *= np.float32(2.0**-28)
    a[:60], b[:60] = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)
    c[:60] = np.ldexp(random.choice([-1, 1], 60), random.integers(-80, -40, 60)).astype(np.float32)
    found = arithmetic.fused_multiply_add(a, b, c)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert found.tolist() == [rounded32(x) for x in exact]
    assert (found != (a.astype(np.float64) * b + c).astype(np.float32)).any()


def test_code_range_of_few_bits() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert arithmetic.code_range(np.dtype(ml_dtypes.int4)) == (-8, 7)
    assert arithmetic.code_range(np.dtype(ml_dtypes.uint4)) == (0, 15)
