"""The proof that a float rescale equals TFLite's double rounding, and that it notices a wrong scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from relay.interpreters.arithmetic import quantize_multiplier
from relay.lowering.rescale.proof import Form, points, prove32, prove64, reference

Array = npt.NDArray[Any]


def channels(low: float, high: float, count: int, seed: int) -> tuple[Array, Array]:
    """Random multipliers and shifts, as TFLite makes them, of scales between low and high."""
    scales = np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), count))
    pairs = [quantize_multiplier(float(s)) for s in scales]
    return np.array([m for m, _ in pairs], np.int64), np.array([31 - e for _, e in pairs], np.int64)


def literal(x: int, multiplier: int, shift: int) -> int:
    """SRDHM and RDBPOT in Python's integers, as gemmlowp defines them."""
    product = x * multiplier
    nudged = product + (1 << 30 if product >= 0 else 1 - (1 << 30))
    high = abs(nudged) >> 31
    high = high if nudged >= 0 else -high
    exponent = shift - 31
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if high < 0 else 0)
    return (high >> exponent) + (1 if (high & mask) > threshold else 0)


def compute(form: Form, x: Array) -> Array:
    """The form as numpy computes it, with one rounding more than fma: wide types make it the same here."""
    wide = x.astype(np.longdouble) * form.scale[:, None] + np.copysign(form.offset[:, None].astype(np.longdouble), x)
    return np.rint(wide.astype(form.scale.dtype))


@pytest.mark.parametrize("scale", [(1e-5, 1e-4), (1e-4, 1e-2), (1e-2, 0.9)])
def test_reference_is_double_rounding(scale: tuple[float, float]):
    multiplier, shift = channels(*scale, count=20, seed=1)
    x = np.random.default_rng(2).integers(-(2**31), 2**31, (20, 50)) >> np.arange(50)[None, :] % 30
    got = reference(x, multiplier[:, None], shift[:, None])
    want = [[literal(int(v), int(m), int(s)) for v in row] for row, m, s in zip(x, multiplier, shift, strict=True)]
    assert np.array_equal(got, want)


@pytest.mark.parametrize("scale", [(1e-5, 1e-4), (1e-4, 1e-3), (1e-3, 0.5)])
def test_float64_is_proved_and_equal(scale: tuple[float, float]):
    multiplier, shift = channels(*scale, count=300, seed=3)
    form = prove64(multiplier, shift, -128, 127)
    assert form is not None
    steps = points(multiplier, shift, -128, 127)
    anywhere = np.random.default_rng(4).integers(-(2**31), 2**31, (300, 200)) >> np.arange(200)[None, :] % 24
    for x in (steps, anywhere):
        want = np.clip(reference(x, multiplier[:, None], shift[:, None]), -128, 127)
        assert np.array_equal(np.clip(compute(form, x), -128, 127), want)


def test_float32_is_equal_where_it_is_proved():
    multiplier, shift = channels(2e-3, 0.05, count=400, seed=5)
    proved = 0
    for m, s in zip(multiplier[:, None], shift[:, None], strict=True):
        form = prove32(m, s, -128, 127)
        if form is None:
            continue
        proved += 1
        x = np.concatenate([points(m, s, -128, 127), np.random.default_rng(6).integers(-(2**20), 2**20, (1, 300))], 1)
        single = Form(form.scale.astype(np.float64), form.offset.astype(np.float64))
        wide = x.astype(np.float32).astype(np.float64) * single.scale[:, None]
        got = np.rint((wide + np.copysign(single.offset[:, None], x)).astype(np.float32))
        assert np.array_equal(np.clip(got, -128, 127), np.clip(reference(x, m[:, None], s[:, None]), -128, 127))
    assert proved > 350


def test_a_wrong_scale_is_noticed():
    multiplier, shift = channels(1e-3, 1e-2, count=50, seed=7)
    form = prove64(multiplier, shift, -128, 127)
    assert form is not None
    wrong = replace(form, scale=form.scale * (1 + 1e-3))
    x = points(multiplier, shift, -128, 127)
    want = np.clip(reference(x, multiplier[:, None], shift[:, None]), -128, 127)
    assert (np.clip(compute(wrong, x), -128, 127) != want).any(axis=1).all()


def test_few_values_are_all_tried():
    x = (np.arange(-128, 128) - 3) << 20
    multiplier, shift = np.array([1 << 30]), np.array([31])
    form = prove64(multiplier, shift, -(2**31), 2**31 - 1, x)
    assert form is not None
    assert np.array_equal(compute(form, x[None]), reference(x[None], multiplier[:, None], shift[:, None]))


def test_what_the_arithmetic_cannot_prove_is_left():
    assert prove64(np.array([1 << 30]), np.array([60]), -128, 127) is None
    assert prove32(np.array([0]), np.array([40]), -128, 127) is None
