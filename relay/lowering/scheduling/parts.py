"""Convolutions whose channels have taps of their own: blocks of channels, each with the smallest window that it needs.

A transposed convolution is one with the channels of all places within a stride side by side. Each place meets some of
the taps; at the others its weights are zeros, nearly half of all for a window of 3x3 and strides of 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.scheduling.bias import add_bias
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.matmul import Place
from relay.lowering.scheduling.packed import Packed, needs_sums, pack_constants, plan_for
from relay.lowering.scheduling.packing import LANES
from relay.lowering.scheduling.plan import Plan, Tile

STEP = 4
"""Codes that a step takes, at most."""
MOST = 16
"""Blocks of channels that code is written for."""
WORTH = 0.8
"""Of all products, how many may be left."""


@dataclass(frozen=True)
class Part:
    """Channels from `first` on, whose window starts at a row and a column of the whole one."""

    conv: Convolution
    first: int
    row: int
    column: int

    @property
    def channels(self) -> slice:
        return slice(self.first, self.first + self.conv.outputs)

    def kernel_of(self, kernel: Array) -> Array:
        """Its share of a kernel [o, i, j, c]."""
        rows = slice(self.row, self.row + self.conv.kernel_rows)
        return kernel[self.channels, rows, self.column : self.column + self.conv.kernel_columns]


def parts_of(conv: Convolution, kernels: Sequence[Array]) -> list[Part]:
    """The blocks of channels and their windows, for the kernels of all calls; none where that saves too little, where
    weights take more than one number each, or where a step may reach behind its window."""
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
    return found if sum(products(part.conv) for part in found) <= WORTH * products(conv) else []


def window_of(some: Array) -> tuple[tuple[int, int], tuple[int, int]]:
    """The rows and the columns from the first to the last that have some weights; one tap where none has."""
    ends = [np.flatnonzero(some.any(axis=axis)) for axis in (1, 0)]
    rows, columns = ((int(at[0]), int(at[-1]) + 1) if at.size else (0, 1) for at in ends)
    return rows, columns


def products(conv: Convolution) -> int:
    """Vectors of products for a pixel."""
    return -(-conv.outputs // LANES) * conv.kernel_rows * conv.kernel_columns


def plans_of(
    parts: Sequence[Part], kernels: Sequence[Array], features: frozenset[str], turns: bool, tile: Tile | None
) -> list[Plan]:
    """The plan of each part."""
    return [
        plan_for(part.conv, [part.kernel_of(k) for k in kernels], features, flat=False, turns=turns, tile=tile)
        for part in parts
    ]


def pack_parts(parts: Sequence[Part], plans: Sequence[Plan], kernel: Array, bias: Array | None) -> list[Packed]:
    """The numbers of each part."""
    every = [pack_constants(part.conv, plan, part.kernel_of(kernel)) for part, plan in zip(parts, plans, strict=True)]
    if bias is None:
        return every
    flat = bias.reshape(-1)
    return [add_bias(one, flat[part.channels]) for one, part in zip(every, parts, strict=True)]


def together(packed: Sequence[Packed]) -> Packed:
    """The numbers of all parts, one behind the other."""
    return Packed(np.concatenate([one.weights for one in packed]), np.concatenate([one.initial for one in packed]))


def places_of(parts: Sequence[Part], packed: Sequence[Packed]) -> list[Place]:
    """Where the parts' pixels, numbers and results start."""
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
