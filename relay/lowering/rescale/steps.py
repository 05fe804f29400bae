"""The conditions under which a linear function gives a rescale's results, computed exactly, in integers.

`tosa.apply_scale` of an i32 x, a multiplier M and a shift S is

    y(x) = floor((x * M + 2^(S-1) + n) / 2^S),  n = copysign(2^30, x) for DOUBLE_ROUND with S > 31, else 0

a monotone step function with `y(0) = 0`. On both sides of zero it rises (falls) by one at certain magnitudes:
`y(u) >= j` from `u = P_j` on, `y(-u) <= -j` from `u = N_j` on. With `q, r = divmod(j * 2^S - 2^(S-1) - n, M)`:
`P_j = q + (r > 0)` and `N_j = q + 1`: they differ only where a number is exactly between two results.

A form that truncates `line(u) = scale * u + offset` and gives the result x's sign is monotone, too. It is right for
every x, after clamping to low..high, if and only if, for every level j > 0, the condition on the left holds if j is
inside of low..high, and the one on the right if -j is:

    line(P_j) >= j > line(P_j - 1)        line(N_j) >= j > line(N_j - 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array

LIMIT = 2**31
"""The bound that multipliers have to be below: they have at most 31 bits."""

SHIFTS = range(31, 63)
NEVER = 2.0**100
"""A bound that stands for "no condition": it is larger than the magnitude of any input x, so that a condition on inputs
of this magnitude holds for every rescale."""

CELLS = 1 << 22
"""The most conditions that a proof may have to check: one for each channel and each integer (or each input) at which
the results are compared."""


@dataclass(frozen=True)
class Conditions:
    """Conditions under which truncating `line(u) = scale * u + offset` gives the results of a rescale: `line(least) >=
    level` and `line(most) < above`. `least` and `most` are magnitudes of inputs, integers in float64; `level` and
    `above` are magnitudes of results. All are arrays with a row for each channel.

    `signed`: whether the result has to get the sign of the input; otherwise inputs below zero only have to stay below
    level 1, which `line(0)` ensures. `largest`: an upper bound of the inputs' magnitudes, per channel.
    """

    least: Array
    level: Array
    most: Array
    above: Array
    signed: bool
    largest: Array

    def rows(self, which: Array) -> Conditions:
        """Return these conditions for only the channels that `which` selects: an array of indices or a mask."""
        level, above = (a[which] if len(a) > 1 else a for a in (self.level, self.above))
        return Conditions(self.least[which], level, self.most[which], above, self.signed, self.largest[which])


def reference(x: Array, multiplier: Array, shift: Array, double: bool = True) -> Array:
    """Return `tosa.apply_scale` computed in int64, for shifts up to 62."""
    nudge = np.where(shift > 31, np.where(x >= 0, 1 << 30, -(1 << 30)), 0) if double else 0
    return (x * multiplier + (np.int64(1) << (shift - 1)) + nudge) >> shift


def exact_scale(multiplier: Array, shift: Array) -> Array:
    """Return the real factor `M / 2^S` of a rescale, exact in float64. For M = 0 return 2^-64, which is smaller than
    any other factor but not 0, so that the product of sum and factor always rises with the sum."""
    return np.where(multiplier == 0, 2.0**-64, np.ldexp(multiplier.astype(np.float64), -shift.astype(np.int32)))


def conditions(
    multiplier: Array,
    shift: Array,
    low: int,
    high: int,
    lowest: Array,
    highest: Array,
    double: bool = True,
) -> Conditions | None:
    """Return the conditions that numbers `scale` and `offset` must meet for `trunc(scale * |x| + offset)`, with x's
    sign, to equal `tosa.apply_scale` of x with this multiplier and shift, after both results are clamped to low..high.
    All arrays have an element per channel; x is any integer in lowest..highest.

    None if there are too many, or if their computation would not be exact.
    """
    if not bool(((multiplier >= 0) & (multiplier < LIMIT) & (shift >= SHIFTS.start) & (shift < SHIFTS.stop)).all()):
        return None
    scale = exact_scale(multiplier, shift)
    lowest, highest = (np.broadcast_to(bound, scale.shape) for bound in (lowest, highest))
    low, high = min(low, 0), max(high, 0)
    falls = low < 0 and bool((lowest < 0).any())
    top, bottom = np.maximum(highest, 0), np.maximum(-lowest, 0) if falls else np.zeros_like(lowest)
    largest = np.maximum(np.maximum(top, bottom), 1)
    needed = max(min(max(high, -low), int(np.max(scale * largest)) + 2), 1)
    if needed * multiplier.size > CELLS:
        return None
    level = np.arange(1.0, needed + 1)[None, :]
    first, exact = _rises(level, multiplier, shift, scale, double)
    sides = [_side(first, min(high, needed), top, np.maximum(lowest, 0))]
    if falls:
        first[exact] += 1
        sides.append(_side(first, min(-low, needed), bottom, np.maximum(-highest, 0)))
    least = np.minimum(sides[0][0], sides[-1][0])
    most = np.maximum(sides[0][1], sides[-1][1])
    most[:, 0] = np.where(lowest > 0, most[:, 0], np.maximum(most[:, 0], 0.0))
    return Conditions(least, level, most, level, falls, np.maximum(largest, -lowest))


def _side(first: Array, count: int, greatest: Array, smallest: Array) -> tuple[Array, Array]:
    """Return the arrays `least` and `most` of `Conditions` for the inputs of one sign, whose magnitudes lie between
    `smallest` and `greatest` (per channel). `first` [channels, levels]: the least magnitude whose rescaled result has
    at least the magnitude `level`; there are conditions only for the first `count` levels."""
    least, most = np.full_like(first, NEVER), np.full_like(first, -NEVER)
    first, upper, lower = first[:, :count], greatest[:, None], smallest[:, None]
    np.maximum(first, lower, out=least[:, :count])
    np.putmask(least[:, :count], first > upper, NEVER)
    np.minimum(first - 1, upper, out=most[:, :count])
    np.putmask(most[:, :count], first <= lower, -NEVER)
    return least, most


def _rises(
    level: Array, multiplier: Array, shift: Array, scale: Array, double: bool
) -> tuple[Array, tuple[Array, Array]]:
    """Return, for each channel and level j, the least x >= 0 whose rescaled result is j or more (`P_j` in the module's
    docstring). Also return the indices (channels, levels) where `N_j`, the least magnitude of a negative x with a
    result of -j or less, is `P_j + 1`; elsewhere it is `P_j`.

    The quotient is computed in float64, and where it is within 2^-16 of an integer, in int64 with wrapping. A quotient
    above 2^32 need not be exact, because no i32 input reaches it.
    """
    nudge = np.where(shift > 31, np.int64(1) << 30, 0) if double else np.zeros_like(shift)
    half = np.ldexp(nudge.astype(np.float64), -shift.astype(np.int32)) + 0.5
    ratio = (level - half[:, None]) * (1 / scale)[:, None]
    first = np.ceil(ratio)
    unsure = (np.abs(ratio - np.rint(ratio)) < 2.0**-16) & (ratio < 2.0**32)
    rows, columns = np.nonzero(unsure)
    m, s = multiplier[rows], shift[rows]
    divided = (level[0, columns].astype(np.int64) << s) - (np.int64(1) << (s - 1)) - nudge[rows]
    near = np.rint(ratio[rows, columns]).astype(np.int64)
    remainder = divided - near * m
    first[rows, columns] = near + (remainder > 0)
    return first, (rows[remainder == 0], columns[remainder == 0])


def conditions_of_values(
    values: Array, multiplier: Array, shift: Array, low: int, high: int, double: bool = True
) -> Conditions | None:
    """Return the conditions under which a linear function, truncated, equals `tosa.apply_scale` with this multiplier
    and shift for every x in `values`, after both are clamped to low..high; None if there are too many."""
    if not bool(((multiplier >= 0) & (multiplier < LIMIT) & (shift >= SHIFTS.start) & (shift < SHIFTS.stop)).all()):
        return None
    if values.size * multiplier.size > CELLS:
        return None
    x = np.unique(values)[None, :]
    result = np.clip(reference(x, multiplier[:, None], shift[:, None], double), min(low, 0), max(high, 0))
    signed = low < 0 and bool((x < 0).any())
    level = np.abs(result).astype(np.float64)
    magnitude = np.abs(x) if signed else np.maximum(x, 0)
    above = np.where(np.where(x < 0, result <= min(low, 0), result >= max(high, 0)) & (level > 0), np.inf, level + 1)
    magnitude = np.broadcast_to(magnitude.astype(np.float64), level.shape)
    largest = np.full(multiplier.shape, max(int(np.abs(x).max()), 1))
    return Conditions(magnitude, np.where(level == 0, -np.inf, level), magnitude, above, signed, largest)
