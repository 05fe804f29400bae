"""Check kernels that sum products of quantized values with constant weights, and rescale the sums: the weights are read
back from the machine code, every step of the rescale is tried, and the sums are tested with random linear tests. A step
is a sum at which the rescaled result changes.

Assumptions on the machine code, which the findings name: (L) a sum is an affine function of the quantized data, in 32
bits; (S) a 32-bit constant is added to it before anything else is done, as is observed wherever the constant is
changed; (M) results do not fall as sums rise. A wrong coefficient then changes the sum by a difference D, which is
visible if a step lies between the sum and the sum plus D. "Code" in the docstrings below means machine code; in names
of variables and in findings also a quantized value.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import TypeAlias

import numpy as np

from relay.runtime.memory import Array
from relay.validation.claims import Row
from relay.validation.geometry import geometry
from relay.validation.lookup import Lookup
from relay.validation.machine_code import Kernel, same
from relay.validation.report import Part
from relay.validation.tail import PRODUCTS, NoTail, Tail

BITS = 64
RELATIVE = 2.0**-14
"""The relative tolerance for floats."""
Columns: TypeAlias = "slice | Array"
"""A selection of channels: a slice for all, an array of indices for some."""


class Differs(Exception):
    """Raised where a kernel's result differs from the claimed one."""


class Contraction:
    """A kernel that computes products of quantized values with constant weights, by the formula `head`, and the weights
    that its checks read back from the machine code, `matrix` [channel, cell of the kernel, input]."""

    matrix: Array

    def __init__(self, kernel: Kernel, part: Part, rng: np.random.Generator, bits: int, head: Row):
        self.kernel, self.part, self.rng, self.bits, self.head = kernel, part, rng, bits, head
        self.number, self.kernel_number = head.operands[:2]
        self.data, self.weights = kernel.operands[self.number], kernel.call.weights[self.kernel_number]
        self.zero = int(head.parameters.get("input_zero_point") or 0)
        info = np.iinfo(self.data.dtype)
        self.least, self.most = int(info.min), int(info.max)
        sums = kernel.call.program.forms[head.results[0]].shape
        self.channels = sums[-1]
        self.geometry = geometry(head, sums, self.data, kernel.call.program.arguments[self.kernel_number].shape)
        self.flat = self.data.reshape(-1, self.geometry.inputs)

    def put(self, rows: Array, channels: Array, code: int) -> None:
        """Set the data to `code` in the pixels `rows`, and to their zero point everywhere else. Of each of these
        pixels, only the input channel that `channels` lists for it is set; or all channels, if each result reads one
        channel only."""
        self.flat[:] = self.zero
        if self.geometry.depthwise:
            self.flat[rows] = code
        else:
            self.flat[rows, channels] = code

    def known(self, rows: Array) -> Array:
        """For each channel, whether its coefficients `rows` have the digest of the source model's weights."""
        digests = np.frombuffer(b"".join(sha256(row.tobytes()).digest()[:8] for row in rows), "<u8")
        return digests == self.weights.digests

    def check_source(self, wrong: Array) -> None:
        """Raise Differs if there are channels, `wrong`, whose weights are not those of the source model."""
        if wrong.size:
            some = ", ".join(str(channel) for channel in wrong[:8])
            raise Differs(f"weights of {wrong.size} channels are not those of the source: channels {some}")

    def tell_source(self, count: int) -> None:
        """Add to the report that the weights of `count` channels are those of the source model."""
        self.part.say(
            "proved",
            f"weights of {count} channels, read back from the code at one pixel, are those of the source (64 bits of "
            "sha256 for each channel)",
        )

    def runs_text(self, runs: int, assumed: str) -> str:
        """The finding about this number of random runs, which assumes that sums are affine, and what `assumed` says."""
        return (
            f"sums: {runs} runs with random codes; a wrong coefficient of any result, border and padding too, is "
            f"missed with a probability below 2^-{self.bits} (assumes that sums are affine in the codes, and "
            f"that {assumed})"
        )

    def coefficients(self) -> Array:
        """The weights that were found by running the machine code, in the shape that `relay.validation.formulas` takes:
        [output, input], or [output, row, column, input] for a convolution."""
        if self.head.formula == "nn.dense":
            return self.matrix.reshape(self.channels, -1)
        return self.matrix.reshape(self.channels, *self.geometry.extent, -1)


