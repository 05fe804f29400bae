"""Products in float64 that are rounded, as integer arithmetic: the formula in numpy is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.lowering.rescale.double_products import multiplier_of


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
