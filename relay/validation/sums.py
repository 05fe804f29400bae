"""Random linear tests of the sums of a product: a wrong coefficient of any result is missed with a bounded probability.

Each result is assumed to be an affine function of the data's codes, in 32 bits, plus the amount that is added to the
sums of its channel, and then a function of the sum that does not fall. The difference D between the code's sum and the
claim's is then affine in the codes, too. Three kinds of trials, with the probability that a result is seen to differ:

- `aimed`: pixels have one of two random colours. Where a result reads one pixel, a channel has two sums, and the amount
  puts each in turn at a step of the rescale and one below it: every D but 0 shows. If a pixel's coefficients differ, D
  depends on its colour, unless both colours give the same: probability at least 255/512, or 255/256 with one pixel.
- `dithered`: windows of many cells have too many sums to aim at. Both colours of a channel are `spread` codes apart, so
  |D| is at least spread / 2 for one colour of a pixel (and with half of the signs of the other channels, if several are
  summed). Amounts are uniform over the length of the widest gap between steps, at a place where all sums stay between
  the first and the last step: D passes a step with probability min(spread / 2, narrowest gap) / widest gap. Where steps
  are few, amounts are uniform over a range in which each sum passes all steps.
- `apart`: of depthwise products. Half of the channels are at the zero point, so their sums are known and aimed at, the
  others are random: coefficients of channels that a result shall not depend on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from relay.runtime.memory import Array
from relay.validation.machine_code import same

if TYPE_CHECKING:
    from relay.validation.contraction import Product

MOST_RESULTS = 1 << 31
"""Of all random tests of sums of a kernel: where images are larger the bound is not reached, which is then told."""
MOST_RUNS = 60000
MOST_TURNS = 16
"""Amounts that are added to the sums of the same data."""
MANY_WINDOWS = 4096
"""From so many on, products are computed at once."""
Columns: TypeAlias = "slice | Array"
"""Of channels: all, or some."""
WIDEST = 255
"""Codes that two colours are apart at most."""
FAR = np.int64(1) << 40


@dataclass
class Region:
    """Of each channel a range of sums from a step to another, [first, last), and the gaps of steps in it; `spread` of
    the codes with which the sums of all windows fit into it. `across`: how many steps amounts take each sum across, if
    it is not one of them; `reach`: by how much a sum may be off on both sides of them."""

    first: Array
    last: Array
    widest: Array
    narrowest: Array
    spread: Array
    across: Array
    reach: Array


class Sums:
    """The random tests of one kernel; `missed` [channels]: -log2 of the probability that a difference of one result was
    missed."""

    def __init__(self, product: Product):
        self.product, self.rng = product, product.rng
        self.geometry, self.kernel = product.geometry, product.kernel
        self.channels = product.channels
        self.union = float(np.log2(max(product.out.size, 1)))
        self.wanted = product.bits + self.union
        self.tested = product.live & product.sure
        self.limit = min(MOST_RUNS, max(MOST_RESULTS // max(product.out.size, 1), 64))
        low, high = product.low, product.high
        edges = product.edges
        distinct = np.diff(edges, axis=0, prepend=-FAR) > 0
        self.inside = distinct & (edges > low) & (edges <= high)
        self.count = self.inside.sum(axis=0)
        self.steps = np.sort(np.where(self.inside, edges, FAR), axis=0)
        self.missed = np.zeros(self.channels)
        self.columns: Columns = slice(None)
        """Channels that are compared."""

    def check(self) -> tuple[int, float]:
        """Trials until the bound is reached, or there were too many. Returns runs and bits reached."""
        product, start = self.product, self.kernel.runs
        if not self.tested.any():
            return 0, float("inf")
        product.quiet()
        g = self.geometry
        alone = g.cells == 1 and not (g.sources == g.padding).any()
        if alone:
            self.until(self.aimed, start)
        else:
            self.region = self.regions()
            self.until(self.dithered, start)
        if g.depthwise and g.inputs > 1 and not alone:
            bits, self.missed = self.missed, np.zeros(self.channels)
            self.until(self.apart, self.kernel.runs)
            self.missed = np.minimum(self.missed, bits)
        product.start[:] = product.base
        product.quiet()
        return self.kernel.runs - start, float(self.missed[self.tested].min() - self.union)

    def until(self, trial: Callable[[], None], start: int) -> None:
        """Trials of a kind until each channel has the bits that are wanted; those that have them are not compared."""
        while self.kernel.runs - start < self.limit:
            open = np.flatnonzero(self.tested & (self.missed < self.wanted))
            if not open.size:
                return
            many = 2 * open.size > self.channels or not self.product.lookup.fits
            self.columns = slice(None) if many else open
            trial()

    # Kinds of trials

    def aimed(self) -> None:
        colors = 1 if self.product.flat.shape[0] == 1 else 2
        states = self.rng.integers(0, colors, self.product.flat.shape[0])
        values = self.codes((colors, self.geometry.inputs))
        np.take(values, states, axis=0, out=self.product.flat)
        sums = self.sums(np.arange(colors)[:, None], self.centred(values))
        pattern = states[self.geometry.sources[:, 0]]
        for aim in range(colors):
            step, centre = self.a_step(), np.zeros(self.channels, np.int64)
            centre[self.columns] = sums[aim]
            for below in (0, 1):
                self.run(sums, step - below - centre, pattern)
        self.missed += -np.log2(1 - (255 / 256 if colors == 1 else 255 / 512))

    def apart(self) -> None:
        """Half of the channels at the zero point."""
        product, inputs = self.product, self.geometry.inputs
        quiet = self.rng.integers(0, 2, inputs) > 0
        product.flat[:] = self.codes(product.flat.shape)
        product.flat[:, quiet] = product.zero
        seen = np.repeat(quiet, self.channels // inputs) & self.tested
        step, mask = self.a_step(), np.where(seen, 255, 0).astype(np.uint8)
        for below in (0, 1):
            product.shift(step - below)
            self.kernel.run()
            expected = product.shown((step - below)[None]).astype(product.out.dtype)
            different = np.bitwise_xor(product.out, expected, out=product.buffer).view(np.uint8)
            different &= mask
            if different.any():
                wrong = expected + np.zeros_like(product.out)
                product.differs(product.out, wrong, "for random codes of other channels", different != 0)
        self.missed += -np.log2(1 - 0.25 * 255 / 256)

    def dithered(self) -> None:
        g, region, product = self.geometry, self.region, self.product
        worst = int(np.argmin(np.where(self.tested, self.missed, np.inf)))
        spread = region.spread if g.depthwise else np.full(self.channels, region.spread[worst])
        per_input = spread.reshape(g.inputs, -1).min(axis=1) if g.depthwise else np.full(g.inputs, spread[0])
        values = self.two_colors(per_input)
        states = np.append(self.rng.integers(0, 2, product.flat.shape[0]), 2)
        np.take(values.astype(product.flat.dtype), states[:-1], axis=0, out=product.flat)
        patterns, pattern = self.patterns(states)
        centred = self.centred(values)
        sums = self.sums(patterns, centred)
        extent = ((np.repeat(per_input, self.channels // g.inputs) if g.depthwise else spread) + 1) >> 1
        first, size, seen = self.amounts(centred, per_input, extent)
        if not seen[worst]:
            region.spread[worst] = max(int(region.spread[worst] * 0.9), 1)
        turns = int(np.clip(0.5 / max(seen[worst], 0.01), 1, MOST_TURNS))
        for _ in range(turns):
            self.run(sums, first + self.rng.integers(0, size), pattern)
        share = 0.5 if g.depthwise or g.inputs == 1 else 0.25
        self.missed += -np.log2(1 - share * (1 - (1 - seen) ** turns))

    def two_colors(self, spread: Array) -> Array:
        """Codes of two colours, so far apart for each input, with the zero point between them; and the zero point."""
        g, product = self.geometry, self.product
        one = np.clip(
            product.zero - self.rng.integers(0, spread + 1), np.full(g.inputs, product.least), product.most - spread
        )
        other = one + spread
        swapped = self.rng.integers(0, 2, g.inputs) > 0
        zero = np.full(g.inputs, product.zero)
        return np.stack([np.where(swapped, other, one), np.where(swapped, one, other), zero])

    def amounts(self, values: Array, spread: Array, extent: Array) -> tuple[Array, Array, Array]:
        """Of each channel the first amount and how many there are; the probability that a sum that is off by `extent`
        or more shows, 0 where that is not known of these colours, whose places in a window do not matter."""
        region = self.region
        low, high, slack = self.ends(values, spread)
        room = region.last - region.first - region.widest - (high - low)
        fits = (region.across == 0) & (room >= slack) & (region.widest > 0)
        place = region.first - low + self.rng.integers(0, np.maximum(room, 0) + 1)
        within = np.minimum(extent, region.narrowest) / np.maximum(region.widest, 1)
        crosses = region.across > 0
        reach = np.minimum(extent, region.reach)
        size = region.last - region.first + 2 * reach + (high - low)
        passed = region.across * np.minimum(reach, np.maximum(region.narrowest, 1)) / np.maximum(size + slack, 1)
        first = np.where(crosses, region.first - reach - high, place)
        count = np.where(crosses, size, region.widest)
        return first, np.maximum(count, 1), np.where(fits, within, np.where(crosses, passed, 0.0))

    # Parts of trials

    def codes(self, shape: tuple[int, ...]) -> Array:
        """Codes, each as likely."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.rng.bytes(count), self.product.flat.dtype).reshape(shape)

    def centred(self, values: Array) -> Array:
        return values.astype(np.float64) - self.product.zero

    def a_step(self) -> Array:
        """Of each channel a sum where the result changes, each as likely; 0 for channels without one."""
        which = (self.rng.random(self.channels) * self.count).astype(np.int64)
        return np.where(self.count > 0, self.steps[which, np.arange(self.channels)], 0)

    def patterns(self, states: Array) -> tuple[Array, Array]:
        """Windows whose cells have other states, and which of them each pixel has."""
        g = self.geometry
        seen = states.astype(np.uint8)[g.sources]
        if g.cells > 39:
            return seen, np.arange(g.pixels)
        _, at, pattern = np.unique(seen @ 3 ** np.arange(g.cells), return_index=True, return_inverse=True)
        return seen[at], pattern

    def sums(self, states: Array, values: Array) -> Array:
        """Sums [windows, channels that are compared] of windows whose cells are in these states, of whole numbers."""
        g, rows = self.geometry, self.product.matrix[self.columns]
        if not g.depthwise and states.shape[0] > MANY_WINDOWS:
            windows = values.astype(np.float32)[states].reshape(states.shape[0], -1)
            if 255 * np.abs(rows).sum(axis=(1, 2)).max() < 1 << 24:  # so that float32 is exact
                return (windows @ rows.reshape(len(rows), -1).T.astype(np.float32)).astype(np.int64)
        total = np.zeros((states.shape[0], len(rows)))
        for cell in range(g.cells):
            total += self.cell(cell, values, self.columns)[states[:, cell]]
        return total.astype(np.int64)  # whole numbers below 2^53

    def cell(self, cell: int, values: Array, columns: Columns) -> Array:
        """What a cell adds to sums, by its state [states, channels]."""
        rows = self.product.matrix[columns]
        if self.geometry.depthwise:
            return np.repeat(values, self.channels // self.geometry.inputs, axis=1)[:, columns] * rows[:, cell, 0]
        return values @ rows[:, cell].T.astype(np.float64)

    def run(self, sums: Array, amount: Array, pattern: Array) -> None:
        """One run with an amount added to the sums; results of sums that are out of range are not looked at."""
        product, columns = self.product, self.columns
        product.shift(amount)
        moved = sums + amount[columns]
        table = product.results(moved, columns)
        every = isinstance(columns, slice)
        expected = np.take(table, pattern, axis=0, out=product.buffer if every else None, mode="clip")
        self.kernel.run()
        found = product.out if every else np.take(product.out, columns, axis=1)
        if not same(found, expected):
            low, high = product.low[columns], product.high[columns]
            allowed = (moved >= low) & (moved <= high) & self.tested[columns]
            product.differs(found, expected, "for random codes", allowed[pattern], columns)

    # Dither

    def ends(self, values: Array, spread: Array) -> tuple[Array, Array, Array]:
        """The least and largest sum of any window with these colours, padding too; by how much a window's sums can
        reach further if the colours of one channel change places."""
        g, rows = self.geometry, self.product.matrix
        parts = np.stack([self.cell(cell, values, slice(None)) for cell in range(g.cells)])
        low, high = parts.min(axis=1).sum(axis=0).astype(np.int64), parts.max(axis=1).sum(axis=0).astype(np.int64)
        if g.depthwise or g.inputs == 1:
            return low, high, np.zeros_like(low)
        most = np.abs(rows).sum(axis=1).max(axis=1) * int(spread[0])
        return low, high, 2 * most

    def regions(self) -> Region:
        """The region of each channel, so that few trials are needed."""
        found = [self.region_of(channel) for channel in range(self.channels)]
        return Region(*(np.array(column, np.int64) for column in zip(*found, strict=True)))

    def region_of(self, channel: int) -> tuple[int, ...]:
        """The numbers of `Region`, the best of some."""
        steps = self.steps[: int(self.count[channel]), channel]
        if not steps.size:
            return 0, 0, 0, 0, 1, 0, 0
        weights = np.abs(self.product.matrix[channel]).astype(np.float64)
        alone = self.geometry.depthwise or self.geometry.inputs == 1
        unit = float(weights.sum() if alone else 1.1 * np.sqrt((weights**2).sum(axis=1)).sum())
        slack = 0.0 if alone else 2 * float(weights.sum(axis=0).max())
        gaps, first, last = np.diff(steps), int(steps[0]), int(steps[-1])
        narrowest = int(gaps.min(initial=1 << 30))
        reach = int(min(first - self.product.low[channel], self.product.high[channel] + 1 - last))
        once = min(reach, narrowest, (WIDEST + 1) // 2)
        best = steps.size * once / (WIDEST * (unit + slack) + last - first + 2 * reach)
        chosen = first, last, 0, narrowest, WIDEST, steps.size, reach
        for widest in np.unique(np.quantile(gaps, [0.5, 0.75, 0.9, 1.0], method="higher")) if gaps.size else ():
            ends = np.flatnonzero(np.concatenate([[True], gaps > widest, [True]]))
            longest = int(np.argmax(np.diff(ends)))
            begin, end = int(ends[longest]), int(ends[longest + 1]) - 1
            if end <= begin:
                continue
            first, last = int(steps[begin]), int(steps[end])
            spread = int(np.clip((last - first - widest) / max(unit + slack, 1.0), 1, WIDEST))
            narrowest = int(gaps[begin:end].min())
            score = min((spread + 1) // 2, narrowest) / float(widest)
            if score > best and last - first > widest:
                best, chosen = score, (first, last, int(widest), narrowest, spread, 0, 0)
        return chosen
