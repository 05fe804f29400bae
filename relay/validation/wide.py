"""Check products of quantized values whose results have more than 8 bits, or are floats, so that sums that differ by
more than a few units give different results.

Weights are found by running the code on data with a single value other than the zero point, and are compared with
digests of the source model's weights. Then the whole kernel is compared with its formula on random data, each datum one
of the 2 a + 1 values in [zero point - a, zero point + a]. If the code uses a wrong coefficient, its sum is off by an
amount D that is an affine function of one datum: for every integer t > 0, at most 2 t - 1 values of the datum give
|D| < t. If |D| is at least t, the result is seen to be wrong, provided that the claimed formula gives other results
both for a sum t larger and for a sum t smaller; the share of such results is measured. So a run misses the error with a
probability of at most 1 - (this share) + (2 t - 1) / (2 a + 1). Of several values tried for t, the best one counts.
Assumptions: sums are affine in the data, and results do not fall as sums rise.
"""

from __future__ import annotations

import numpy as np

from relay.runtime.memory import Array
from relay.validation.contraction import BITS, Contraction, Differs
from relay.validation.machine_code import Kernel
from relay.validation.pointwise import bound_of, expect, kind_of
from relay.validation.report import Part
from relay.validation.tail import PRODUCTS, NoTail

MOST_RUNS = 4000
MOST_RESULTS = 1 << 28
MOST_ENDS = 64
"""The maximum number of channels for which the kernel is run on data that give the least and the largest sum."""
MARGIN = 0.05
"""The share of results that would change if the machine code computed a wrong sum is measured on a sample, so it may be
too large. This amount is subtracted from it, to get a lower bound of the probability that a run detects the error."""


