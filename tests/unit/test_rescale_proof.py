"""The proof that a float rescale equals the reference's integers, and that it notices a wrong form."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from relay.interpreters.arithmetic import quantize_multiplier
from relay.lowering.rescale.proof import Form, interval, prove, prove32, prove32x2
from relay.lowering.rescale.steps import Conditions, conditions, conditions_of_values, exact_scale, reference

Array = npt.NDArray[Any]

EVERYTHING = (np.array([-(2**31)]), np.array([2**31 - 1]))


def channels(low: float, high: float, count: int, seed: int) -> tuple[Array, Array]:
    """Random multipliers and shifts, as TFLite makes them, of scales between low and high."""
    scales = np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), count))
    pairs = [quantize_multiplier(float(s)) for s in scales]
    return np.array([m for m, _ in pairs], np.int64), np.array([31 - e for _, e in pairs], np.int64)


def awkward() -> tuple[Array, Array]:
    """Powers of two, their neighbours, few significant bits: scales with numbers exactly between two results."""
    multipliers = [1 << 30, (1 << 30) + 1, (1 << 31) - 1, 3 << 29, 5 << 28, (1 << 30) + (1 << 10), 0]
    pairs = [(m, s) for m in multipliers for s in (31, 32, 37, 45, 62)]
    return np.array([m for m, _ in pairs], np.int64), np.array([s for _, s in pairs], np.int64)


def literal(x: int, multiplier: int, shift: int, double: bool) -> int:
    """SRDHM and RDBPOT in Python's integers, as gemmlowp defines them; or one rounding, halves up."""
    product = x * multiplier
    if not double:
        return (product + (1 << (shift - 1))) >> shift
    nudged = product + (1 << 30 if product >= 0 else 1 - (1 << 30))
    high = abs(nudged) >> 31
    high = high if nudged >= 0 else -high
    exponent = shift - 31
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if high < 0 else 0)
    return (high >> exponent) + (1 if (high & mask) > threshold else 0)


def rounded(value: Fraction, bits: int, toward_zero: bool) -> Fraction:
    """A dyadic fraction in `bits` significant bits."""
    excess = abs(value.numerator).bit_length() - bits
    if excess <= 0:
        return value
    scaled = Fraction(abs(value.numerator), 1 << excess)
    whole = floor(scaled) if toward_zero else round(scaled)
    return Fraction((whole if value > 0 else -whole) << excess, value.denominator)


def compute(form: Form, channel: int, x: int) -> int:
    """One number through the form, in exact fractions and explicit roundings."""
    bits = 53 if form.name == "f64" else 24
    value = rounded(Fraction(x), bits, False)
    scale, offset = Fraction(float(form.scale[channel])), Fraction(float(form.offset[channel]))
    total = -offset if form.signed and x < 0 else offset
    if form.rest is not None:
        total = rounded(value * Fraction(float(form.rest[channel])) + total, bits, False)
    total = rounded(value * scale + total, bits, form.toward_zero)
    return ceil(total) if total < 0 else floor(total)


def around(where: Conditions, channel: int) -> list[int]:
    """Numbers on both sides of steps, and beyond, on both sides of zero: those near the clamps, some of the others."""
    found = {0, 1, -1, 2**31 - 1, -(2**31)}
    for magnitudes in (where.least[channel], where.most[channel]):
        for u in magnitudes[(magnitudes >= 0) & (magnitudes < 2**31 - 1)].astype(np.int64).tolist():
            found |= {u - 1, u, u + 1, -u - 1, -u, 1 - u}
    inside = sorted(x for x in found if -(2**31) <= x < 2**31)
    return inside[:30] + inside[-30:] + inside[30:-30:5]


@pytest.mark.parametrize("double", [True, False])
def test_reference_is_the_roundings_by_definition(double: bool):
    parts = [channels(1e-5, 0.9, 40, 1), awkward()]
    multiplier, shift = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
    x = np.random.default_rng(2).integers(-(2**31), 2**31, (len(shift), 50)) >> np.arange(50)[None, :] % 30
    got = reference(x, multiplier[:, None], shift[:, None], double)
    want = [
        [literal(int(v), int(m), int(s), double) for v in row] for row, m, s in zip(x, multiplier, shift, strict=True)
    ]
    assert np.array_equal(got, want)


