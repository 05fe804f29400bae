"""Convolutions whose channels use different taps: blocks of channels, each with the smallest window that it needs.

A transposed convolution is computed as a convolution that has the channels of all positions within a stride side by
side. Each position uses some of the taps; its weights at the others are zeros, nearly half of all weights for a window
of 3x3 and strides of 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Self

import numpy as np
from xdsl.ir import Operation

from relay.dialects.attributes import Array
from relay.lowering.scheduling.bias import add_bias, concatenated
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.contractions import OfWeights, emit_data, pick_padding, weighted_of
from relay.lowering.scheduling.epilogue import pick_masks
from relay.lowering.scheduling.matmul import MatmulEmitter, Place
from relay.lowering.scheduling.packed import Packed, pack_constants
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import TileSchedule, decide_tiles, needs_sums, problem_of
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel
from relay.lowering.scheduling.tiles import choose
from relay.target import LANES, CpuCosts

STEP = 4
"""The number of consecutive codes that a dot-product instruction multiplies for each sum."""
MOST = 16
"""The largest number of parts (blocks of channels) into which a convolution is divided. Code is emitted for each part,
so this limits the size of the code."""


@dataclass(frozen=True)
class Part:
    """A block of neighbouring output channels of a convolution, the first of which is number `first`. `conv` computes
    these channels alone, with a smaller window, which starts at `row` and `column` of the window of all channels."""

    conv: Convolution
    first: int
    row: int
    column: int

    @property
    def channels(self) -> slice:
        return slice(self.first, self.first + self.conv.outputs)

    def kernel_of(self, kernel: Array) -> Array:
        """Return the part of a kernel [o, i, j, c] that these channels use."""
        rows = slice(self.row, self.row + self.conv.kernel_rows)
        return kernel[self.channels, rows, self.column : self.column + self.conv.kernel_columns]


def parts_of(conv: Convolution, kernels: Sequence[Array], costs: CpuCosts) -> list[Part]:
    """Divide the output channels into blocks of neighbours whose nonzero weights fill the same window of taps;
    `kernels`: the weights in each call of the kernel function. Returns an empty list if this saves too few products, if
    it would make too many blocks, if the weights' zero point requires sums of the data, or if the number of input
    channels is not a multiple of 4, so that the codes of one dot product could belong to two taps."""
    if conv.kernel_rows * conv.kernel_columns == 1 or needs_sums(conv) or not conv.is_float and conv.channels % STEP:
        return []
    some = np.any([(kernel != conv.kernel.zero_point).any(axis=3) for kernel in kernels], axis=0)
    found: list[Part] = []
    for window, run in groupby(range(conv.outputs), lambda channel: window_of(some[channel])):
        channels = list(run)
        (first, end), (left, right) = window
        part = replace(conv, outputs=len(channels), kernel_rows=end - first, kernel_columns=right - left)
        found.append(Part(part, channels[0], first, left))
        if len(found) > MOST:
            return []
    return found if sum(products(part.conv) for part in found) <= costs.kept_products * products(conv) else []


@dataclass(frozen=True, kw_only=True)
class PartsSchedule(OpSchedule):
    """The decisions about a convolution by blocks of channels. `parts`: the micro-kernel of each block of channels;
    `one_row`: images of one column are viewed as images of one row; `pad_in_copy`: the copy of the data also pads it;
    `masks`: see `pick_masks`."""

    strategy = "parts"
    one_row: bool
    pad_in_copy: bool
    masks: bool
    parts: tuple[TileSchedule, ...]


@dataclass(frozen=True)
class Parts(OfWeights[PartsSchedule]):
    """A convolution that is computed in blocks of output channels, each with the smallest window that contains all taps
    at which its weights are not zero."""

    record = PartsSchedule
    parts: Sequence[Part]

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = weighted_of(op, kernel)
        if found is None or found.groups or found.conv.depthwise:
            return None
        parts = parts_of(*found.form(True), kernel.target.costs)
        return cls(found.op, found, parts) if parts else None

    def decide(self, kernel: Kernel, pick: Picks) -> PartsSchedule:
        found, padding = self.found, kernel.waiting.get(self.found.conv.data.value)
        one_row = pick.only("one_row", found.row is not None)
        conv, whole = found.form(one_row)
        around = replace(found.around(conv, kernel.target, padding), flat=(False,), narrows=False)
        chosen: list[TileSchedule] = []
        for part, inner in zip(self.parts, pick.inner("parts", len(self.parts)), strict=True):
            if chosen:  # all blocks read one copy of the data
                for name in ("codes_per_step", "sign_flip", "widen"):
                    inner.given.setdefault(name, getattr(chosen[0], name))
            kernels = [part.kernel_of(k) for k in whole]
            chosen.append(decide_tiles(inner, part.conv, kernels, kernel.target, around))
            inner.finish()
        pick_padding(pick, conv, chosen[0], padding)
        left = sum(products(part.conv) for part in self.parts) / products(conv)
        problem = problem_of(conv, kernel.target, chosen[0].codes_per_step)
        cycles = round(left * choose(problem, kernel.target.costs).cycles)
        why = f"{len(chosen)} blocks of channels with windows of their own"
        pick_masks(pick, kernel.target, *(part.conv.outputs for part in self.parts))
        return pick.schedule(PartsSchedule, cycles, why, parts=tuple(chosen))

    def emit(self, emission: Emission, schedule: PartsSchedule) -> None:
        found, parts, plans = self.found, self.parts, schedule.parts
        epilogue = found.start(emission, schedule.masks)
        if schedule.one_row:
            epilogue.turn_points()
        conv, kernels = found.form(schedule.one_row)
        data = emit_data(emission, conv, plans[0], pads=schedule.pad_in_copy)
        given = zip(kernels, found.biases, strict=True)
        packed = [pack_parts(parts, plans, *one) for one in given]
        arguments = found.give(emission, [concatenated(one, None) for one in packed])
        for part, plan, place in zip(parts, plans, places_of(parts, packed[0]), strict=True):
            MatmulEmitter(emission.builder, part.conv, plan, data, arguments, epilogue, place).emit()


def window_of(some: Array) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the rows and columns of taps from the first to the last with nonzero weights; one tap if there are
    none."""
    ends = [np.flatnonzero(some.any(axis=axis)) for axis in (1, 0)]
    rows, columns = ((int(at[0]), int(at[-1]) + 1) if at.size else (0, 1) for at in ends)
    return rows, columns


