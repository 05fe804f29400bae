"""What a kernel does with its sums: a function of the sum, of the channel, and perhaps of one more tensor of codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from relay.runtime.memory import Array
from relay.validation.claims import Call, Row
from relay.validation.formulas import POINTWISE


class NoTail(Exception):
    """A program that is no product, window or sum with a function of the sum behind it, and why."""


class Tail:
    """The rows behind the first. `first(s)` is the code that a sum becomes, [..., channels]; `table` what becomes of it
    and of a code of the other tensor, by both, counted from the lowest; None where `first` is the result."""

    def __init__(self, call: Call):
        self.call, self.program = call, call.program
        head, *rows = self.program.rows
        self.head, self.rows = head, rows
        self.sum = head.results[0]
        if len(self.program.results) != 1:
            raise NoTail("has several results")
        self.result = self.program.results[0]
        rank = len(self.program.forms[self.sum].shape)
        dependent, joined, self.cut = {self.sum}, set[int](), self.sum
        others = set(call.operands) - set(head.operands)
        if len(others) > 1:
            raise NoTail("reads more than one tensor beside the data")
        self.other = next(iter(others), None)
        self.first_rows: list[Row] = []
        for row in rows:
            axis = row.parameters.get("axis")
            if row.formula not in POINTWISE or (axis is not None and axis % rank != rank - 1):
                raise NoTail(f"goes on with {row.formula}")
            if others & set(row.operands) or joined & set(row.operands):
                joined |= set(row.results)
        for row in rows:
            if dependent & set(row.operands):
                dependent |= set(row.results)
        for number, row in enumerate(rows):
            later = {value for each in rows[number + 1 :] for value in each.operands if value in dependent}
            earlier = {self.sum, *(value for each in rows[:number] for value in each.results)}
            is_code = self.program.forms[row.results[0]].dtype.itemsize == 1
            if is_code and row.results[0] in dependent and row.results[0] not in joined and not later & earlier:
                self.cut = row.results[0]
                self.first_rows = [each for each in rows[: number + 1] if not set(each.results) & joined]
                break
        if self.cut == self.sum:
            raise NoTail("has no code of 8 bits behind its sum alone")
        self.dtype = self.program.forms[self.cut].dtype
        self.lowest = int(np.iinfo(self.dtype).min)
        self.codes = np.arange(256) + self.lowest

    @property
    def channels(self) -> int:
        """The size of the last axis."""
        return self.program.forms[self.sum].shape[-1]

    def first(self, sums: Array) -> Array:
        """The codes that sums become, int64."""
        given: Mapping[int, Array] = {**self.call.constants, self.sum: sums.astype(np.int64).astype(np.int32)}
        return self.program.evaluate(given, self.first_rows)[self.cut].astype(np.int64)

    @cached_property
    def table(self) -> Array | None:
        """The result of each code [256] and code of the other tensor [256 or 1]; None where the code is the result."""
        if self.cut == self.result:
            return None
        rest = [row for row in self.rows if row not in self.first_rows]
        known = {**self.call.constants, **self.program.values}
        vectors = {number for number, value in known.items() if value.size > 1}
        if any(row.formula != "lookup" and vectors & set(row.operands) for row in rest):
            raise NoTail("does to its codes what depends on the channel")
        given = {**self.call.constants, self.cut: self.codes.astype(self.dtype)[:, None]}
        if self.other is not None:
            dtype = self.program.arguments[self.other].dtype
            if dtype.itemsize != 1:
                raise NoTail("reads another tensor that is not of 8 bits")
            given[self.other] = (np.arange(256) + int(np.iinfo(dtype).min)).astype(dtype)[None, :]
        try:
            found = self.program.evaluate(given, rest)[self.result]
        except ValueError:
            raise NoTail("does to its codes what depends on the channel") from None
        if found.ndim != 2 or found.shape[0] != 256 or found.dtype.itemsize != 1:
            raise NoTail("does to its codes what is no table")
        return found

    def steps(self, low: Array, high: Array) -> Array:
        """[256, channels]: for each code the least sum in [low, high] that becomes this code or a larger one, or
        `high + 1`. Raises NoTail where codes do not rise with sums."""
        low, high = low.astype(np.int64), high.astype(np.int64)
        below = np.broadcast_to(low - 1, (256, self.channels)).copy()
        above = np.broadcast_to(high + 1, (256, self.channels)).copy()
        wanted = self.codes[:, None]
        ends = self.first(np.stack([low, high]))
        reached, free = wanted <= ends[0], wanted > ends[1]
        above[reached], below[free] = (
            np.broadcast_to(low, above.shape)[reached],
            np.broadcast_to(high, below.shape)[free],
        )
        while (above - below > 1).any():
            middle = (below + above) >> 1
            enough = self.first(np.clip(middle, low, high)) >= wanted
            open = above - below > 1
            above = np.where(open & enough, middle, above)
            below = np.where(open & ~enough, middle, below)
        if (np.diff(above, axis=0) < 0).any():
            raise NoTail("has codes that do not rise with the sum")
        return above
