"""The float form of the rescaled sum of two rescaled codes, compared on all pairs of codes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from relay.interpreters.arithmetic import quantize_multiplier
from relay.lowering.rescale.pairs import PairForm, Rescale, Side, prove_pair
from relay.lowering.rescale.steps import reference

CODES = np.arange(-128, 128)
SHIFT = 20


def rescale(scale: float, double: bool = True) -> Rescale:
    multiplier, exponent = quantize_multiplier(scale)
    return Rescale(multiplier, 31 - exponent, double)


def addition(
    scales: tuple[float, float, float], zeros: tuple[int, int, int], sign: int = 1, double: bool = True
) -> tuple[Side, Side, Rescale, int, int]:
    """TFLite's ADD (SUB) of int8 codes."""
    twice = 2 * max(scales[:2])
    sides: list[Side] = []
    for scale, zero, factor in zip(scales, zeros, (1, sign), strict=False):
        inner = rescale(scale / twice, double)
        shifted = (CODES - zero) << SHIFT
        added = factor * reference(shifted, np.array(inner.multiplier), np.array(inner.shift), double)
        sides.append(Side((CODES - zero).astype(np.float64), added, factor * inner.scale * 2.0**SHIFT))
    outer = rescale(twice / (2**SHIFT * scales[2]), double)
    return sides[0], sides[1], outer, -128 - zeros[2], 127 - zeros[2]


def single(value: Fraction) -> Fraction:
    """To nearest float32, halves to even."""
    excess = max(abs(value.numerator).bit_length() - 24, 0)
    return Fraction(round(Fraction(value.numerator, 1 << excess)) << excess, value.denominator)


def compute(form: PairForm, a: int, b: int) -> int:
    """One pair through the form, in exact fractions and explicit roundings."""
    x, y = (b, a) if form.swapped else (a, b)
    first, second, offset = (Fraction(float(n)) for n in (form.first, form.second, form.offset))
    total = single(x * first + single(y * second + (0 if form.away else offset)))
    if not form.away:
        return round(total)
    total = single(total + (offset if total >= 0 else -offset))
    return floor(total) if total >= 0 else ceil(total)


def differences(form: PairForm, case: tuple[Side, Side, Rescale, int, int], step: int) -> int:
    a, b, outer, low, high = case
    rows = range(0, 256, step)
    columns = range(0, 256, 3)
    sums = a.added[list(rows)][:, None] + b.added[list(columns)][None, :]
    want = np.clip(outer.of(sums), low, high)
    got = [[compute(form, int(a.values[r]), int(b.values[c])) for c in columns] for r in rows]
    return int((np.clip(np.array(got), low, high) != want).sum())


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", range(4))
def test_a_form_is_found_and_right(seed: int, sign: int):
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.uniform(np.log(0.01), np.log(0.3), 3)).tolist()
    zeros = rng.integers(-128, 128, 3).tolist()
    case = addition(tuple(scales), tuple(zeros), sign, double=seed != 3)
    form = prove_pair(*case)
    assert form is not None and differences(form, case, 37) == 0


@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.2), (0.1, 0.1, 0.1), (0.25, 0.5, 1.0), (0.3, 0.1, 0.4)])
def test_sums_between_two_results_go_away_from_zero(scales: tuple[float, float, float]):
    case = addition(scales, (0, 0, 0))
    form = prove_pair(*case)
    assert form is not None and differences(form, case, 17) == 0


def test_a_wrong_form_is_noticed():
    case = addition((0.05, 0.07, 0.09), (3, -5, 11))
    form = prove_pair(*case)
    assert form is not None
    assert differences(replace(form, first=form.first * np.float32(1.001)), case, 9) > 0
    a, b, outer, low, high = case
    assert prove_pair(replace(a, factor=a.factor * 1.001), b, outer, low, high) is None


def test_what_the_arithmetic_cannot_prove_is_left():
    a, b, outer, low, high = addition((0.05, 0.07, 0.09), (3, -5, 11))
    assert prove_pair(replace(a, added=a.added << 10), b, outer, low, high) is None
    assert prove_pair(replace(a, factor=2.0**-30), b, outer, low, high) is None
