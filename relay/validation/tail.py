"""The function that a kernel applies to its sums: of the sum, the channel, and perhaps one more tensor of quantized
values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from relay.runtime.memory import Array
from relay.validation.claims import Call, Row
from relay.validation.formulas import POINTWISE

PRODUCTS = ("nn.conv2d", "nn.dense")


class NoTail(Exception):
    """Raised, with the reason, if a program is not of the form that a check needs."""


class Tail:
    """The part of a kernel's claimed formula that follows its sums of products, the row `head`: a rescale of the sums
    to 8 bits, and a function of the rescaled value and of other tensors that the kernel reads, such as a residual.

    `first(s)` [..., channels] are the rescaled values of sums. `table` [256, 256 or 1] is the kernel's result for each
    rescaled value and each value of the only other tensor, both counted from the type's lowest value; None if the
    rescaled value is the result. If there are several other tensors, or the result has more than 8 bits, `held` has a
    constant for each of these tensors instead, chosen so that the results, `values` [256], rise strictly with the
    rescaled value and so identify it.
    """

    def __init__(self, call: Call):
        self.call, self.program = call, call.program
        products = [row for row in self.program.rows if row.formula in PRODUCTS]
        self.head = head = [*products, *self.program.rows][0]
        self.rows = rows = [row for row in self.program.rows if row is not head]
        self.sum = head.results[0]
        if len(self.program.results) != 1:
            raise NoTail("has several results")
        self.result = self.program.results[0]
        rank = len(self.program.forms[self.sum].shape)
        dependent, joined, self.cut = {self.sum}, set[int](), self.sum
        others = set(call.operands) - set(head.operands)
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
        known = {**call.constants, **self.program.values}
        vectors = {number for number, value in known.items() if value.size > 1}
        codes: list[int] = []
        for number, row in enumerate(rows):
            later = {value for each in rows[number + 1 :] for value in each.operands if value in dependent}
            earlier = {self.sum, *(value for each in rows[:number] for value in each.results)}
            is_code = self.program.forms[row.results[0]].dtype.itemsize == 1
            if not is_code or row.results[0] not in dependent - joined or later & earlier:
                continue
            codes.append(row.results[0])
            if not any(vectors & set(each.operands) for each in rows[number + 1 :] if each.formula != "lookup"):
                self.cut = row.results[0]
                self.first_rows = [each for each in rows[: number + 1] if not set(each.results) & joined]
                break
        if self.cut == self.sum:
            why = "does to its codes what depends on the channel" if codes else "has no code of 8 bits behind its sum"
            raise NoTail(why)
        self.dtype = self.program.forms[self.cut].dtype
        self.lowest = int(np.iinfo(self.dtype).min)
        self.codes = np.arange(256) + self.lowest
        self.rest = [row for row in rows if row not in self.first_rows]
        if len(codes) > 1:
            column = np.repeat(self.codes[:, None], self.channels, axis=1).astype(self.program.forms[codes[0]].dtype)
            behind = self.first_rows[[row.results[0] for row in self.first_rows].index(codes[0]) + 1 :]
            found = self.program.evaluate({**call.constants, codes[0]: column}, behind)[self.cut]
            if (np.diff(found.astype(np.int64), axis=0) < 0).any():
                raise NoTail("has codes that do not rise with the sum")
        forms = {number: self.program.arguments[number].dtype for number in others}
        if any(dtype.kind not in "iu" or dtype.itemsize != 1 for dtype in forms.values()):
            raise NoTail("reads another tensor that is not of 8 bits")
        self.other, self.held, self.values = next(iter(others), None), dict[int, Array](), None
        if len(others) > 1 or self.program.forms[self.result].dtype.itemsize != 1:
            self.other = None
            self.hold(forms)

    def hold(self, forms: Mapping[int, np.dtype[Any]]) -> None:
        """Choose a constant for each of the other tensors that the kernel reads: the largest value of the tensor's type
        or, if that fails, the lowest. With these constants, the kernel's results rise strictly with the 8-bit rescaled
        sum, so that a result tells the rescaled sum. Set `held` to the constants, and `values` to the 256 results.
        `forms`: the integer type of each other tensor, by argument number. Raises NoTail if neither choice works."""
        for end in ("max", "min"):
            self.held = {n: np.full((1, 1), getattr(np.iinfo(dtype), end), dtype) for n, dtype in forms.items()}
            values = self.of_codes(self.held)[:, 0]
            if (np.diff(values.astype(np.float64)) > 0).all():
                self.values = values
                return
        raise NoTail("has results that do not tell its codes")

    def of_codes(self, given: Mapping[int, Array]) -> Array:
        """The kernel's results for each of the 256 values to which a sum can be rescaled, [256, ...]. `given`: the
        values of the other tensors that the kernel reads, by argument number."""
        column = self.codes.astype(self.dtype)[:, None]
        return self.program.evaluate({**self.call.constants, self.cut: column, **given}, self.rest)[self.result]

    @property
    def channels(self) -> int:
        """The number of channels: the size of the last axis of the sums."""
        return self.program.forms[self.sum].shape[-1]

    def first(self, sums: Array) -> Array:
        """The 8-bit values that sums are rescaled to, as int64."""
        given: Mapping[int, Array] = {**self.call.constants, self.sum: sums.astype(np.int64).astype(np.int32)}
        return self.program.evaluate(given, self.first_rows)[self.cut].astype(np.int64)

    @cached_property
    def table(self) -> Array | None:
        """The kernel's results [256, 256 or 1] for each rescaled 8-bit value and each value of the other tensor that
        the kernel reads, if any; None if the rescaled value itself is the result."""
        if self.cut == self.result or self.values is not None:
            return None
        given = dict[int, Array]()
        if self.other is not None:
            dtype = self.program.arguments[self.other].dtype
            given[self.other] = (np.arange(256) + int(np.iinfo(dtype).min)).astype(dtype)[None, :]
        return self.of_codes(given)

    def steps(self, low: Array, high: Array) -> Array:
        """Shape [256, channels]: for each 8-bit value the least sum in [low, high] that is rescaled to it or to a
        larger one, `high + 1` if there is none. Raises NoTail if rescaled values fall as sums rise."""
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
