"""Comparison of two runs' results: integers exactly, floats within a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array


@dataclass(frozen=True)
class Mismatch:
    """How an array differs from the expected one."""

    count: int
    """The number of elements that differ."""
    size: int
    """The number of elements of each of the two arrays."""
    first: str
    """The index of the first element that differs: `0, 3`."""
    found: object
    """The element found at the index of the first difference."""
    wanted: object
    """The expected element at the index of the first difference."""
    largest: float
    """The largest absolute difference of two elements; NaN where one of them is not finite."""

    def __str__(self) -> str:
        where = f"{self.count} of {self.size} elements, first [{self.first}]"
        return f"differs in {where}: {self.found} instead of {self.wanted}"


def difference(found: Sequence[Array], wanted: Sequence[Array], tolerance: float = 0.0) -> str | None:
    """The differences between the results `found` and the expected results `wanted`, in words; None if there are none.

    Floats may differ by `tolerance` times the largest finite magnitude that is expected; NaN equals NaN.
    """
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        if (wrong := mismatch(a, b, tolerance)) is not None:
            return f"result {number} {wrong}"
    return None


def mismatch(found: Array, wanted: Array, tolerance: float = 0.0) -> Mismatch | None:
    """The differences of an array from an expected one of the same type and shape; None if there are none. See
    `difference`."""
    wrong = ~_same(found, wanted, tolerance)
    if not wrong.any():
        return None
    first = np.unravel_index(int(wrong.argmax()), wrong.shape)
    a, b = found[wrong], wanted[wrong]
    with np.errstate(invalid="ignore", over="ignore"):
        largest = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())
    where = ", ".join(str(int(i)) for i in first)
    return Mismatch(int(wrong.sum()), wrong.size, where, found[first], wanted[first], largest)


def _same(found: Array, wanted: Array, tolerance: float) -> Array:
    """A boolean array: whether corresponding elements are equal within the tolerance."""
    equal = np.asarray(found == wanted)
    if wanted.dtype.kind != "f":
        return equal
    equal |= np.isnan(found) & np.isnan(wanted)
    if tolerance > 0.0:
        finite = np.isfinite(wanted)
        limit = tolerance * float(np.abs(wanted[finite]).max(initial=0.0))
        with np.errstate(invalid="ignore"):
            equal |= finite & (np.abs(found - wanted) <= limit)
    return equal
