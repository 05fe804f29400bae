"""Products that are added in float64 and rounded to float32: where one multiply-add in float32 is the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relay.lowering.rescale.products import extent_of_number, extent_of_sum


def floating(digits: int, exponent: int) -> float:
    return digits * 2.0**exponent


FLOATS = st.builds(floating, st.integers(-(2**24), 2**24), st.integers(-70, 30))


@given(st.integers(-255, 255), FLOATS, st.integers(-255, 255), FLOATS, FLOATS)
def test_a_sum_that_is_said_to_be_exact_is(a: int, first: float, b: int, second: float, added: float):
    inner = extent_of_sum(8, second, extent_of_number(added))
    if inner is None:
        return
    assert Fraction(b * second + added) == b * Fraction(second) + Fraction(added)
    y = float(np.float32(b * second + added))
    if extent_of_sum(8, first, inner) is not None:
        assert Fraction(a * first + y) == a * Fraction(first) + Fraction(y)


def test_what_is_refused():
    assert extent_of_number(0.1) is None and extent_of_number(float("inf")) is None, "no floats of 32 bits"
    assert extent_of_sum(8, 0.5, extent_of_number(3.0)) is not None
    assert extent_of_sum(8, 2.0**-60, extent_of_number(3.0)) is None, "too far apart"
    assert extent_of_sum(32, 0.5, extent_of_number(3.0)) is None, "a sum is no code"
    assert extent_of_sum(8, 2.0**120, extent_of_number(3.0)) is None, "too large"
