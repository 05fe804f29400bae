"""Statistics of a tensor over the calibration samples. They do not depend on how the samples are spread over workers.

A histogram has `2 * HALF` bins of width `2^exponent` around 0, with the least exponent for which every element fits.
Two histograms can be added exactly, in any order: the bins of the finer one are halves, quarters, ... of those of the
coarser one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed

HALF = 4096
"""The number of bins on each side of 0."""
FEATURES = ("range", "histogram", "means", "moments")
"""The kinds of statistics: extremes, a histogram, means per channel, and the second moments of a layer's input."""


@dataclass(eq=False)
class Statistics:
    """Statistics of one tensor over all samples. `moving_low` and `moving_high` are exponential moving averages of the
    samples' extremes."""

    low: float = 0.0
    high: float = 0.0
    moving_low: float = 0.0
    moving_high: float = 0.0
    samples: int = 0
    exponent: int = 0
    counts: Array | None = None
    """The histogram: int64 counts of `2 * HALF` bins."""
    sums: Array | None = None
    """The sum of the elements at each index of the last axis, in float64."""
    rows: int = 0
    """The number of elements that each of `sums` adds up."""

    def merge(self, other: Statistics, momentum: float) -> None:
        """Add the statistics of a later sample; `momentum` is the weight of the previous moving averages."""
        if self.samples == 0:
            self.low, self.high = other.low, other.high
            self.moving_low, self.moving_high = other.low, other.high
        else:
            self.low, self.high = min(self.low, other.low), max(self.high, other.high)
            self.moving_low = momentum * self.moving_low + (1 - momentum) * other.low
            self.moving_high = momentum * self.moving_high + (1 - momentum) * other.high
        self.samples += other.samples
        self._merge_counts(other)
        if other.sums is not None:
            self.sums = other.sums.copy() if self.sums is None else self.sums + other.sums
            self.rows += other.rows

    def _merge_counts(self, other: Statistics) -> None:
        if other.counts is None:
            return
        if self.counts is None:
            self.counts, self.exponent = other.counts.copy(), other.exponent
            return
        exponent = max(self.exponent, other.exponent)
        self.counts = coarsen(self.counts, exponent - self.exponent) + coarsen(other.counts, exponent - other.exponent)
        self.exponent = exponent

    @property
    def means(self) -> Array | None:
        """The mean of each channel (index of the last axis); None if sums were not collected."""
        return None if self.sums is None or not self.rows else self.sums / self.rows

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON values that `from_json` restores to the last bit."""
        row: dict[str, Any] = {
            name: getattr(self, name) for name in ("low", "high", "moving_low", "moving_high", "samples")
        }
        if self.counts is not None:
            used = np.flatnonzero(self.counts)
            first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
            row |= {"exponent": self.exponent, "first": first, "counts": self.counts[first:last].tolist()}
        if self.sums is not None:
            row |= {"sums": self.sums.tolist(), "rows": self.rows}
        return row

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Statistics:
        """Restore statistics from the values of `to_json`."""
        found = Statistics(
            *(float(row[name]) for name in ("low", "high", "moving_low", "moving_high")), samples=int(row["samples"])
        )
        if "counts" in row:
            found.exponent, first, counts = int(row["exponent"]), int(row["first"]), row["counts"]
            found.counts = np.zeros(2 * HALF, np.int64)
            found.counts[first : first + len(counts)] = counts
        if "sums" in row:
            found.sums, found.rows = np.array(row["sums"], np.float64), int(row["rows"])
        return found


def coarsen(counts: Array, steps: int) -> Array:
    """The histogram with bins `2^steps` times as wide."""
    if steps == 0:
        return counts
    result = np.zeros_like(counts)
    bins = (np.arange(-HALF, HALF) >> min(steps, 62)) + HALF
    np.add.at(result, bins, counts)
    return result


def observe(array: Array, name: str, features: frozenset[str]) -> Statistics:
    """The statistics of one sample's tensor. Raises InvalidArgument for NaN and infinities, which cannot be
    quantized."""
    flat = array.reshape(-1)
    if not flat.size:
        return Statistics(samples=1)
    low, high = float(flat.min()), float(flat.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InvalidArgument(
            f"calibration: value {name}", "is not finite", "look for NaN and infinity in inputs and weights"
        )
    found = Statistics(low, high, low, high, 1)
    if "histogram" in features:
        found.exponent = int(np.frexp(max(-low, high))[1]) - HALF.bit_length() + 1 if max(-low, high) > 0 else -1000
        found.counts = _count(flat, found.exponent)
    if "means" in features:
        rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
        found.sums, found.rows = rows.sum(axis=0, dtype=np.float64), rows.shape[0]
    return found


def _count(flat: Array, exponent: int) -> Array:
    if exponent == -1000:
        counts = np.zeros(2 * HALF, np.int64)
        counts[HALF] = flat.size
        return counts
    wide = flat if exponent > -120 else flat.astype(np.float64)
    scaled = np.ldexp(wide, -exponent) if exponent <= -120 else wide * wide.dtype.type(2.0**-exponent)
    bins = np.floor(scaled, out=scaled).astype(np.int32)
    bins += HALF
    return np.bincount(np.clip(bins, 0, 2 * HALF - 1, out=bins), minlength=2 * HALF).astype(np.int64)


@dataclass(eq=False)
class Moments:
    """Sums of products of the inputs that a layer multiplies with its weights: float64 [groups, taps, taps]."""

    total: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))
    rows: int = 0

    def merge(self, other: Moments) -> None:
        self.total = other.total.copy() if not self.total.size else self.total + other.total
        self.rows += other.rows

    def to_json(self) -> dict[str, Any]:
        """The moments as JSON values, with the bytes of the sums in base64."""
        data = base64.b64encode(np.ascontiguousarray(self.total, "<f8").tobytes()).decode()
        return {"shape": list(self.total.shape), "rows": self.rows, "data": data}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Moments:
        """Restore moments from the values of `to_json`."""
        flat = np.frombuffer(base64.b64decode(row["data"]), "<f8")
        return Moments(flat.reshape([int(d) for d in cast(list[int], row["shape"])]).astype(np.float64), row["rows"])


def malformed(where: str, error: Exception) -> Malformed:
    return Malformed(where, f"is no calibration that was saved: {error!r}", "calibrate anew")