def products(conv: Convolution) -> int:
    """Return the number of multiplications of vectors that the convolution needs for a pixel."""
    return -(-conv.outputs // LANES) * conv.kernel_rows * conv.kernel_columns


def pack_parts(parts: Sequence[Part], plans: Sequence[TileSchedule], kernel: Array, bias: Array | None) -> list[Packed]:
    """Pack the constants of each block of channels."""
    every = [pack_constants(part.conv, plan, part.kernel_of(kernel)) for part, plan in zip(parts, plans, strict=True)]
    if bias is None:
        return every
    flat = bias.reshape(-1)
    return [add_bias(one, flat[part.channels]) for one, part in zip(every, parts, strict=True)]


def places_of(parts: Sequence[Part], packed: Sequence[Packed]) -> list[Place]:
    """Return, for each block of output channels, the offsets of its data, weights, initial accumulators and results in
    the buffers that all blocks share."""
    weights = np.cumsum([0, *(one.weights.size for one in packed)]).tolist()
    initial = np.cumsum([0, *(one.initial.size for one in packed)]).tolist()
    return [
        Place(
            row=part.row * part.conv.dilation[0] * part.conv.columns + part.column * part.conv.dilation[1],
            weights=weights[number],
            initial=initial[number],
            channel=part.first,
        )
        for number, part in enumerate(parts)
    ]