def test_the_conditions_hold_exactly_where_a_line_is_right():
    """On whole ranges: a line satisfies the conditions if and only if it gives the reference's integers."""
    seen = np.concatenate([lines_of(seed) for seed in range(40)])
    assert 200 < seen.sum() < seen.size - 200


def lines_of(seed: int) -> Array:
    """Whether lines near the exact one are right, and that the conditions say so."""
    rng = np.random.default_rng(seed)
    multiplier, shift = (
        channels(1e-3, 0.9, 4, seed) if seed % 3 else (rng.integers(1, 8, 4) << 28, rng.integers(31, 42, 4))
    )
    low, high = -int(rng.integers(0, 200)), int(rng.integers(0, 200))
    least, greatest = np.full(4, rng.integers(-20000, 100)), np.full(4, rng.integers(101, 20000))
    if seed % 5 == 0:
        least = greatest - 150
    double = bool(seed % 2)
    where = conditions(multiplier, shift, low, high, least, greatest, double)
    assert where is not None
    x: Array = np.arange(int(least[0]), int(greatest[0]) + 1)[None, :]
    want = np.clip(reference(x, multiplier[:, None], shift[:, None], double), low, high)
    exact = exact_scale(multiplier, shift)
    seen: list[Array] = []
    for attempt in range(12):
        scale = exact if attempt == 0 else exact * (1 + rng.normal(size=4) * 10.0 ** -rng.integers(2, 8, 4))
        first, end = interval(scale, where)
        offset = (first + end) / 2 if attempt % 2 == 0 else rng.uniform(0.4, 1.0, 4)
        line = scale[:, None] * x + np.copysign(offset[:, None], x if where.signed else 1.0)
        right = (np.clip(np.trunc(line), low, high) == want).all(axis=1)
        holds = (scale[:, None] * where.least + offset[:, None] >= where.level).all(axis=1)
        holds &= (scale[:, None] * where.most + offset[:, None] < where.above).all(axis=1)
        assert np.array_equal(right, holds)
        seen.append(right)
    return np.concatenate(seen)


