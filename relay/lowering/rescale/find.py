"""Finds the cheapest float computation that is proved to give the same results as a `tosa.apply_scale` of a kernel, for
every channel and with the constants of every call of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.dialects.tosa import RoundingMode
from xdsl.ir import BlockArgument, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import CallGraph
from relay.lowering.rescale.proof import Form, prove
from relay.lowering.rescale.reach import Range, reach
from relay.lowering.rescale.steps import conditions, conditions_of_values, exact_scale
from relay.lowering.rescale.values import enumerate_codes, scalars
from relay.lowering.scheduling.affine import dims_of

FULL = (-(2**31), 2**31 - 1)

T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """The forms (cheaper arithmetic, proved equal) that replace one `tosa.apply_scale`, one for each call of the
    function; all are of the same class."""

    forms: list[Form]

    @property
    def name(self) -> str:
        return self.forms[0].name

    @property
    def channels(self) -> int:
        return sum(form.scale.size for form in self.forms)


def bounds(value: SSAValue) -> tuple[int, int]:
    """Return the least and the greatest rescaled value that matters: a constant is added to the value and the sum is
    clamped, so that values beyond give the same results."""
    added, low, high = 0, *FULL
    while value.has_one_use():
        user = next(iter(value.uses)).operation
        if len(user.operands) != 2:
            break
        other = next((v for v in user.operands if v is not value), None)
        if other is None or not isinstance(other.owner, arith.ConstantOp):
            break
        constant = int(to_numpy(other.owner.value))
        if isinstance(user, arith.AddiOp) and (low, high) == FULL:
            added += constant
        elif isinstance(user, arith.MaxSIOp):
            low = max(low, constant - added)
        elif isinstance(user, arith.MinSIOp):
            high = min(high, constant - added)
        else:
            break
        value = user.results[0]
    return low, high


def find(op: ApplyScaleOp, calls: CallGraph, toward_zero: bool) -> Found | None:
    """Return the cheapest computation in floats that is proved to give the same results as the rescale `op`, for every
    channel of every call of its function; None if there is none. `toward_zero`: whether float32 multiply-adds that
    round towards zero may be used."""
    known = numbers_of(op, calls)
    if known is None:
        return None
    multiplier, shift, sizes = known
    double = op.rounding_mode.data == RoundingMode.DOUBLE_ROUND
    low, high = bounds(op.output)
    if (values := enumerate_codes(op.value)) is not None:
        where = conditions_of_values(values, multiplier, shift, low, high, double)
    else:
        lowest, highest = ranges(op, calls, sizes)
        where = conditions(multiplier, shift, low, high, lowest, highest, double)
    if where is None:
        return None
    scale = exact_scale(multiplier, shift)
    form = prove(scale, where, toward_zero)
    return None if form is None else Found([form.rows(rows) for rows in rows_of(sizes)])


def numbers_of(op: ApplyScaleOp, calls: CallGraph) -> tuple[Array, Array, list[int]] | None:
    """Return the multipliers and shifts of a rescale for each channel of each call, concatenated, and the number of
    channels in each call; None if they do not follow from constants."""
    multipliers, shifts = scalars(op.multiplier, calls), scalars(op.shift, calls)
    if multipliers is None or shifts is None:
        return None
    count = max(len(multipliers), len(shifts))
    pairs = [np.broadcast_arrays(_at(multipliers, i), _at(shifts, i)) for i in range(count)]
    multiplier, shift = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return multiplier, shift, [each.size for each, _ in pairs]


def rows_of(sizes: Sequence[int]) -> list[slice]:
    """Return the position of each call's channels, as a slice, in an array with the channels of all calls, one call
    after the other. `sizes`: the number of channels in each call."""
    return [slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]


def ranges(op: ApplyScaleOp, calls: CallGraph, sizes: Sequence[int]) -> tuple[Array, Array]:
    """Return the least and the greatest input of a rescale for each channel of each call, concatenated; `sizes`: the
    number of channels in each call."""
    found = reach(op.value, calls)
    per_channel = all(goes_with_last(value) for value in (op.multiplier, op.shift))
    parts = [_spread(_at(found, i), size, per_channel) for i, size in enumerate(sizes)]
    if len(found) > len(sizes):  # one multiplier for several calls
        every = [_spread(part, 1, False) for part in found]
        low, high = min(int(p[0][0]) for p in every), max(int(p[1][0]) for p in every)
        parts = [(np.full(size, low), np.full(size, high)) for size in sizes]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _spread(found: Range, size: int, per_channel: bool) -> Range:
    low, high = np.broadcast_arrays(*found)
    if per_channel and low.size == size:
        return low, high
    return np.full(size, low.min()), np.full(size, high.max())


def goes_with_last(value: SSAValue) -> bool:
    """Whether the scalar depends only on the innermost loop."""
    if isinstance(value, BlockArgument):
        generic = value.owner.parent_op()
        assert isinstance(generic, GenericOp)
        map = generic.indexing_maps.data[value.index].data
        return dims_of(map) == [map.num_dims - 1]
    return all(goes_with_last(operand) for operand in getattr(value.owner, "operands", ()))


def _at(items: Sequence[T], number: int) -> T:
    return items[number if len(items) > 1 else 0]
