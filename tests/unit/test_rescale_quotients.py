"""Floats that are divided by a scale and rounded: what two multiply-adds give, in exact fractions, on every side."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.lowering.rescale.proof import Form
from relay.lowering.rescale.quotients import find_form, inverse_of, levels_of, quotients, reaches
from tests.unit.test_rescale_proof import rounded

SCALES = [float(np.float32(scale)) for scale in (0.05, 1.0, 0.125, 2 / 255, 0.023528477, 1e-3, 7.0)]


def found(scale: float, levels: int) -> tuple[Form, Array, Array]:
    """The form of a scale that has one, floats around levels, and which of them reach them."""
    around, reached = levels_of(scale, levels)
    form = find_form(scale, around, reached, signed=True)
    assert form is not None and form.name == "f32x2"
    return form, around, reached


def compute(form: Form, x: float) -> int:
    """A number that is not negative through the form, in exact fractions and explicit roundings."""
    assert form.rest is not None
    scale, offset, rest = (Fraction(float(column[0])) for column in (form.scale, form.offset, form.rest))
    first = rounded(Fraction(x) * rest + offset, 24, False)
    return floor(rounded(Fraction(x) * scale + first, 24, False))


def quotient(x: float, scale: float) -> int:
    """The quotient in float32, its halves away from zero."""
    return floor(Fraction(float(np.float32(x) / np.float32(scale))) + Fraction(1, 2))


@pytest.mark.parametrize("scale", SCALES)
def test_around_every_level_the_form_gives_the_rounded_quotient(scale: float):
    form, around, _ = found(scale, 131)
    for x in around.reshape(-1).tolist():
        assert compute(form, x) == quotient(x, scale), x


def test_between_levels_too():
    rng = np.random.default_rng(0)
    for scale in SCALES:
        form, _, _ = found(scale, 255)
        numbers = rng.uniform(0, 255 * scale, 300).astype(np.float32).tolist()
        small = (rng.uniform(0, scale, 100) * 10.0 ** -rng.integers(0, 30, 100)).astype(np.float32).tolist()
        for x in [0.0, *numbers, *small]:
            assert compute(form, x) == quotient(x, scale), x


@pytest.mark.parametrize("part", ["scale", "offset", "rest"])
def test_a_wrong_form_is_noticed(part: str):
    form, around, reached = found(0.05000000074505806, 131)
    right = {name: float(column[0]) for name, column in zip(("scale", "offset", "rest"), form.columns, strict=True)}
    assert np.array_equal(reaches(around, right["scale"], right["rest"], right["offset"]), reached)
    wrong = right | {part: {"scale": 20.0001, "rest": 3e-5, "offset": 0.5 + 2.0**-20}[part]}
    assert not np.array_equal(reaches(around, wrong["scale"], wrong["rest"], wrong["offset"]), reached)


def test_levels_that_no_form_reaches_have_none():
    around, reached = levels_of(0.05, 131)
    assert find_form(0.05, around, np.zeros_like(reached), signed=True) is None
    reached[60] ^= True
    assert find_form(0.05, around, reached, signed=True) is None


@pytest.mark.parametrize("scale", SCALES)
def test_two_products_give_the_quotient_rounded_to_even(scale: float):
    found = inverse_of(scale, 255)
    assert found is not None and min(found) >= 0
    around, _ = levels_of(scale, 255)
    random = np.random.default_rng(0).uniform(0, 256 * scale, 500).astype(np.float32)
    for x in [0.0, 1e-30, *around.reshape(-1).tolist(), *random.tolist()]:
        last = rounded(Fraction(x) * Fraction(found[1]), 24, False)
        total = rounded(Fraction(x) * Fraction(found[0]) + last, 24, False)
        assert round(total) == round(Fraction(float(np.float32(x) / np.float32(scale)))), x


def test_other_factors_are_noticed():
    around, _ = levels_of(0.05000000074505806, 255)
    wanted = np.rint(around / np.float32(0.05))
    for scale, rest in ((20.0, 0.0), (19.999998092651367, 0.0), (20.0001, -1e-4)):
        assert not np.array_equal(np.rint(quotients(around, scale, rest)[0]), wanted)
