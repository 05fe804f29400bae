"""Methods that choose the range of reals to be quantized from the statistics of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.quantize.parameters import Parameters, of_range
from relay.quantize.statistics import HALF, Statistics, coarsen

Range = tuple[float, float]
STEPS = 64
"""The number of candidates that `kl` and `mse` try for each end of the range."""
CROWD = 32
"""The average number of elements that a histogram bin should hold for the method `kl`, which compares distributions by
their Kullback-Leibler divergence, so that the bin's share of all elements is significant."""


def union(ranges: Sequence[Range]) -> Range:
    """The smallest range that contains all ranges."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def min_max(found: Statistics, dtype: str, percentile: float) -> Range:
    """The smallest and the largest element of all samples."""
    return found.low, found.high


def moving_average(found: Statistics, dtype: str, percentile: float) -> Range:
    """Exponential moving averages of the samples' smallest and largest elements."""
    return found.moving_low, found.moving_high


def percentile_range(found: Statistics, dtype: str, percentile: float) -> Range:
    """The range that leaves out `100 - percentile` percent of the elements at each end."""
    counts = _counts(found)
    below: Array = np.cumsum(counts)
    left = below[-1] * (1 - percentile / 100)
    first = int(np.count_nonzero(below <= left))
    last = int(np.count_nonzero(below < below[-1] - left))
    width = 2.0**found.exponent
    low, high = (first - HALF) * width, (last + 1 - HALF) * width
    return max(found.low, low), min(found.high, high)


def least_squares(found: Statistics, dtype: str, percentile: float) -> Range:
    """The range whose quantization has the least mean squared error over the histogram."""
    centers, weights = _occupied(found)

    def error(parameters: Parameters) -> float:
        step: Array = np.rint(centers / parameters.scale) + parameters.zero_point
        difference = centers - parameters.scale * (
            np.clip(step, parameters.low, parameters.high) - parameters.zero_point
        )
        return float((weights * difference * difference).sum())

    return _search(found, dtype, error)


def entropy(found: Statistics, dtype: str, percentile: float) -> Range:
    """The range with the least Kullback-Leibler divergence between the histogram and its quantized form.

    Elements outside of the range count as its ends; in the quantized form, all bins of a quantized value share their
    count equally. The divergence expected by chance from few samples, `(bins - codes) / (2 samples)`, is subtracted;
    bins are merged until they hold `CROWD` elements on average.
    """
    while (bins := np.count_nonzero(counts := _counts(found))) > 512 and counts.sum() < CROWD * bins:
        found = replace(found, counts=coarsen(counts, 1), exponent=found.exponent + 1)
    centers, values = _occupied(found)

    def divergence(parameters: Parameters) -> float:
        step: Array = np.rint(centers / parameters.scale) + parameters.zero_point
        inside = (step >= parameters.low) & (step <= parameters.high)
        if not inside.any():
            return np.inf
        code = step[inside].astype(np.int64) - parameters.low
        original = values[inside].copy()
        kept = original.copy()
        original[0] += values[: int(np.argmax(inside))].sum()
        original[-1] += values[len(inside) - int(np.argmax(inside[::-1])) :].sum()
        bins = parameters.high - parameters.low + 1
        alike = np.bincount(code, kept, bins) / np.maximum(np.bincount(code, minlength=bins), 1)
        p, q = original / original.sum(), alike[code] / alike[code].sum()
        chance = (original.size - np.count_nonzero(alike)) / (2 * values.sum())
        return float((p * np.log(p / q)).sum() - chance)

    return _search(found, dtype, divergence)


METHODS: dict[str, tuple[Callable[[Statistics, str, float], Range], str]] = {
    "min-max": (min_max, "range"),
    "moving-average": (moving_average, "range"),
    "percentile": (percentile_range, "histogram"),
    "kl": (entropy, "histogram"),
    "mse": (least_squares, "histogram"),
}
"""The methods by name, each with the feature of the statistics that it needs."""


def check_method(method: str, percentile: float, where: str) -> str:
    """The kind of statistics that a method needs: "range" or "histogram". Raises InvalidArgument for an unknown method,
    or a percentile that is not above 50 and at most 100."""
    if method not in METHODS:
        raise InvalidArgument(where, f"method {method!r} is unknown", f"use {', '.join(METHODS)}")
    if not 50 < percentile <= 100:
        raise InvalidArgument(where, f"percentile is {percentile}", "it lies above 50, up to 100")
    return METHODS[method][1]


def _counts(found: Statistics) -> Array:
    assert found.counts is not None
    return found.counts


def _occupied(found: Statistics) -> tuple[Array, Array]:
    """The centers of the histogram's bins that are not empty, and their counts."""
    counts = _counts(found)
    used = np.flatnonzero(counts)
    return (used - HALF + 0.5) * 2.0**found.exponent, counts[used].astype(np.float64)


def _search(found: Statistics, dtype: str, loss: Callable[[Parameters], float]) -> Range:
    """The range with the least loss: first both ends are shrunk alike, then each end alone. The whole range wins a
    tie."""
    shares = [step / STEPS for step in range(STEPS, 0, -1)]
    best = (found.low, found.high)
    least = loss(of_range(*best, dtype))

    def offer(candidate: Range) -> None:
        nonlocal best, least
        if (value := loss(of_range(*candidate, dtype))) < least:
            best, least = candidate, value

    for share in shares[1:]:
        offer((found.low * share, found.high * share))
    for share in shares[1:] if best[0] < 0 < best[1] else ():
        offer((best[0], found.high * share))
    for share in shares[1:] if best[0] < 0 < best[1] else ():
        offer((found.low * share, best[1]))
    return best
