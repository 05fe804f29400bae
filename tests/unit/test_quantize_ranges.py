"""Statistics and what each method makes of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.quantize.parameters import of_range
from relay.quantize.ranges import METHODS, check_method
from relay.quantize.rounding import turn
from relay.quantize.statistics import HALF, Statistics, coarsen, observe
from relay.quantize.weights import fit_bias, kernel_of

ALL = frozenset({"range", "histogram", "means"})


def statistics(*arrays: Array, momentum: float = 0.9) -> Statistics:
    found = Statistics()
    for array in arrays:
        found.merge(observe(array.astype(np.float32), "x", ALL), momentum)
    return found


def chosen(method: str, found: Statistics, percentile: float = 99.9) -> tuple[float, float]:
    return METHODS[method][0](found, "int8", percentile)


NORMAL = np.random.default_rng(0).normal(0, 1, 20000)
OUTLIER = np.append(NORMAL, 50.0)


@settings(max_examples=40, deadline=None)
@example(0.0, 5e-324, "int8")
@given(st.floats(-100, 100), st.floats(-100, 100), st.sampled_from(["int8", "uint8"]))
def test_parameters_cover_the_range_and_0_exactly(a: float, b: float, dtype: str):
    low, high = min(a, b), max(a, b)
    found = of_range(low, high, dtype)
    assert found.reals(np.array([found.zero_point], dtype))[0] == 0
    assert found.low <= found.zero_point <= found.high
    least, most = found.range
    slack = found.scale * 0.51 + 1e-6
    assert least <= min(low, 0) + slack and most >= max(high, 0) - slack
    reals = np.linspace(max(low, least), max(min(high, most), max(low, least)), 50).astype(np.float32)
    assert np.abs(found.reals(found.codes(reals)) - reals).max() <= found.scale * 0.5001 + 1e-6


def test_parameters_are_those_of_the_specification():
    assert of_range(0, 6, "int8").zero_point == -128 and of_range(0, 6, "int8").scale == np.float32(6 / 255)
    assert of_range(-1, 1, "uint8").zero_point == 128
    wide = of_range(-3, 1, "int16")
    assert wide.zero_point == 0 and wide.scale == np.float32(3 / 32767)
    assert of_range(0, 0, "int8").scale == 1.0


def test_min_max_and_moving_average():
    found = statistics(np.array([-1.0, 2.0]), np.array([-3.0, 1.0]), momentum=0.75)
    assert chosen("min-max", found) == (-3.0, 2.0)
    assert chosen("moving-average", found) == (-1.5, 1.75)


def test_percentile_leaves_out_its_share_at_each_end():
    low, high = chosen("percentile", statistics(OUTLIER), 99.0)
    assert low == pytest.approx(np.percentile(OUTLIER, 1), abs=0.05)
    assert high == pytest.approx(np.percentile(OUTLIER, 99), abs=0.05)
    assert chosen("percentile", statistics(NORMAL), 100.0) == chosen("min-max", statistics(NORMAL))


@pytest.mark.parametrize("method", ["mse", "kl"])
def test_a_uniform_range_is_kept(method: str):
    low, high = chosen(method, statistics(np.linspace(-1, 1, 100000)))
    assert low < -0.95 and high > 0.95


def test_kl_leaves_an_outlier_out():
    low, high = chosen("kl", statistics(OUTLIER))
    assert 2 < high < 30 and low < -2


def test_mse_has_the_least_error_of_all_methods():
    numbers = np.append(np.repeat(NORMAL, 20), 12.0)

    def error(method: str) -> float:
        found = of_range(*chosen(method, statistics(numbers)), "int8")
        return float(np.square(found.reals(found.codes(numbers)) - numbers).mean())

    errors = {method: error(method) for method in METHODS}
    assert errors["mse"] <= min(errors.values()) * 1.01 and errors["mse"] < errors["min-max"] / 1.5


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_histograms_add_up_in_any_order(exponents: list[int], order: object):
    arrays = [np.random.default_rng(n).normal(0, 2.0**e, 50) for n, e in enumerate(exponents)]
    one, other = statistics(*arrays), statistics(*arrays[::-1])
    assert one.exponent == other.exponent and one.counts is not None and other.counts is not None
    assert np.array_equal(one.counts, other.counts) and one.counts.sum() == 50 * len(arrays)
    whole = observe(np.concatenate(arrays).astype(np.float32), "x", ALL)
    assert whole.counts is not None and whole.exponent == one.exponent
    assert np.array_equal(whole.counts, one.counts)


def test_coarsening_keeps_every_number():
    counts = np.arange(2 * HALF)
    assert coarsen(counts, 3).sum() == counts.sum() and coarsen(counts, 0) is counts


def test_statistics_survive_json():
    found = statistics(NORMAL.reshape(-1, 4), np.zeros((2, 4)), OUTLIER[-4:].reshape(1, 4))
    again = Statistics.from_json(json.loads(json.dumps(found.to_json())))
    assert again.to_json() == found.to_json()
    assert again.means is not None and found.means is not None and np.array_equal(again.means, found.means)


def test_what_is_not_finite_is_an_error():
    with pytest.raises(InvalidArgument, match="value v3: is not finite"):
        observe(np.array([1.0, np.nan], np.float32), "v3", ALL)
    with pytest.raises(InvalidArgument, match="method 'max' is unknown; use min-max, moving-average"):
        check_method("max", 99, "here")
    with pytest.raises(InvalidArgument, match="percentile is 20"):
        check_method("percentile", 20, "here")


def test_kernels_and_biases_that_would_overflow():
    weights = np.array([[1.0, -2.0], [0.0, 0.0], [1e-9, 0.0]], np.float32)
    kernel = kernel_of(weights, 0, "int8", True)
    data = of_range(0, 1, "int8")
    fitted = fit_bias(kernel, np.array([0.0, 5.0, 5.0], np.float32), data)
    codes = np.array([0.0, 5.0, 5.0]) / (data.scale * fitted.scale.astype(np.float64))
    assert np.abs(codes).max() <= 2**30 * 1.001 and fitted.scale[0] == kernel.scale[0]
    assert fitted.codes(weights).tolist() == [[64, -127], [0, 0], [0, 0]]
    unsigned = kernel_of(np.array([[-1.0, 3.0]], np.float32), 0, "uint8", True)
    assert unsigned.scale.size == 1 and unsigned.reals(np.array([[unsigned.zero_point]], np.uint8))[0, 0] == 0


def test_adaptive_rounding_never_does_worse_than_the_nearest():
    random = np.random.default_rng(5)
    inputs = random.normal(0, 1, (200, 3)) @ random.normal(0, 1, (3, 12))
    moments = inputs.T @ inputs / 200
    positions, steps = random.normal(0, 20, (6, 12)), np.full(6, 0.1)

    def error(codes: Array) -> Array:
        difference = (codes - positions) * steps[:, None]
        return np.einsum("ok,kl,ol->o", difference, moments, difference)

    turned = turn(positions, steps, moments, -127, 127)
    assert np.all(error(turned) <= error(np.rint(positions)) + 1e-12)
    assert error(turned).sum() < 0.7 * error(np.rint(positions)).sum()
    assert np.all(np.abs(turned - positions) < 1)
