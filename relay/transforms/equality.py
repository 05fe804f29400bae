"""Whether two runs gave the same results: integers exactly, floats within a tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.dialects.attributes import Array


def difference(found: Sequence[Array], wanted: Sequence[Array], tolerance: float = 0.0) -> str | None:
    """How the results differ from the wanted ones, in words; None if they do not.

    Floats may differ by `tolerance` times the largest finite magnitude that is wanted; NaN equals NaN.
    """
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        wrong = ~_same(a, b, tolerance)
        if wrong.any():
            first = np.unravel_index(int(wrong.argmax()), wrong.shape)
            where = ", ".join(str(int(i)) for i in first)
            count = f"{int(wrong.sum())} of {wrong.size}"
            return f"result {number} differs in {count} elements, first [{where}]: {a[first]} instead of {b[first]}"
    return None


def _same(found: Array, wanted: Array, tolerance: float) -> Array:
    """Element by element."""
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
