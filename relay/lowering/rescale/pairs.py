"""The rescaled sum of two rescaled codes (TFLite ADD and SUB), proved by trying all pairs of codes.

    y(a, b) = rescale(rescale(a * 2^k) +- rescale(b * 2^k)), clamped to low..high

takes three double roundings, but a and b are 8-bit codes minus a zero point: 65,536 pairs. In float32 it has one of two
forms, the second one if halves have to be rounded away from zero:

    rint(fma(a, first, fma(b, second, offset)))
    trunc(t + copysign(offset, t))                  with t = fma(a, first, b * second)

`first` and `second` are float32 numbers close to the exact factors. They are found by trying such numbers on the pairs
whose exact sum is nearly half-way between two results. A form that is found is then compared on all pairs, in the exact
arithmetic of the instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.rescale.steps import exact_scale, reference

NEAREST = 256
"""Factors with which the rescaled sum may be computed in float32 are tried first on this number of pairs of codes:
those whose exact sum is nearest to half-way between two integers, where rounding is most likely to be wrong."""

TRIED = np.array(sorted(product(range(-2, 3), range(-2, 3), range(-12, 13)), key=lambda units: sum(map(abs, units))))
"""The changes of the numbers (first, second, offset) of `rint(fma(a, first, fma(b, second, offset)))` that are tried,
the smallest first: those of both factors in units in the last place, that of the offset in units of 2^-20."""


@dataclass(frozen=True)
class Rescale:
    """The constants of an `apply_scale`: a multiplier, a shift, and whether it is DOUBLE_ROUND."""

    multiplier: int
    shift: int
    double: bool

    def of(self, x: Array) -> Array:
        """Return the integers x, rescaled as `tosa.apply_scale` defines it."""
        return reference(x, np.array(self.multiplier), np.array(self.shift), self.double)

    @property
    def scale(self) -> float:
        return float(exact_scale(np.array(self.multiplier), np.array(self.shift)))


@dataclass(frozen=True)
class Side:
    """One operand of a sum of two rescaled codes. `values`: all integers that the operand can be; `added`: for each of
    them, its rescaled value, the term of the sum; `factor`: the exact real factor by which the rescale multiplies."""

    values: Array
    added: Array
    factor: float


@dataclass(frozen=True)
class PairForm:
    """A float32 formula for a rescaled sum of two codes, proved for all pairs of codes: `rint(fma(a, first, fma(b,
    second, offset)))`, or if `away`, with t = fma(a, first, b * second), `trunc(t + copysign(offset, t))`. a is the
    first code and b the second one, or the other way round if `swapped`; `largest`: an upper bound of the sums'
    magnitudes."""

    first: np.float32
    second: np.float32
    offset: np.float32
    swapped: bool
    away: bool
    largest: float


def evaluate(x: Array, y: Array, numbers: Array, away: bool) -> Array:
    """Return the float32 results, for x and y, of the formula `rint(fma(x, first, fma(y, second, offset)))`; or with
    `away`, of `trunc(t + copysign(offset, t))`, where `t = fma(x, first, y * second)`. `numbers` is (first, second,
    offset). Each fma is computed exactly in float64 (see `_is_exact`) and then rounded to float32."""
    first, second, offset = numbers
    inner = y * second.astype(np.float64) + (0.0 if away else offset.astype(np.float64))
    total = (x * first.astype(np.float64) + inner.astype(np.float32)).astype(np.float32)
    return np.trunc(total + np.copysign(offset, total)) if away else np.rint(total)


def prove_pair(a: Side, b: Side, outer: Rescale, low: int, high: int) -> PairForm | None:
    """Return a float form of the rescaled sum of two operands `a` and `b` that gives the right integer, after clamping
    to low..high, for every pair of their values; None if none is found. `outer`: the rescale of the sum."""
    sums = a.added[:, None] + b.added[None, :]
    first, second = a.factor * outer.scale, b.factor * outer.scale
    if bool((np.abs(sums) >= 2**31).any()) or not _is_exact(a, b, first, second):
        return None
    want = np.clip(outer.of(sums), low, high)
    real = a.values[:, None] * first + b.values[None, :] * second
    hard = np.argpartition(-np.abs(real - np.rint(real)), NEAREST, axis=None)[:NEAREST]
    rows, columns = np.unravel_index(hard, real.shape)
    for away, swapped in product((False, True), (False, True)):
        x, y, few_x, few_y = a.values[:, None], b.values[None, :], a.values[rows], b.values[columns]
        factors = (first, second)
        if swapped:
            x, y, few_x, few_y, factors = y, x, few_y, few_x, (second, first)
        for numbers in _candidates(few_x, few_y, factors, want[rows, columns], (low, high), away):
            if np.array_equal(np.clip(evaluate(x, y, numbers, away), low, high), want):
                largest = float(np.abs(real).max()) * (1 + 2.0**-16) + 2
                return PairForm(numbers[0], numbers[1], numbers[2], swapped, away, largest)
    return None


def _is_exact(a: Side, b: Side, first: float, second: float) -> bool:
    """Whether float64 represents exactly every sum that `evaluate` computes before rounding it to float32. All terms
    are multiples of one unit, the smallest of 2^-20 and half a unit in the last place of each float32 factor, so it is
    enough that no sum reaches 2^52 units."""
    unit = min(*(float(np.spacing(np.float32(abs(number)))) / 2 for number in (first, second)), 2.0**-20)
    return abs(first) * float(np.abs(a.values).max()) + abs(second) * float(np.abs(b.values).max()) + 1 < unit * 2.0**52


def _candidates(
    x: Array, y: Array, factors: tuple[float, float], want: Array, clamp: tuple[int, int], away: bool
) -> list[Array]:
    """Return up to four triples (first, second, offset) for which `evaluate`, clamped to `clamp`, returns `want` for
    all pairs of the values x and y. Tried are float32 numbers near the exact `factors` and offset, the nearest
    first."""
    numbers = np.empty((3, len(TRIED), 1), np.float32)
    for k, factor in enumerate(factors):
        numbers[k, :, 0] = (np.float32(factor).view(np.int32) + TRIED[:, k].astype(np.int32)).view(np.float32)
    numbers[2, :, 0] = TRIED[:, 2] * 2.0**-20 + 0.5 * away
    got = evaluate(x, y, numbers, away)
    good = np.flatnonzero((np.clip(got, *clamp) == want).all(axis=1))
    return [numbers[:, i, 0] for i in good[:4]]
