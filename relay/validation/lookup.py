"""Fast evaluation of the results of many sums: by a table of all sums between the first and the last step of each
channel (a step is a sum at which the result changes), or, where that is too large, by buckets of sums that contain at
most one step each."""

from __future__ import annotations

import numpy as np

from relay.runtime.memory import Array

MOST_SUMS = 1 << 25
"""The largest number of entries of a table with a result for each sum (see `Lookup`), for all channels together."""
MOST_BUCKETS = 1 << 22
"""The largest number of buckets that a `Lookup` stores, for all channels together, if its sums are too many for an
entry each: a bucket is a range of sums in which the result changes at most once."""
NEVER = np.int64(1) << 60


class Lookup:
    """A table of a kernel's results for each channel and each sum from `low` to `high` [channels]. As the sum rises,
    the result takes the numbers `values` [changes + 1] one after the other; `edges` [changes, channels] are the least
    sums with each value but the first. Edges outside of the range are ignored."""

    def __init__(self, edges: Array, values: Array, low: Array, high: Array, dtype: np.dtype[np.generic]):
        self.first, self.bits = low.astype(np.int64), np.zeros(low.size, np.int64)
        inside = (edges > low) & (edges <= high)
        last, first = np.where(inside, edges, low).max(axis=0), np.where(inside, edges, NEVER).min(axis=0)
        first = np.minimum(first, last)
        self.direct = None
        if int((last - first + 2).sum()) <= MOST_SUMS:
            self.fits, self.first, self.most = True, first - 1, last - first + 1
            self.start = np.concatenate([[0], np.cumsum(last - first + 2)[:-1]])
            rows = zip(edges.T, first.tolist(), last.tolist(), strict=True)
            self.direct = np.concatenate([direct(*row, values.astype(dtype)) for row in rows])
            return
        columns: list[tuple[Array, Array, Array]] = []
        for channel in range(low.size):
            column = np.ascontiguousarray(edges[:, channel])
            inside = np.unique(column[(column > low[channel]) & (column <= high[channel])])
            if inside.size:
                self.first[channel] = inside[0]
            if inside.size > 1:
                self.bits[channel] = int(np.diff(inside).min()).bit_length() - 1
            last = int(inside[-1]) if inside.size else int(low[channel])
            count = ((last - int(self.first[channel])) >> int(self.bits[channel])) + 1
            starts: Array = int(self.first[channel]) + np.left_shift(np.arange(count + 1), int(self.bits[channel]))
            starts[-1] = high[channel] + 1
            places = np.concatenate([low[channel : channel + 1], starts])
            passed = np.searchsorted(column, places, "right")
            before = passed[:-1]
            after = np.append(before[0], np.searchsorted(column, starts[1:] - 1, "right"))
            padded = np.append(column, NEVER)
            step = np.where(after > before, padded[before], NEVER)
            columns.append((step, values[before].astype(dtype), values[after].astype(dtype)))
        self.width = max(len(step) for step, _, _ in columns)
        self.fits = self.width * low.size <= MOST_BUCKETS
        if self.fits:
            wide = [[np.pad(part, (0, self.width - len(part)), "edge") for part in column] for column in columns]
            self.steps, self.before, self.after = (np.concatenate([column[n] for column in wide]) for n in range(3))
            self.start = np.arange(low.size) * self.width
            self.most = np.array([len(step) - 1 for step, _, _ in columns])

    def __call__(self, sums: Array, columns: slice | Array = slice(None)) -> Array:
        """The results of sums [..., selected channels], each of which must be between `low` and `high` of its channel;
        `columns` selects the channels."""
        if self.direct is not None:
            at = sums - self.first[columns]
            np.maximum(at, 0, out=at)
            np.minimum(at, self.most[columns], out=at)
            at += self.start[columns]
            return self.direct[at]
        at = ((sums - self.first[columns]) >> self.bits[columns]) + 1
        np.maximum(at, 0, out=at)
        np.minimum(at, self.most[columns], out=at)
        at += self.start[columns]
        return np.where(sums >= self.steps[at], self.after[at], self.before[at])


def direct(column: Array, first: int, last: int, values: Array) -> Array:
    """One channel's lookup table: entry i is the result of the sum `first - 1 + i`, up to the sum `last`. `column` has
    the least sum after each change of the channel's result, and `values` the result before, between and after the
    changes."""
    ends = np.unique(np.concatenate([[first - 1, last + 1], column[(column >= first) & (column <= last)]]))
    return np.repeat(values[np.searchsorted(np.sort(column), ends[:-1], "right")], np.diff(ends))
