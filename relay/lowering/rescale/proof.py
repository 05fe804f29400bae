"""The proof that a floating-point rescale equals TFLite's double rounding, channel by channel.

`tosa.apply_scale` with DOUBLE_ROUND is a step function of the integer x that never falls:

    y(x) = floor((x * M + 2^(S-1) + [S > 31] * copysign(2^30, x)) / 2^S)

So is `rint(fma(float(x), s, copysign(e, x)))`: every operation in it is monotone. Two such functions, clamped to
[low, high], are equal everywhere if they agree on both sides of every step of the first: at T and T - 1, where T is the
least x with y(x) >= k, for each k in low + 1 .. high. That is at most 2 * 255 evaluations for 8-bit codes, done here
with the exact arithmetic of the instructions. Where the rescaled value can take few values only (it comes from one
8-bit code), all of them are tried instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array

LIMIT = 2**31
SHIFTS = range(31, 53)
"""Shifts for which 2^9 steps of 2^S, and two bits more, stay within int64."""


@dataclass(frozen=True)
class Form:
    """`rint(fma(float(x), scale, copysign(offset, x)))` per channel, in the arrays' float type."""

    scale: Array
    offset: Array


def reference(x: Array, multiplier: Array, shift: Array) -> Array:
    """`tosa.apply_scale` with DOUBLE_ROUND, in int64."""
    nudge = np.where(shift > 31, np.where(x >= 0, 1 << 30, -(1 << 30)), 0)
    return (x * multiplier + (np.int64(1) << (shift - 1)) + nudge) >> shift


def steps(multiplier: Array, shift: Array, low: int, high: int) -> Array:
    """T[channel, k]: the least x with y(x) >= k for k = low + 1 .. high, clipped to i32."""
    k = np.arange(low + 1, high + 1, dtype=np.int64)[None, :]
    m, s = multiplier[:, None], shift[:, None]
    nudge = np.where(s > 31, np.int64(1) << 30, 0)
    target = (k << s) - (np.int64(1) << (s - 1))
    positive = -((nudge - target) // m)  # ceil((target - nudge) / m)
    negative = -((-nudge - target) // m)
    least = np.where(negative < 0, negative, np.maximum(positive, 0))
    return np.clip(least, -LIMIT, LIMIT - 1)


def evaluate64(x: Array, multiplier: Array, shift: Array, offset: Array) -> Array:
    """The form in float64 exactly as fma computes it: `offset` counts units of 2^-(shift+2).

    x * M * 4 + offset is exact in int64; its conversion to float64 rounds once, to nearest even, as fma does.
    """
    exact = x * multiplier * 4 + np.where(x < 0, -offset, offset)
    return np.rint(np.ldexp(exact.astype(np.float64), -(shift + 2).astype(np.int32)))


def evaluate32(x: Array, form: Form) -> tuple[Array, Array]:
    """The form in float32, and where this evaluation is certain to be what fma gives."""
    value = x.astype(np.float32).astype(np.float64)
    product = value * form.scale.astype(np.float64)  # 24 x 24 bits: exact
    offset = np.copysign(form.offset.astype(np.float64), value)
    total = product + offset
    part = total - product
    lost = (product - (total - part)) + (offset - part)  # two-sum: what float64 lost
    rounded = total.astype(np.float32)
    neighbour = np.nextafter(rounded, np.where(total > rounded, np.inf, -np.inf).astype(np.float32))
    midpoint = (rounded.astype(np.float64) + neighbour.astype(np.float64)) / 2
    certain = (lost == 0) | (np.abs(total - midpoint) > np.abs(lost) * 4)
    return np.rint(rounded), certain


def points(multiplier: Array, shift: Array, low: int, high: int) -> Array:
    """Where the two functions have to agree: both sides of every step."""
    at = steps(multiplier, shift, low, high)
    return np.concatenate([at, np.maximum(at - 1, -LIMIT)], axis=1)


def provable(multiplier: Array, shift: Array) -> bool:
    """Whether the arithmetic of the proof stays exact."""
    return bool(((multiplier > 0) & (shift >= SHIFTS.start) & (shift < SHIFTS.stop)).all())


def prove64(multiplier: Array, shift: Array, low: int, high: int, values: Array | None = None) -> Form | None:
    """A float64 form for all channels, or None. `values`: the only x there are; else all x, clamped to low..high."""
    if not provable(multiplier, shift):
        return None
    m, s = multiplier[:, None], shift[:, None]
    x = points(multiplier, shift, low, high) if values is None else np.broadcast_to(values, (m.size, values.size))
    want = np.clip(reference(x, m, s), low, high)
    base = np.where(shift > 31, np.int64(1) << 32, 0)
    chosen = np.full(multiplier.shape, -1, np.int64)
    for nudge in (0, 1, -1, 2, -2):
        offset = base + nudge
        open_ = (chosen < 0) & (offset >= 0)
        if values is not None and bool((np.abs(x) > 2**60 // np.maximum(m, 1)).any()):
            return None
        got = np.clip(evaluate64(x, m, s, offset[:, None]), low, high)
        chosen = np.where(open_ & (got == want).all(axis=1), offset, chosen)
    if (chosen < 0).any():
        return None
    power = np.ldexp(1.0, -shift.astype(np.int32))
    return Form(multiplier.astype(np.float64) * power, chosen.astype(np.float64) * power / 4)


def prove32(multiplier: Array, shift: Array, low: int, high: int, values: Array | None = None) -> Form | None:
    """A float32 form for all channels, or None; scales and offsets a few units in the last place off are tried."""
    if not provable(multiplier, shift):
        return None
    m, s = multiplier[:, None], shift[:, None]
    x = points(multiplier, shift, low, high) if values is None else np.broadcast_to(values, (m.size, values.size))
    if values is not None and bool((np.abs(x) > 2**60 // np.maximum(m, 1)).any()):
        return None
    want = np.clip(reference(x, m, s), low, high)
    power = np.ldexp(1.0, -shift.astype(np.int32))
    exact = (multiplier.astype(np.float64) * power).astype(np.float32)
    tie = np.where(shift > 31, np.ldexp(1.0, (30 - shift).astype(np.int32)), 0.0)
    scale, offset = exact.copy(), np.zeros_like(exact)
    found = np.zeros(multiplier.shape, np.bool_)
    spread = np.maximum(exact * np.float32(0.02), np.float32(2.0**-40))
    for units in (0, 1, -1, 2, -2, 3, -3):
        tried = ulps(exact, units)
        for share in (0.0, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 8.0, -8.0, 12.0, 16.0):
            candidate = np.maximum(tie + share * spread, 0).astype(np.float32)
            left = ~found
            if not left.any():
                break
            form = Form(tried[left, None], candidate[left, None])
            got, certain = evaluate32(x[left], form)
            good = ((np.clip(got, low, high) == want[left]) & certain).all(axis=1)
            where = np.flatnonzero(left)[good]
            scale[where], offset[where], found[where] = tried[where], candidate[where], True
    return Form(scale, offset) if found.all() else None


def ulps(value: Array, units: int) -> Array:
    """The float32 that many representable numbers further."""
    return (value.view(np.int32) + np.int32(units)).view(np.float32)
