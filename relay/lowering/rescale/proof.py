"""The proof that a floating-point rescale equals the reference's integers, channel by channel.

Every form truncates a linear function: `trunc(x * scale + copysign(offset, x))`, without the copysign if results below
zero do not matter. The conversion to integers truncates towards zero, so the offset is about a half, and the bias of a
double rounding is part of it. The module `steps` finds the inputs x at which the reference's result changes to the next
integer, called a level: this gives the conditions. Here the scale is rounded to a representable one, the conditions
leave an interval of offsets, and the form is proved if its offset is inside by more than the error of its arithmetic:

- `f32`: one multiply-add. If it rounds towards zero (AVX-512), truncation gives the same as for the exact sum: no
  error. If it rounds to nearest, sums from half a unit below a level on are rounded up to the level, so the levels are
  lowered by half a unit.
- `f32x2`: the scale is the exact sum of two numbers; the multiply-add of the smaller one and the offset has an error of
  at most half a unit of a number below two, that of the larger one rounds towards zero.
- `f64`: one multiply-add with the exact scale; its error is at most half a unit of float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.rescale.steps import Conditions

SAMPLE = 8
"""The number of channels on which float32 forms of a rescale are tried first: those with the narrowest interval of
offsets that satisfy the conditions. If no form is exact on these, the other channels are not tried."""

UNITS = (0, 1, -1, 2, -2, 3, -3, 4, -4)
"""The differences from the nearest float32 scale, in units in the last place, that `prove32` tries in this order."""

NUDGES = (0.0, *(sign * units * 2.0**-30 for units in range(1, 17) for sign in (1, -1)))
"""The relative changes of a scale that `prove32x2`, whose scales are sums of two float32 numbers, tries in this
order."""


@dataclass(frozen=True)
class Form:
    """A way to compute a rescale in floats: `trunc(x * scale + copysign(offset, x))`, with constants per channel.

    With `rest`, the scale is the sum `scale + rest`, and there are two multiply-adds. If not `signed`, the offset is
    added without `copysign`. `toward_zero`: the last multiply-add rounds towards zero instead of to nearest.
    """

    scale: Array
    offset: Array
    rest: Array | None = None
    signed: bool = True
    toward_zero: bool = False

    @property
    def name(self) -> str:
        """The name of the form: `f32`, `f32x2` or `f64`."""
        return "f64" if self.scale.dtype == np.float64 else "f32" if self.rest is None else "f32x2"

    @property
    def columns(self) -> list[Array]:
        """The arrays `scale`, `offset` and, if it is not None, `rest`: one element per channel each."""
        return [self.scale, self.offset] if self.rest is None else [self.scale, self.offset, self.rest]

    def rows(self, which: slice) -> Form:
        """Return the form for some of the channels."""
        rest = None if self.rest is None else self.rest[which]
        return Form(self.scale[which], self.offset[which], rest, self.signed, self.toward_zero)


def prove(scale: Array, where: Conditions, toward_zero: bool) -> Form | None:
    """Return the cheapest computation of a rescale in floats that is proved to give the reference's integers in all
    channels; None if there is none. `scale`: the exact scale of each channel.

    `toward_zero`: whether float32 multiply-adds that round towards zero may be used.
    """
    if bool((scale * where.largest > 2.0**31 - 2.0**9).any()):
        return None  # the conversion to integers would overflow
    single = in_float32(where)
    first, end = interval(scale, single)
    hardest = np.argsort(end - first, kind="stable")[:SAMPLE]
    if prove32(scale[hardest], single.rows(hardest), toward_zero) is not None:
        form = prove32(scale, single, toward_zero)
        if form is not None:
            return form
    if toward_zero and (form := prove32x2(scale, single)) is not None:
        return form
    return prove64(scale, where)


def in_float32(where: Conditions) -> Conditions:
    """Return the conditions for an input that is rounded to float32 before the replacement of the rescale is computed:
    the bounds `least` and `most` of its magnitude are rounded to nearest, too."""
    if bool((where.largest <= 2**24).all()):
        return where
    least, most = (a.astype(np.float32).astype(np.float64) for a in (where.least, where.most))
    return Conditions(least, where.level, most, where.above, where.signed, where.largest)


def interval(scale: Array, where: Conditions) -> tuple[Array, Array]:
    """Return the interval of offsets (the first one, and the excluded end) for which exact linear functions with these
    scales satisfy the conditions."""
    slope = -scale[:, None]
    room = slope * where.least
    room += where.level
    first = np.maximum(room.max(axis=1), 0.0)
    np.multiply(slope, where.most, out=room)
    room += where.above
    return first, np.minimum(room.min(axis=1), 2.0)


def _guard(where: Conditions) -> float:
    """Return an upper bound of the error of the float64 arithmetic in `interval`: 2^-50 of the largest finite
    condition, or of 1 if that is larger."""
    finite = where.above[np.isfinite(where.above)]
    return float(np.max(finite, initial=1.0)) * 2.0**-50


def _inside(offset: Array, first: Array, end: Array, error: Array | float) -> Array:
    return (first + error <= offset) & (offset < end - error)


def prove32(scale: Array, where: Conditions, toward_zero: bool) -> Form | None:
    """Return a rescale with one float32 multiply-add that is exact for all channels, or None if none is found. The
    nearest float32 scales are tried first, then those that differ by up to 4 units in the last place. `where`: the
    conditions on magnitudes in float32 (`in_float32`)."""
    if not toward_zero:
        where = _lowered(where)
    nearest = scale.astype(np.float32)
    chosen, offsets = nearest.copy(), np.zeros_like(nearest)
    left = np.arange(scale.size)
    for units in UNITS:
        tried = (nearest[left].view(np.int32) + np.int32(units)).view(np.float32)
        some = where if left.size == scale.size else where.rows(left)
        first, end = interval(tried.astype(np.float64), some)
        offset = ((first + end) / 2).astype(np.float32)
        good = (tried >= 0) & _inside(offset.astype(np.float64), first, end, _guard(some))
        chosen[left[good]], offsets[left[good]] = tried[good], offset[good]
        left = left[~good]
        if not left.size:
            return Form(chosen, offsets, None, where.signed, toward_zero)
    return None


def _lowered(where: Conditions) -> Conditions:
    """Return conditions on an exact sum: where they hold, the sum rounded to the nearest float32 satisfies the given
    conditions. Each bound (`level` and `above`) is lowered to the middle between it and the next smaller float32, which
    still rounds up to the bound because the bound's significand is even."""
    return Conditions(where.least, _below(where.level), where.most, _below(where.above), where.signed, where.largest)