class Wide(Contraction):
    """Checks one kernel: a product of quantized values whose results are floats or have more than 8 bits."""

    def __init__(self, kernel: Kernel, part: Part, rng: np.random.Generator, bits: int = BITS):
        call, program = kernel.call, kernel.call.program
        head, *self.rows = program.rows
        if head.formula not in PRODUCTS:
            raise NoTail(f"begins with {head.formula}")
        number, kernel_number = head.operands[:2]
        if kernel_number not in call.weights:
            raise NoTail("is no product of codes with constant weights")
        if number not in kernel.operands or len(program.results) != 1:
            raise NoTail("has several results, or data that are no tensor of codes")
        self.sum, self.result = head.results[0], program.results[0]
        self.form = program.forms[self.sum]
        if program.forms[self.result].shape != self.form.shape:
            raise NoTail("has a result of another shape than its sums")
        super().__init__(kernel, part, rng, bits, head)
        self.out = kernel.results[0].reshape(-1, self.channels)
        for number, operand in kernel.operands.items():
            if number != self.number:
                operand[...] = operand.dtype.type(operand.dtype.kind == "f")  # scales are 1, added tensors 0
        self.given = {
            number: np.asarray(kernel.operands[number]) for number in kernel.operands if number != self.number
        }

    def after(self, sums: Array) -> Array:
        """The results that the kernel's claimed formula computes from an array of sums [n, channels], in the same
        shape."""
        rank = len(self.form.shape)
        wide = sums.reshape(*[1] * (rank - 2), -1, self.channels).astype(self.form.dtype)
        ones = {n: np.full([1] * rank, int(x.dtype.kind == "f"), x.dtype) for n, x in self.given.items()}
        program = self.kernel.call.program
        try:
            found = program.evaluate({**self.kernel.call.constants, **ones, self.sum: wide}, self.rows)[self.result]
        except ValueError:
            raise NoTail("does to its sums what depends on their place") from None
        return np.broadcast_to(found, wide.shape).reshape(sums.shape)

    def check(self) -> dict[int, Array]:
        """Run every check, add the findings to `part`, and return the weights read back from the code, in the shape
        that formulas take, by the number of the argument of the claimed program that has the weights."""
        self.read_weights()
        low, high = int(self.weights.low.min(initial=0)), int(self.weights.high.max(initial=0))
        info = np.iinfo(self.form.dtype)
        if low < info.min or high > info.max:
            raise Differs(f"sums leave {info.bits} bits")
        self.part.say("proved", f"no sum of these weights leaves {info.bits} bits: sums lie in [{low}, {high}]")
        self.ends()
        self.random()
        return {self.kernel_number: self.coefficients()}

    def read_weights(self) -> None:
        """Find each weight that the code uses, from runs in which a single element of the data differs from the zero
        point, and compare a hash of each channel's weights with the one in the file. Raises NoTail if the results do
        not determine the weights, Differs if they are not those of the source model."""
        g = self.geometry
        inputs = 1 if g.depthwise else g.inputs
        self.matrix = np.zeros((self.channels, g.cells, inputs), np.int64)
        candidates = np.arange(-255, 256)
        amounts = [self.most - self.zero, self.least - self.zero]
        amounts += [(self.most - self.zero) >> k for k in range(1, 8)]
        tables = [self.after(candidates[:, None] * np.full(self.channels, amount)) for amount in amounts]
        for pixels, cells, channels in g.batches(inputs, self.rng):
            least = np.full((len(pixels), self.channels), -255)
            most = -least
            for amount, table in zip(amounts, tables, strict=True):
                self.put(g.sources[pixels, cells], channels, self.zero + amount)
                self.kernel.run()
                first, last = between(table if amount > 0 else table[::-1], self.out[pixels])
                least = np.maximum(least, first - 255 if amount > 0 else 256 - last)
                most = np.minimum(most, last - 256 if amount > 0 else 255 - first)
                if (least > most).any():
                    raise Differs("the coefficients that the code uses are no 8-bit weights: results contradict them")
                if (least == most).all():
                    break
            else:
                raise NoTail("has results that do not tell single weights")
            self.matrix[:, cells, channels] = least.T
        self.check_source(np.flatnonzero(~self.known(g.coefficients(self.matrix))))
        self.tell_source(self.channels)

    def expected(self) -> tuple[Array, Array]:
        """The claimed sums and results of the current data."""
        call, program = self.kernel.call, self.kernel.call.program
        given = {**call.constants, **self.given, self.number: self.data, self.kernel_number: self.coefficients()}
        values = program.evaluate(given)
        return values[self.sum].reshape(-1, self.channels).astype(np.int64), values[self.result]

    def ends(self) -> None:
        """Run the kernel on data that give the least, then the largest possible sum in one channel, at the pixel with
        the fewest padded cells, and compare the results; repeat this for up to `MOST_ENDS` channels."""
        g = self.geometry
        pixel = int(np.argmax((g.sources < g.padding).sum(axis=1)))
        inside = np.flatnonzero(g.sources[pixel] < g.padding)
        some = self.rng.permutation(self.channels)[:MOST_ENDS]
        for channel in some:
            for sign in (1, -1):
                self.flat[:] = self.zero
                codes = np.where(sign * self.matrix[channel] > 0, self.most, self.least)
                rows = g.sources[pixel, inside]
                if g.depthwise:
                    self.flat[rows, channel // (self.channels // g.inputs)] = codes[inside, 0]
                else:
                    self.flat[rows] = codes[inside]
                expect(self.kernel, [self.expected()[1]], "where a sum is the least or the largest")
        self.part.say(kind_of(self.kernel, "tested"), f"the least and the largest sum of {len(some)} channels")

    def draw(self, amplitude: int) -> None:
        """Set the data to uniformly random codes that differ from the zero point by at most `amplitude`."""
        low, high = max(self.zero - amplitude, self.least), min(self.zero + amplitude, self.most)
        self.flat[:] = self.rng.integers(low, high + 1, self.flat.shape)

    def chance(self, sums: Array, codes: int) -> Array:
        """For each channel, a lower bound of the probability that an error shows in a run with these sums, if each
        datum is one of `codes` equally likely values."""
        best = np.zeros(self.channels)
        some = sums[:: max(len(sums) // 4096, 1)]
        results = self.after(some)
        for power in range(24):
            off = 1 << power
            if 2 * off > codes:
                break
            shown = (self.after(some - off) != results) & (self.after(some + off) != results)
            best = np.maximum(best, shown.mean(axis=0) - MARGIN - (2 * off - 1) / codes)
        return best

    def random(self) -> None:
        """Run the kernel on random data until an error in any coefficient would have shown with a probability of at
        least 1 - 2^-`bits`, or a maximum number of runs is reached, and add the finding to `part`."""
        widest = max(self.most - self.zero, self.zero - self.least)
        amplitudes = [max(widest >> k, 1) for k in range(0, 14 if widest > 255 else 1, 2)]
        chances: list[Array] = []
        counts = [min(self.zero + a, self.most) - max(self.zero - a, self.least) + 1 for a in amplitudes]
        for amplitude, count in zip(amplitudes, counts, strict=True):
            self.draw(amplitude)
            chances.append(self.chance(self.expected()[0], count))
        union = float(np.log2(max(self.out.size, 1)))
        missed, limit = np.zeros(self.channels), max(min(MOST_RUNS, MOST_RESULTS // max(self.out.size, 1)), 16)
        start = self.kernel.runs
        possible = np.max(chances, axis=0) > 0.01
        while self.kernel.runs - start < limit:
            open = possible & (missed < self.bits + union)
            if not open.any():
                break
            worst = int(np.argmin(np.where(open, missed, np.inf)))
            which = int(np.argmax([chance[worst] for chance in chances]))
            self.draw(amplitudes[which])
            sums, results = self.expected()
            expect(self.kernel, [results], "for random codes")
            missed += -np.log2(1 - np.minimum(self.chance(sums, counts[which]), 1 - 2.0**-8))
        weak = missed < self.bits + union
        text = self.runs_text(self.kernel.runs - start, "results do not fall as sums rise")
        if weak.any():
            least = max(float((missed - union)[weak].min()), 0.0)
            text += f"; for {int(weak.sum())} channels the bound is 2^-{least:.0f}"
        if self.out.dtype.kind in "iu":
            text += f"; not every step of the rescale to {8 * self.out.itemsize} bits was tried"
        self.part.say(kind_of(self.kernel, "tested"), text + bound_of(self.kernel))


def between(table: Array, results: Array) -> tuple[Array, Array]:
    """For each element of `results` [n, channels], the range of rows of `table` [rows, channels] that equal it in its
    channel: the first such row, and the row after the last one. The columns of the table must be sorted."""
    first, last = np.empty(results.shape, np.int64), np.empty(results.shape, np.int64)
    for channel, column in enumerate(table.T):
        first[:, channel] = np.searchsorted(column, results[:, channel], "left")
        last[:, channel] = np.searchsorted(column, results[:, channel], "right")
    return first, last
