"""Random linear tests of the sums of a product: a wrong coefficient of any result is missed with a bounded probability.

Each result is assumed to be computed in two stages: a sum, which is an affine function of the quantized data, in 32
bits, plus an amount that the tests choose for each output channel (they change the constants with which sums start);
then a function that does not fall as the sum rises. The difference D between the sum of the machine code and that of
the claimed formula is then affine in the data, too. A step is a sum at which the result changes; a colour is a random
vector of quantized values, one for each input channel. There are three kinds of trials, with these probabilities that a
wrong coefficient of a result shows:

- `aimed`, if a result reads one pixel: each pixel of the data has one of two colours, so a channel has two sums. The
  amount puts each sum in turn at a step and one below it, so every D but 0 shows. The two colours give different D with
  a probability of at least 255/256; then at least one D is not 0, and the pixel has that colour with probability 1/2:
  255/512 together. If the data consist of one pixel, only one colour is used. It gives a D of 0 with a probability of
  at most 1/256, so an error shows with a probability of at least 255/256.
- `dithered`, if a result reads a window of many cells, whose sums are too many to aim at: again pixels have one of two
  colours, which differ by s in each channel. Amounts are uniform over an interval as long as the widest gap between
  steps, placed so that all sums stay between the first and the last step. Then a step lies between the sum of the
  machine code and that of the claimed formula with probability p(|D|) = min(|D|, narrowest gap) / widest gap. If a
  channel has few steps, amounts are uniform over an interval in which each sum passes all steps. One colour of a pixel
  gives D, the other D + b: as p is concave and p(0) = 0, p(|D|) + p(|D + b|) is at least p(|b|), and a random one of
  the two at least half of it. If one input channel is summed, |b| is at least s, so the probability is at least
  p(s) / 2. If several are, let one have a coefficient that is off by c: b is y + s c or y - s c with equal probability,
  where y comes from the other channels, so the probability is at least p(2 s) / 4. Testing the same data with several
  amounts keeps p concave.
- `apart`, for depthwise products, whose results shall depend on one channel only: about half of the channels, chosen at
  random, are at the zero point, so their sums are known and can be aimed at; the data of the others are random. If a
  result wrongly also depends on another channel, this shows if the result's own channel is at the zero point and the
  other channel is random, which has probability 1/4, and if D is not 0: 255/1024 together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relay.runtime.memory import Array
from relay.validation.contraction import Columns, Product
from relay.validation.machine_code import same

MOST_RESULTS = 1 << 33
"""The largest number of results computed in all random tests of a kernel's sums. For larger images the requested bound
is not reached, and the finding states the bound that was reached."""
MOST_RUNS = 20000
MOST_TURNS = 16
"""The largest number of runs of a kernel on the same random data; each run adds another random amount to all sums."""
MANY_WINDOWS = 4096
"""With at least this many windows, products are computed in one matrix multiplication."""
WIDEST = 255
"""The largest difference between the quantized values that the two colours (random pixels from which an image is made)
have in an input channel."""
FAR = np.int64(1) << 40


@dataclass
class Region:
    """For each channel, the range in which the sums of random tests shall lie: it starts at the step `first` and ends
    before the step `last` (a step is a sum at which the result changes). `widest` and `narrowest`: the widest and the
    narrowest gap between neighbouring steps of the range. `spread`: by how much the quantized values of the two random
    pixels of a test image should differ. All fields are chosen so that the channel needs few tests."""

    first: Array
    last: Array
    widest: Array
    narrowest: Array
    spread: Array


class Sums:
    """The random tests of one kernel's sums. `missed` [channels] is -log2 of the probability that all tests so far
    missed a wrong coefficient of one result: one that differs between the machine code and the claimed formula."""

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
        self.ends_of_steps = np.where(
            self.count > 0, [self.steps[0], np.where(self.inside, edges, -FAR).max(axis=0)], 0
        )
        self.gaps = np.where(self.steps[1:] < FAR, self.steps[1:] - self.steps[:-1], 0)
        self.reach = np.minimum(self.ends_of_steps[0] - low, high + 1 - self.ends_of_steps[1])
        """By how much a sum may be beyond the first or last step and still be in the range."""
        self.missed = np.zeros(self.channels)
        self.worst = 0
        self.columns: Columns = slice(None)
        """The channels whose results are compared."""
        self.share = 0.5 if self.geometry.depthwise or self.geometry.inputs == 1 else 0.25
        self.extent = 1 if self.share == 0.5 else 2
        """A difference is missed with a probability below 1 - share * p(extent * spread); see the module's description
        of p."""

    def check(self) -> None:
        """Run trials until a wrong coefficient would be missed with at most the requested probability, or until the
        limit of runs is reached; add the result to the certificate."""
        product, start, g = self.product, self.kernel.runs, self.geometry
        if self.tested.any():
            product.quiet()
            alone = g.cells == 1 and not (g.sources == g.padding).any()
            self.region = self.regions()
            self.until(self.aimed if alone else self.dithered, self.kernel.runs)
            if g.depthwise and g.inputs > 1 and not alone:
                bits, self.missed = self.missed, np.zeros(self.channels)
                self.until(self.apart, self.kernel.runs)
                self.missed = np.minimum(self.missed, bits)
            product.start[:] = product.base
            product.quiet()
        self.tell(self.kernel.runs - start)

    def tell(self, runs: int) -> None:
        """Add a line to the report: the number of runs, and an upper bound of the probability that they miss a wrong
        coefficient of the product."""
        weak = self.tested & (self.missed < self.wanted)
        text = self.product.runs_text(runs, "the constant found is added to them")
        if weak.any():
            least = max(float((self.missed - self.union)[weak].min()), 0.0)
            text += f"; for {int(weak.sum())} channels whose results change at few sums the bound is 2^-{least:.0f}"
        self.product.part.say("tested", text)

    def until(self, trial: Callable[[], None], start: int) -> None:
        """Run trials of one kind until each channel has the required certainty. Channels that have it are no longer
        compared, and channels that would need too many runs do not prolong the loop. `start`: the kernel's number of
        runs before the first trial."""
        share = self.chance if trial == self.dithered else np.ones(self.channels)
        possible = self.tested & (self.wanted <= -np.log2(1 - self.share * share) * self.limit)
        while self.kernel.runs - start < self.limit:
            open = possible & (self.missed < self.wanted)
            if not open.any():
                return
            self.worst = int(np.argmin(np.where(open, self.missed, np.inf)))
            compared = np.flatnonzero(self.tested & (self.missed < self.wanted))
            many = 2 * compared.size > self.channels or not self.product.lookup.fits
            self.columns = slice(None) if many else compared
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
        """Run one trial of a depthwise product: half of the channels, chosen at random, are at the zero point, so that
        their sums are known; the others have random data. Raises Differs if a result of a channel at the zero
        point is not the expected one: it must not depend on the other channels."""
        product, inputs = self.product, self.geometry.inputs
        quiet = self.rng.integers(0, 2, inputs) > 0
        product.flat[:] = self.codes(product.flat.shape)
        product.flat[:, quiet] = product.zero
        seen = np.repeat(quiet, self.channels // inputs) & self.tested
        step, mask = self.a_step(), np.where(seen, 255, 0).astype(np.uint8)
        for below in (0, 1):
            product.shift(step - below)
            self.product.run()
            expected = product.shown((step - below)[None]).astype(product.out.dtype)
            different = np.bitwise_xor(product.out, expected, out=product.buffer).view(np.uint8)
            different &= mask
            if different.any():
                wrong = expected + np.zeros_like(product.out)
                product.differs(product.out, wrong, "for random codes of other channels", different != 0)
        self.missed += -np.log2(1 - 0.25 * 255 / 256)

    def dithered(self) -> None:
        g, region, product = self.geometry, self.region, self.product
        worst = self.worst
        spread = region.spread if g.depthwise else np.full(self.channels, region.spread[worst])
        per_input = spread.reshape(g.inputs, -1).min(axis=1) if g.depthwise else np.full(g.inputs, spread[0])
        values = self.two_colors(per_input)
        states = np.append(self.rng.integers(0, 2, product.flat.shape[0]), 2)
        np.take(values.astype(product.flat.dtype), states[:-1], axis=0, out=product.flat)
        patterns, pattern = self.patterns(states)
        centred = self.centred(values)
        sums = self.sums(patterns, centred)
        extent = (np.repeat(per_input, self.channels // g.inputs) if g.depthwise else spread) * self.extent
        first, size, seen = self.amounts(centred, per_input, extent)
        turns = int(np.clip(0.5 / max(seen[worst], 0.01), 1, MOST_TURNS))
        for _ in range(turns):
            self.run(sums, first + self.rng.integers(0, size), pattern)
        self.missed += -np.log2(1 - self.share * (1 - (1 - seen) ** turns))

    def two_colors(self, spread: Array) -> Array:
        """The quantized values of two random colours and of the zero point, [3, inputs]. In each input channel the two
        colours differ by `spread`, and the zero point lies between them or equals one of them."""
        g, product = self.geometry, self.product
        one = np.clip(
            product.zero - self.rng.integers(0, spread + 1), np.full(g.inputs, product.least), product.most - spread
        )
        other = one + spread
        swapped = self.rng.integers(0, 2, g.inputs) > 0
        zero = np.full(g.inputs, product.zero)
        return np.stack([np.where(swapped, other, one), np.where(swapped, one, other), zero])

    def amounts(self, values: Array, spread: Array, extent: Array) -> tuple[Array, Array, Array]:
        """In a `dithered` trial (see the module), a random integer is added to the sums of each channel. Choose for
        each channel the interval from which it is drawn. Return three arrays, by channel: the start and the length of
        the interval, and a lower bound of the probability that the trial shows a sum that is wrong by `extent` or more,
        whatever the data of the other input channels are."""
        region = self.region
        low, high, slack = self.ends(values, spread)
        room = region.last - region.first - region.widest - (high - low)
        fits = (room >= slack) & (region.widest > 0)
        place = region.first - low + self.rng.integers(0, np.maximum(room, 0) + 1)
        within = np.where(fits, np.minimum(extent, region.narrowest) / np.maximum(region.widest, 1), 0.0)
        reach = np.minimum(extent, self.reach)
        size = self.ends_of_steps[1] - self.ends_of_steps[0] + 2 * reach + (high - low)
        across = (reach + np.minimum(self.gaps, reach).sum(axis=0)) / np.maximum(size + slack, 1)
        better = within >= across
        first = np.where(better, place, self.ends_of_steps[0] - reach - high)
        count = np.where(better, region.widest, size)
        return first, np.maximum(count, 1), np.minimum(np.maximum(within, across), 1.0)

    # Parts of trials

    def codes(self, shape: tuple[int, ...]) -> Array:
        """Uniformly random quantized values."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.rng.bytes(count), self.product.flat.dtype).reshape(shape)

    def centred(self, values: Array) -> Array:
        return values.astype(np.float64) - self.product.zero

    def a_step(self) -> Array:
        """For each channel a random sum at which the result changes; 0 for channels without one."""
        which = (self.rng.random(self.channels) * self.count).astype(np.int64)
        return np.where(self.count > 0, self.steps[which, np.arange(self.channels)], 0)

    def patterns(self, states: Array) -> tuple[Array, Array]:
        """Return the distinct windows of the test data, `[windows, cells of a window]`, and for each pixel of the
        result the index of its window. Each pixel of the data has one of three vectors of values, given by its state: 0
        or 1 for two random vectors, 2 for the zero point in every channel. `states`: the state of each pixel of the
        data, and at the end that of the padding."""
        g = self.geometry
        seen = states.astype(np.uint8)[g.sources]
        if g.cells > 39:
            return seen, np.arange(g.pixels)
        _, at, pattern = np.unique(seen @ 3 ** np.arange(g.cells), return_index=True, return_inverse=True)
        return seen[at], pattern

    def sums(self, states: Array, values: Array) -> Array:
        """The sums [windows, channels] that the claimed product has for test images that consist of a few colours
        (random pixels), for the channels whose results are compared. `states` [windows, cells]: the colour of each
        pixel of a window; `values` [colours, input channels]: the colours, minus the zero point."""
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
        """The contribution of one cell of the kernel to a sum, [colours, compared channels], if the pixel that the cell
        multiplies has a certain colour. A colour is a vector of quantized values of a pixel; `values` [colours, input
        channels] are those of each colour, minus the zero point."""
        rows = self.product.matrix[columns]
        if self.geometry.depthwise:
            return np.repeat(values, self.channels // self.geometry.inputs, axis=1)[:, columns] * rows[:, cell, 0]
        return values @ rows[:, cell].T.astype(np.float64)

    def run(self, sums: Array, amount: Array, pattern: Array) -> None:
        """Run the kernel's machine code with `amount` [channels] added to its sums, and compare its results with those
        of the formula that the file claims. `sums` [windows, compared channels] are the sums without the amount, one
        row for each distinct window of input pixels; `pattern` has for each pixel of the result the index of its
        window. Sums outside of the claimed range are not compared. Raises Differs."""
        product, columns = self.product, self.columns
        amount = np.where(self.tested, amount, 0)
        product.shift(amount)
        moved = sums + amount[columns]
        table = product.results(moved, columns)
        every = isinstance(columns, slice)
        expected = np.take(table, pattern, axis=0, out=product.buffer if every else None, mode="clip")
        self.product.run()
        found = product.out if every else np.take(product.out, columns, axis=1)
        if not same(found, expected):
            low, high = product.low[columns], product.high[columns]
            allowed = (moved >= low) & (moved <= high) & self.tested[columns]
            product.differs(found, expected, "for random codes", allowed[pattern], columns)

    # Dithered trials

    def ends(self, values: Array, spread: Array) -> tuple[Array, Array, Array]:
        """Return three arrays, by channel: the least and the largest sum of a window whose pixels each have one of the
        three colours `values` (two random ones and the zero point, [3, inputs]); and how far outside of this range a
        sum can lie if the two random colours exchange their values in one input channel, in which they differ by
        `spread`."""
        g, rows = self.geometry, self.product.matrix
        parts = np.stack([self.cell(cell, values, slice(None)) for cell in range(g.cells)])
        low, high = parts.min(axis=1).sum(axis=0).astype(np.int64), parts.max(axis=1).sum(axis=0).astype(np.int64)
        if g.depthwise or g.inputs == 1:
            return low, high, np.zeros_like(low)
        widths = np.abs(rows).sum(axis=1)
        most = widths.sum(axis=1) * int(spread[0]) - (high - low)  # for any colours with this distance
        return low, high, np.minimum(2 * widths.max(axis=1) * int(spread[0]), most)

    def regions(self) -> Region:
        """For each channel, the parameters of the `dithered` trials (random tests with random amounts added to the
        sums): the range of sums in which they lie, chosen so that the channel needs the fewest trials. Sets
        `self.chance`: for each channel, the approximate probability that a wrong sum shows in one trial."""
        found = [self.region_of(channel) for channel in range(self.channels)]
        self.chance = np.minimum([chance for chance, _ in found], 1.0)
        return Region(*(np.array(column, np.int64) for column in zip(*(row for _, row in found), strict=True)))

    def region_of(self, channel: int) -> tuple[float, tuple[int, ...]]:
        """Choose the range of sums with which one of the channel's `dithered` trials (see the module's docstring) most
        likely shows an error. Returns the approximate probability of that, and the channel's fields of `Region`."""
        steps = self.steps[: int(self.count[channel]), channel]
        if not steps.size:
            return 0.0, (0, 0, 0, 0, 1)
        weights = np.abs(self.product.matrix[channel]).astype(np.float64)
        alone = self.geometry.depthwise or self.geometry.inputs == 1
        several = np.sqrt((weights**2).sum(axis=1)).sum() + 2 * weights.sum(axis=0).max()
        unit = float(weights.sum() if alone else min(several, weights.sum()))
        gaps, length = np.diff(steps), int(steps[-1] - steps[0])
        best, chosen = -1.0, (0, 0, 0, 0, 1)
        for spread in (16, 64, WIDEST):
            reach = min(int(self.reach[channel]), spread * self.extent)
            chance = float(reach + np.minimum(gaps, reach).sum()) / (spread * unit + length + 2 * reach)
            if chance > best:
                best, chosen = chance, (0, 0, 0, 0, spread)
        for widest in np.unique(np.quantile(gaps, [0.5, 0.75, 0.9, 1.0], method="higher")) if gaps.size else ():
            ends = np.flatnonzero(np.concatenate([[True], gaps > widest, [True]]))
            longest = int(np.argmax(np.diff(ends)))
            begin, end = int(ends[longest]), int(ends[longest + 1]) - 1
            if end <= begin:
                continue
            first, last = int(steps[begin]), int(steps[end])
            spread = int(min((last - first - widest) / max(unit, 1.0), WIDEST))
            narrowest = int(gaps[begin:end].min())
            chance = min(spread * self.extent, narrowest) / float(widest)
            if chance > best and spread > 0:
                best, chosen = chance, (first, last, int(widest), narrowest, spread)
        return best, chosen
