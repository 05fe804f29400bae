"""Products in float64 that are rounded, as integer arithmetic: the formula in numpy is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.lowering.rescale.double_products import multiplier_of, steps_of


def rounded(x: Array, scale: float) -> Array:
    """`round(f64(x) * scale)`, halves away from zero."""
    product = x.astype(np.float64) * scale
    whole, part = np.trunc(product), np.abs(product - np.trunc(product))
    return whole + np.sign(product) * (part >= 0.5)


SCALES = [0.5, 0.25, 0.75, 3 / 256, 1 / 3, 2.0**-12, 0.998, *np.exp2(np.random.default_rng(0).uniform(-12, 0, 200))]


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (-256, 255), (0, 255)])
def test_integers_are_those_of_the_product(low: int, high: int):
    random, found = np.random.default_rng(1), 0
    levels = np.arange(low + 1, high + 1)
    for scale in SCALES:
        shift = 31 - int(np.frexp(scale)[1]) - 1
        multiplier = multiplier_of(scale, shift, levels)
        if multiplier is None:
            continue
        found += 1
        edges = np.floor((levels - 0.5) / scale).astype(np.int64)[:, None] + np.arange(-3, 4)
        x = np.concatenate([edges.reshape(-1), random.integers(-(2**31), 2**31, 1000), [-(2**31), 2**31 - 1]])
        x = np.clip(x, -(2**31), 2**31 - 1)
        integers = (x * multiplier + (1 << shift - 1)) >> shift
        assert np.array_equal(np.clip(integers, low, high), np.clip(rounded(x, scale), low, high)), scale
    assert found > 0.95 * len(SCALES)


def test_halves_of_both_signs_are_rounded_away_from_zero():
    multiplier = multiplier_of(0.5, 31, np.arange(-127, 128))
    assert multiplier is not None
    x = np.arange(-200, 201)
    assert np.array_equal((x * multiplier + (1 << 30)) >> 31, rounded(x, 0.5))


DECIMALS = [1.5e-4, 3e-4, 7e-5, 1e-4, 0.013, 0.35, 0.7, 1e-5, *np.exp2(np.random.default_rng(0).uniform(-17, 0, 30))]


@pytest.mark.parametrize(
    "scale", [pytest.param(scale, marks=pytest.mark.ci if scale < 2e-5 else ()) for scale in DECIMALS]
)
def test_magnitudes_are_rounded_as_their_product(scale: float):
    """All of them, for decimal scales too, whose products float64 rounds to halves or to less."""
    most = 137
    steps = steps_of(scale, most)
    assert steps is not None
    u = np.arange(steps.top + 2)
    assert np.array_equal(np.minimum(steps(np.minimum(u, steps.top)), most), np.minimum(rounded(u, scale), most))
    assert int(steps.top * steps.multiplier) + (1 << steps.shift) < 2**63


def test_decimal_scales_have_a_cut_where_float64_misses_halves():
    halves = np.arange(10000, 860000, 20000)  # times 0.00015: 1.5, 4.5, ..., less one unit for some
    assert set((np.float64(1.5e-4) * halves % 3 == 1.5).tolist()) == {True, False}
    steps = steps_of(1.5e-4, 137)
    assert steps is not None and steps.cut is not None
    assert multiplier_of(1.5e-4, 43, np.arange(-137, 119)) is None