class Product(Contraction):
    """The checks of one kernel that computes products of quantized values with constant weights."""

    def __init__(self, kernel: Kernel, part: Part, rng: np.random.Generator, bits: int = BITS):
        self.tail = tail = Tail(kernel.call)
        if tail.head.formula not in PRODUCTS:
            raise NoTail(f"begins with {tail.head.formula}")
        number, kernel_number = tail.head.operands[:2]
        if number not in kernel.operands or kernel_number not in kernel.call.weights:
            raise NoTail("is no product of codes with constant weights")
        if kernel.operands[number].dtype.itemsize != 1:
            raise NoTail("has data of more than 8 bits")
        super().__init__(kernel, part, rng, bits, tail.head)
        if not self.least <= self.zero <= self.most:
            raise NoTail("has a zero point that is no code")
        self.claimed = self.low, self.high = self.weights.low.astype(np.int64), self.weights.high.astype(np.int64)
        self.steps = tail.steps(self.low, self.high)
        """Shape [256, channels]: the smallest sum that is rescaled to each 8-bit value or a larger one."""
        self.result = kernel.results[0].reshape(-1, self.channels)
        self.out = self.result if tail.values is None else np.empty(self.result.shape, tail.dtype)
        """The kernel's results; where these are floats or wider integers, the 8-bit values they were computed from."""
        self.buffer = np.empty_like(self.out)
        """Memory in which expected results are put together."""
        self.other = None if tail.other is None else kernel.operands[tail.other].reshape(-1, self.channels)
        self.see()

    # Which results sums have

    def see(self) -> None:
        """Set `seen` [256]: the result for each 8-bit value that a sum may be rescaled to; and `edges` [changes,
        channels]: the sums at which the result changes. If the kernel also reads another tensor (a residual, for
        example), all of its elements are set to the value for which `seen` has the most distinct results."""
        table = self.tail.table
        if table is None:
            self.seen, self.other_code = self.tail.codes, 0
        else:
            ranks = [len(np.unique(table[:, code])) for code in range(table.shape[1])]
            best = int(np.argmax(ranks))
            lowest = 0 if self.other is None else int(np.iinfo(self.other.dtype).min)
            self.seen, self.other_code = table[:, best].astype(np.int64), best + lowest
            if (np.diff(self.seen) < 0).any():
                raise NoTail("has results that fall as sums rise")
        self.changes = 1 + np.flatnonzero(np.diff(self.seen))
        if not self.changes.size:
            raise NoTail("has one result only")
        self.values = self.seen[np.append(self.changes - 1, 255)]
        self.look(self.steps[self.changes], self.low, self.high)

    def look(self, edges: Array, low: Array, high: Array) -> None:
        """Set the sums at which results are expected to change, and the range of sums whose results are compared from
        now on."""
        self.edges, self.low, self.high = edges, low, high
        inside: Array = (edges > low) & (edges <= high)
        self.live = np.asarray(inside.any(axis=0))
        """Whether each channel has more than one result in its range."""
        self.lookup = Lookup(edges, self.values, low, high, self.out.dtype)
        self.__dict__.pop("limits", None)

    def shown(self, sums: Array) -> Array:
        """The expected results of an array of sums [n, channels], in the same shape. If the kernel also reads a tensor
        that is not part of the product, such as a residual, it is assumed to have the value that `quiet` sets."""
        if len(sums) <= 4:
            return self.values[(self.edges[:, None] <= sums).sum(axis=0)]
        passed = np.empty(sums.shape, np.int64)
        for channel, column in enumerate(self.edges.T):
            passed[:, channel] = np.searchsorted(column, sums[:, channel], "right")
        return self.values[passed]

    def run(self) -> None:
        """Run the kernel, and set `out` to its 8-bit results. If the results are floats or wider integers, `out` gets
        the 8-bit value from which each result is computed instead; raises Differs if a result is that of none of the
        256 values."""
        self.kernel.run()
        values = self.tail.values
        if values is None:
            return
        wide = values.astype(np.float64)
        rank = np.searchsorted((wide[1:] + wide[:-1]) / 2, self.result)
        if (off := np.abs(self.result - wide[rank])).max(initial=0) > RELATIVE * np.abs(wide).max():
            at = np.unravel_index(np.argmax(off), off.shape)
            raise Differs(f"{self.result[at]} is the result of no code, at pixel {at[0]}, channel {at[1]}")
        self.out[:] = (rank + self.tail.lowest).astype(self.out.dtype)

    def quiet(self) -> None:
        """Set the data to their zero point, and all other tensors that the kernel reads to fixed values."""
        self.flat[:] = self.zero
        for number, code in self.tail.held.items():
            self.kernel.operands[number][...] = code
        if self.other is not None:
            self.other[:] = self.other_code

    # The constant that is added to the sums

    def find_start(self) -> None:
        """Find `start`, the constant that the machine code adds to its sums, and `channel`, the output channel to which
        each element of it is added (-1 for none). Raises NoTail if no such constant is found, and Differs if the kernel
        is seen to compute something else."""
        machine = self.kernel.machine
        self.quiet()
        zero = np.zeros((1, self.channels), np.int64)
        self.expect(np.broadcast_to(self.shown(zero), self.out.shape), "where the data are at their zero point")
        lives = self.live
        starts = self.kernel.call.starts
        for name in starts or self.kernel.call.reads:
            array = machine.constant(name)
            if array.dtype != np.int32 or not array.size or np.shares_memory(array, self.data):
                continue
            used = self.used(array)
            if used is None:
                continue
            channel = np.full(array.size, -1)
            place = np.broadcast_to(np.arange(self.channels), self.out.shape)
            known = used >= 0
            channel[used[known]] = place[known]
            if (known | ~lives).all() and (channel[used[known]] == place[known]).all():
                self.start, self.base, self.channel = array, array.copy(), channel
                if self.adds():
                    return
        if starts and lives.any():
            raise Differs("what is added to the constants that sums start with is not added to the sums")
        raise NoTail("has no constant that is seen to be added to its sums")

    def used(self, array: Array) -> Array | None:
        """For each element of the kernel's result, the index of the element of the constant `array` that it depends on,
        -1 if it depends on none; None if the whole result does not depend on the constant. Found by changing all
        elements whose index has a certain bit, for one bit after the other."""
        span = int(min(max((self.high - self.low).max(), 1), 1 << 28))
        before, found = array.copy(), np.zeros(self.out.shape, np.int64)
        self.run()
        quiet = self.out.copy()
        moved = np.zeros(self.out.shape, bool)
        index = np.arange(array.size)
        try:
            for bit in [-1, *range(max(int(array.size - 1).bit_length(), 0))]:
                chosen = np.ones(array.size, bool) if bit < 0 else (index >> bit & 1).astype(bool)
                changed = np.zeros(self.out.shape, bool)
                for sign in (1, -1):
                    wide = before.astype(np.int64) + sign * span * chosen
                    array[:] = wide.astype(np.int32)
                    self.run()
                    changed |= self.out != quiet
                if bit < 0:
                    moved = changed
                    if not moved.any():
                        return None
                else:
                    found |= changed.astype(np.int64) << bit
        finally:
            array[:] = before
        found[~moved] = -1
        return np.where(found < array.size, found, -1)

    def shift(self, amount: Array) -> None:
        """Add `amount` [channels] to the sums, by changing the constant `start`."""
        wide = self.base.astype(np.int64) + np.where(self.channel >= 0, amount[self.channel], 0)
        self.start[:] = wide.astype(np.int32)

    def adds(self) -> bool:
        """Whether adding an amount to the constant `start`, which the code adds to its sums, changes the results as if
        the sums were larger by this amount: tried with four random amounts for each channel."""
        try:
            for _ in range(4):
                amount = self.rng.integers(self.low, self.high + 1)
                self.shift(amount)
                self.run()
                if not np.array_equal(self.out, np.broadcast_to(self.shown(amount[None]), self.out.shape)):
                    return False
        finally:
            self.start[:] = self.base
        return True

    def expect(self, expected: Array, when: str) -> None:
        """Run the kernel, and raise Differs if its results are not the expected ones; `when` describes the run in the
        message."""
        np.copyto(self.buffer, expected, casting="unsafe")
        self.run()
        if not same(self.out, self.buffer):
            self.differs(self.out, expected, when, np.ones((1, 1), bool))

    # Rescale

    def try_steps(self) -> int:
        """Run the kernel with sums at which its result should change (steps of the rescale), and with the sums before
        them, for all steps of every channel; also with the least and the largest sum that are compared, and 0. If the
        kernel reads another tensor, its values vary over the elements of the result. Returns the number of pairs of sum
        and channel that were tried. Raises Differs if a result is wrong."""
        self.quiet()
        table = self.tail.table
        flat_table = np.zeros(0) if table is None else np.broadcast_to(table, (256, 256)).reshape(-1)
        place = np.arange(self.out.size if self.other is not None else 0).reshape(-1, self.channels)
        columns = [
            np.unique(column[(column > low) & (column <= high)])
            for column, low, high in zip(self.steps.T, self.low, self.high, strict=True)
        ]
        rows = max(len(column) for column in columns)
        padded = np.broadcast_to(self.low, (rows, self.channels)).copy()
        for channel, column in enumerate(columns):
            padded[: len(column), channel] = column
        tried = 2 * sum(len(column) for column in columns) + 3 * self.channels
        sums = [*padded, *(padded - 1), self.low, self.high, np.zeros_like(self.low)]
        turns = 1 if self.other is None else -(-256 // max(min(self.out.size, 256), 1))
        amounts = np.clip(np.stack(sums), self.low, self.high)
        for number, (amount, codes) in enumerate(
            zip(amounts, self.tail.first(amounts) - self.tail.lowest, strict=True)
        ):
            self.shift(amount)
            for turn in range(turns):
                if table is None:
                    expected: Array = np.broadcast_to(self.seen[codes], self.out.shape)
                elif self.other is None:
                    expected = np.broadcast_to(table[codes, 0], self.out.shape)
                else:
                    others = (place + number * 7 + turn * self.out.size) & 255
                    self.other[:] = (others + int(np.iinfo(self.other.dtype).min)).astype(self.other.dtype)
                    expected = flat_table[(codes << 8) + others]
                self.expect(expected, "at a step of the rescale")
        self.start[:] = self.base
        return tried

    # Weights

    def read_weights(self) -> None:
        """Find the coefficients that the machine code uses by running it: each is measured at one pixel of the result,
        and stored in `matrix` [channel, cell of the kernel, input]. `sure` [channel]: whether the digest of the
        channel's coefficients equals that of the weights that the file claims. Coefficients of cells that only meet
        padding are 0."""
        g = self.geometry
        inputs = 1 if g.depthwise else g.inputs
        self.matrix = np.zeros((self.channels, g.cells, inputs), np.int64)
        self.quiet()
        extreme = self.most if self.most - self.zero >= self.zero - self.least else self.least
        amount = extreme - self.zero
        widest = np.minimum(255, (self.claimed[1] - self.claimed[0]) // 255)
        middle = self.middles()
        for pixels, cells, channels in g.batches(inputs, self.rng):
            self.put(g.sources[pixels, cells], channels, extreme)
            least = np.broadcast_to(-widest, (len(pixels), self.channels)).copy()
            most = np.broadcast_to(widest, least.shape).copy()
            for turn in range(1024):
                width = most - least
                if not (width[:, self.live] > 0).any():
                    break
                which = (
                    np.argmax(width, axis=0)
                    if turn % 2 == 0
                    else np.argmax(self.rng.random(width.shape) * (width > 0), axis=0)
                )
                column = np.arange(self.channels)
                guess = (least[which, column] + most[which, column] + (amount > 0)) >> 1
                shift = np.clip(middle - amount * guess, self.low - (self.high - self.low), 2 * self.high - self.low)
                self.shift(shift)
                self.run()
                first, last = self.bounds(self.out[pixels])
                first, last = first - shift, last - shift
                if amount > 0:
                    lower, upper = -(-first // amount), last // amount
                else:
                    lower, upper = -(-last // amount), first // amount
                least, most = np.maximum(least, lower), np.minimum(most, upper)
                if (least > most)[:, self.live].any():
                    raise Differs(
                        "the coefficients that the code uses are no 8-bit weights: results contradict each other"
                    )
            self.matrix[:, cells, channels] = np.where(least == most, least, 0).T
        self.start[:] = self.base
        rows = g.coefficients(self.matrix)
        self.sure = self.known(rows)
        wide = rows.astype(np.int64)
        positive, negative = np.maximum(wide, 0).sum(axis=1), np.minimum(wide, 0).sum(axis=1)
        least, most = self.least - self.zero, self.most - self.zero
        low, high = positive * least + negative * most, positive * most + negative * least
        self.ranged = (low == self.claimed[0]) & (high == self.claimed[1])

    def middles(self) -> Array:
        """For each channel, the median of its change points: the sums, within the channel's range of sums, at which the
        result becomes another one. 0 for channels without a change point."""
        found = np.zeros(self.channels, np.int64)
        for channel in np.flatnonzero(self.live):
            column = self.edges[:, channel]
            inside = np.unique(column[(column > self.low[channel]) & (column <= self.high[channel])])
            found[channel] = inside[len(inside) // 2]
        return found

    @cached_property
    def limits(self) -> tuple[Array, Array, Array]:
        """Return three arrays: the results in rising order; for each channel the ranks (indices in the first array) of
        the results at both ends of its range of sums; and, by rank and channel, the least sum with this result or a
        larger one."""
        values = self.values
        ends = np.searchsorted(values, self.shown(np.stack([self.low, self.high])))
        far = np.int64(1) << 40
        edges = np.concatenate([np.full((1, self.channels), -far), self.edges, np.full((1, self.channels), far)])
        return values, ends, np.where(edges > self.high, far, np.where(edges <= self.low, -far, edges))

    def bounds(self, results: Array) -> tuple[Array, Array]:
        """For each of the results [pixels, channels], the least and the largest sum that gives it."""
        values, ends, edges = self.limits
        rank = np.clip(np.searchsorted(values, results.astype(np.int64)), ends[0], ends[1])
        column = np.arange(self.channels)
        return edges[rank, column], edges[rank + 1, column] - 1

    # Results of random runs

    def results(self, sums: Array, columns: Columns) -> Array:
        """The expected results for `sums` [n, channels], whose columns are the channels `columns`: from the table
        `lookup`, or by the claimed formula if the table is too large; then `sums` must have all channels. A second
        tensor that the kernel reads is assumed to have the constant value that `quiet` gives it."""
        return self.lookup(sums, columns) if self.lookup.fits else self.shown(sums).astype(self.out.dtype)

    def differs(self, found: Array, expected: Array, when: str, allowed: Array, columns: Columns = slice(None)) -> None:
        """Compare results; raise Differs if one differs at a position where the mask `allowed` is true. `when`
        describes the run in the message."""
        different = (found != expected) & allowed
        if different.any():
            wrong = np.argwhere(different)
            pixel, column = (int(n) for n in wrong[0])
            got, want = int(found[pixel, column]), int(expected[pixel, column])
            channel = int(np.arange(self.channels)[columns][column])
            many = f"{len(wrong)} of {self.out.size} results"
            raise Differs(f"{many} differ {when}; the first at pixel {pixel}, channel {channel}: {got}, not {want}")

    # All checks

    def check_rescale(self) -> None:
        """Check every step of the rescale, that is, every sum at which the rescaled result changes, and add what was
        proved to the report `part`. Raises Differs if a result is not the claimed one."""
        self.find_start()
        steps = self.try_steps()
        pairs = "" if self.other is None else ", the codes of the other tensor in turn"
        self.part.say(
            "proved",
            f"rescale of {self.channels} channels at {steps} sums: every step, the sum before it, the ends of the "
            f"range{pairs} (assumes that codes do not fall as sums rise)",
        )

    def check_weights(self) -> dict[int, Array]:
        """Read the weights back from the machine code, compare them with the claimed digests, check that all sums fit
        in 32 bits, and add the findings to the report `part`. Returns the weights, in the shape that
        `relay.validation.formulas` takes, by the number of the kernel's argument. Raises Differs."""
        self.read_weights()
        self.tell_weights()
        low, high = self.range_of_sums()
        self.part.say("proved", f"no sum of these weights leaves 32 bits: sums with bias lie in [{low}, {high}]")
        return {self.kernel_number: self.coefficients()}

    def tell_weights(self) -> None:
        """Check the weights that were read back from the machine code, and add the findings to the report `self.part`.
        Raises Differs if a channel's weights do not have the digest that the file claims, or do not give the claimed
        range of sums. Channels whose result is the same for every sum are only checked for that."""
        live, channels = self.live, self.channels
        self.check_source(np.flatnonzero(live & ~self.sure))
        if (live & ~self.ranged).any():
            raise Differs("the claimed range of sums is not that of the weights")
        self.tell_source(int(live.sum()))
        if live.all():
            return
        far = self.matrix[0].size * 255 * 255
        self.quiet()
        found: list[Array] = []
        for sign in (-1, 1):
            self.shift(np.full(channels, sign * far))
            self.run()
            found.append(self.out[:, ~live].copy())
        self.start[:] = self.base
        constant = np.array_equal(found[0], found[1]) and bool((found[0] == found[0][:1]).all())
        self.part.say(
            "proved" if constant else "not checked",
            f"weights of {int((~live).sum())} channels do not matter: their result is one code for every sum of "
            + ("8-bit weights" if constant else "the weights that the claim says they have"),
        )

    def range_of_sums(self) -> tuple[int, int]:
        """The least and the largest sum, with and without bias. Raises Differs if they need more than 32 bits."""
        low, high = self.claimed
        for row in self.tail.first_rows:
            if row.formula == "nn.bias_add" and row.operands[0] == self.tail.sum:
                bias = self.kernel.call.constants[row.operands[1]].astype(np.int64)
                low, high = np.minimum(low, low + bias), np.maximum(high, high + bias)
        if low.min() < -(1 << 31) or high.max() >= 1 << 31:
            raise Differs("sums leave 32 bits")
        return int(low.min()), int(high.max())