def _below(level: Array) -> Array:
    positive = np.where(np.isfinite(level) & (level > 0), level, 1.0).astype(np.float32)
    under = np.nextafter(positive, np.float32(0)).astype(np.float64)
    return np.where(np.isfinite(level) & (level > 0), (positive.astype(np.float64) + under) / 2, level)


def prove32x2(scale: Array, where: Conditions) -> Form | None:
    """Return a rescale with two float32 multiply-adds, the last of which rounds towards zero, that is exact for all
    channels, or None if none is found. `where`: the conditions on magnitudes in float32 (`in_float32`)."""
    large, rest, offsets = (np.zeros(scale.size, np.float32) for _ in range(3))
    left = np.arange(scale.size)
    for nudge in NUDGES:
        some = where if left.size == scale.size else where.rows(left)
        tried = scale[left] * (1.0 + nudge)
        part = tried.astype(np.float32)
        remainder = (tried - part).astype(np.float32)
        first, end = interval(part.astype(np.float64) + remainder, some)
        offset = ((first + end) / 2).astype(np.float32)
        largest = np.abs(remainder).astype(np.float64) * some.largest + offset
        error = np.spacing(largest.astype(np.float32)).astype(np.float64) / 2 + _guard(some)
        good = _inside(offset.astype(np.float64), first, end, error)
        large[left[good]], rest[left[good]], offsets[left[good]] = part[good], remainder[good], offset[good]
        left = left[~good]
        if not left.size:
            return Form(large, offsets, rest, where.signed, True)
    return None


def prove64(scale: Array, where: Conditions) -> Form | None:
    """Return the form of a rescale by one float64 multiply-add with the exact scale of each channel; None if it is not
    proved to give the reference's integers. `where`: the conditions for equal integers."""
    first, end = interval(scale, where)
    offset = (first + end) / 2
    if not _inside(offset, first, end, 2 * _guard(where)).all():
        return None
    return Form(scale, offset, None, where.signed, False)
