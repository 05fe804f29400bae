"""Weights of the next block of channels, asked for while a block is multiplied.

A network has more weights than the second-level cache holds, so each run reads them from the third level or from memory
again; where a block of channels has few pixels, the products would wait for them. Every step of every tile asks for its
share of the next block instead: together they ask for all of it once. Behind the last block is what the weights' owner
has next in memory, often the next weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from relay.dialects.attributes import dtype_of
from relay.dialects.memref import PrefetchOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.shaped import Extent, at_most, buffer_of
from relay.target import CpuTarget

SECOND_LEVEL = 2
"""The locality hint for the second-level cache: a block is too large for the first."""


FEW_PLACES, PLACES = 4, 8
"""Parts of a block whose lines are asked for in each step: 8 where they would be fewer than 4, though lines are asked
for more than once then. On a Zen 3, whose steps of 64 channels of 8 bits have two lines, a matrix of 38 MB is read at
26 GB/s, 20 with two."""

SHORT = 16
"""Pixels that ask for the whole next block where their number is known at run time only: weights are waited for when
they are few, and those that follow ask for what is there."""


def points_of(conv: Convolution) -> int:
    """The pixels that share a block of weights; of a number that is known at run time only, those that ask."""
    points = prod(map(at_most, (conv.images, conv.out_rows, conv.out_columns)))
    return min(points, SHORT) if is_open(conv) else points


def is_open(conv: Convolution) -> bool:
    """Whether the number of pixels is known at run time only."""
    return any(isinstance(size, Extent) for size in (conv.images, conv.out_rows, conv.out_columns))


def pays(target: CpuTarget, points: int, pixels: int, vectors: int, size: int, weights: int) -> bool:
    """Whether the next block is worth asking for, where `points` pixels in tiles of `pixels` multiply a block of so
    many vectors and bytes. With one tile, the processor's own prefetcher does. A single pixel reads each weight once
    and waits for memory, unless all `weights` (bytes) are few enough to be in a cache; `ask_apart` reads faster than
    the prefetcher there."""
    costs = target.costs
    fits = target.has_caches and size <= costs.prefetch_bytes
    if points == 1:
        return fits and weights >= costs.least_prefetched
    return fits and 2 * pixels <= points <= costs.prefetch_steps * vectors * pixels


@dataclass(frozen=True)
class Share:
    """Elements of the next block that each step of a tile asks for, and each pixel before the tile has asked for."""

    step: int
    pixel: int


def share_of(size: int, points: int, pixels: int, steps: int) -> Share:
    """The share of a tile of so many of all `points` pixels, for a next block of `size` elements."""
    step = -(-size * pixels // (points * steps))
    return Share(step, -(-step * steps // pixels))


def ask(b: LoopBuilder, weights: SSAValue, at: Index, share: Share, stride: int) -> None:
    """Prefetch one step's share, every `stride` bytes of it."""
    for line in range(0, share.step, max(stride // dtype_of(buffer_of(weights).element_type).itemsize, 1)):
        b.add(PrefetchOp.make(weights, [b.index(b.plus(at, line))], SECOND_LEVEL))


def ask_apart(
    b: LoopBuilder, weights: SSAValue, start: Index, size: int, step: Index, share: Share, stride: int
) -> None:
    """Ask for one step's share of a block that starts at `start`: a line each of as many parts of it as there are lines
    in the share, or, where those are few, a part of a line each of `PLACES`. Memory gives more of several places at
    once than of one after the other."""
    line = max(stride // dtype_of(buffer_of(weights).element_type).itemsize, 1)
    lines = max(share.step // line, 1)
    parts = lines if lines >= FEW_PLACES else min(PLACES, share.step)
    for part in range(parts):
        at = b.plus(part * (size // parts), b.times(step, min(line, share.step // parts)))
        b.add(PrefetchOp.make(weights, [b.index(b.plus(start, at))], SECOND_LEVEL))