KINDS = {"f32": (2e-3, 0.5, False), "f32 toward zero": (2e-4, 0.9, True), "f64": (2e-6, 1e-4, False)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clamp", [(-128, 127), (0, 255), (-9, 246), (-255, 0)])
def test_what_is_proved_gives_the_integers_at_every_step(kind: str, clamp: tuple[int, int]):
    low, high, toward_zero = KINDS[kind]
    proved = 0
    for seed in range(6):
        multiplier, shift = channels(low, high, 1, 100 + seed)
        where = conditions(multiplier, shift, *clamp, *EVERYTHING)
        assert where is not None
        form = prove(exact_scale(multiplier, shift), where, toward_zero)
        if form is None or not kind.startswith(form.name):
            continue
        proved += 1
        for x in around(where, 0):
            want = literal(x, int(multiplier[0]), int(shift[0]), True)
            assert np.clip(compute(form, 0, x), *clamp) == np.clip(want, *clamp), (x, form)
    assert proved >= 2


@pytest.mark.parametrize("double", [True, False])
def test_two_terms_reach_where_one_does_not(double: bool):
    multiplier, shift = channels(1e-4, 4e-4, 40, 8)
    bound = np.array([2**22])
    where = conditions(multiplier, shift, -128, 127, -bound, bound, double)
    assert where is not None
    scale = exact_scale(multiplier, shift)
    assert prove32(scale, where, True) is None
    form = prove32x2(scale, where)
    assert form is not None and form.name == "f32x2" and prove(scale, where, True) is not None
    for channel in range(0, 40, 8):
        for x in around(where, channel):
            if abs(x) <= 2**22:
                want = literal(x, int(multiplier[channel]), int(shift[channel]), double)
                assert np.clip(compute(form, channel, x), -128, 127) == np.clip(want, -128, 127)


@pytest.mark.parametrize("toward_zero", [True, False])
def test_scales_with_numbers_between_results(toward_zero: bool):
    """Where a number is exactly between two results, both signs cannot always be right: then nothing is proved."""
    multiplier, shift = awkward()
    found = 0
    for channel in range(len(shift)):
        for clamp in ((-128, 127), (0, 255))[channel % 2 :]:
            m, s = multiplier[channel, None], shift[channel, None]
            where = conditions(m, s, *clamp, *EVERYTHING)
            assert where is not None
            form = prove(exact_scale(m, s), where, toward_zero)
            if form is None:
                continue
            found += 1
            for x in around(where, 0):
                if not form.signed and x < 0:
                    x = -x - 1
                assert np.clip(compute(form, 0, x), *clamp) == np.clip(literal(x, int(m[0]), int(s[0]), True), *clamp)
    assert found > 25


def test_every_accumulator_of_a_small_range():
    """Nothing but the definition: all numbers of the range, not only those at steps."""
    multiplier, shift = channels(2e-3, 2e-2, 3, 9)
    least, greatest = np.array([-40000] * 3), np.array([40000] * 3)
    where = conditions(multiplier, shift, -128, 127, least, greatest)
    assert where is not None
    form = prove(exact_scale(multiplier, shift), where, True)
    assert form is not None and form.name == "f32"
    x = np.arange(-40000, 40001)
    for channel in range(3):
        exact = x * float(form.scale[channel]) + np.copysign(float(form.offset[channel]), x)  # fits float64
        want = reference(x, multiplier[channel], shift[channel])
        assert np.array_equal(np.clip(np.trunc(exact), -128, 127), np.clip(want, -128, 127))


@pytest.mark.parametrize("part", ["scale", "offset"])
def test_a_wrong_form_is_noticed(part: str):
    multiplier, shift = channels(1e-3, 1e-2, 50, 7)
    where = conditions(multiplier, shift, -128, 127, *EVERYTHING)
    assert where is not None
    exact = exact_scale(multiplier, shift)
    form = prove(exact, where, True)
    assert form is not None
    wrong = replace(form, **{part: (getattr(form, part) * np.float32(1 + 1e-2)).astype(np.float32)})
    first, end = interval(wrong.scale.astype(np.float64), where)
    assert ((wrong.offset < first) | (wrong.offset >= end)).all()
    assert prove(exact * 1.01, where, True) is None


def test_few_values_are_all_tried():
    x = (np.arange(-128, 128) - 3) << 20
    for m, s in ((1 << 30, 31), (1518500250, 33), (2098085103, 32)):
        where = conditions_of_values(x, np.array([m]), np.array([s]), -(2**31), 2**31 - 1)
        assert where is not None
        form = prove(exact_scale(np.array([m]), np.array([s])), where, False)
        if form is not None:
            assert [compute(form, 0, int(v)) for v in x] == [literal(int(v), m, s, True) for v in x]
    small = np.arange(-128, 128) * 2
    where = conditions_of_values(small, np.array([1 << 30]), np.array([31]), -128, 127)
    assert where is not None
    form = prove(np.array([0.5]), where, False)
    assert form is not None and form.name == "f32"
    assert [compute(form, 0, int(v)) for v in small] == [v // 2 for v in small.tolist()]


def test_a_narrow_range_makes_easy_what_is_hard():
    """A channel without weights: its accumulator is its bias, however large."""
    multiplier, shift = channels(1e-9, 2e-9, 1, 3)
    bias = np.array([(1 << 30) + 77])
    where = conditions(multiplier, shift, -128, 127, bias, bias)
    assert where is not None
    form = prove(exact_scale(multiplier, shift), where, False)
    assert form is not None and form.name == "f32"
    assert compute(form, 0, int(bias[0])) == literal(int(bias[0]), int(multiplier[0]), int(shift[0]), True)


def test_what_the_arithmetic_cannot_prove_is_left():
    assert conditions(np.array([1 << 30]), np.array([63]), -128, 127, *EVERYTHING) is None
    assert conditions(np.array([-1]), np.array([40]), -128, 127, *EVERYTHING) is None
    assert conditions(np.array([1 << 30]), np.array([31]), *(-(2**31), 2**31 - 1), *EVERYTHING) is None
    where = conditions(np.array([(1 << 31) - 1]), np.array([31]), -128, 127, *EVERYTHING)
    assert where is not None
    assert prove(np.array([1 - 2.0**-31]), where, True) is None  # the conversion to integers would overflow


def test_a_clamp_that_leaves_one_number():
    multiplier, shift, bound = np.array([1 << 30]), np.array([35]), np.array([9000])
    where = conditions(multiplier, shift, 0, 0, -bound, bound)
    assert where is not None
    form = prove(exact_scale(multiplier, shift), where, False)
    assert form is not None
