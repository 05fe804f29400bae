"""Prefetching the weights of the next block of channels while a block is multiplied.

A network has more weights than the second-level cache holds, so each inference loads them from the third level or from
memory again; where a block of channels has few pixels, the products would wait for them. So every step of every tile
prefetches a share of the next block: together they prefetch it once. After the last block, they prefetch what follows
the weights in memory, often the next weights.
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
"""The locality hint of prefetches: to the second-level cache, since a block of weights does not fit in the first-level
cache."""


FEW_PARTS, PARTS = 4, 8
"""Into how many equal parts the next block of weights is divided: each step of a tile prefetches some bytes from every
part. If a step prefetches at least `FEW_PARTS` cache lines, there are as many parts as lines, and each line is from
another part. Otherwise there are `PARTS` parts, although several steps then prefetch the same line. On a Zen 3, with
steps of two lines (64 channels of 8 bits), a matrix of 38 MB is read at 26 GB/s with 8 parts, and at 20 GB/s with
two."""

SHORT = 16
"""The number of pixels after which the whole next block is prefetched, if the total number of pixels is known only at
run time. With few pixels, the products wait for weights; with more, the remaining pixels prefetch lines that are cached
already."""


def points_of(conv: Convolution) -> int:
    """Return the number of pixels that share the prefetches of a block of weights; at most `SHORT` if it is known only
    at run time."""
    points = prod(map(at_most, (conv.images, conv.out_rows, conv.out_columns)))
    return min(points, SHORT) if is_open(conv) else points


def is_open(conv: Convolution) -> bool:
    """Whether the number of pixels is known only at run time."""
    return any(isinstance(size, Extent) for size in (conv.images, conv.out_rows, conv.out_columns))


def pays(target: CpuTarget, points: int, pixels: int, vectors: int, size: int, weights: int) -> bool:
    """Whether prefetching the next block of weights saves time, if each block (`vectors` vectors, `size` bytes) is
    multiplied by `points` pixels in tiles of `pixels`. For a single tile of several pixels, the hardware prefetcher
    suffices. For a single pixel, each weight is read once, and `prefetch_in_parts` is faster than the hardware
    prefetcher unless all weights (`weights` bytes) fit a cache."""
    costs = target.costs
    fits = target.has_caches and size <= costs.prefetch_bytes
    if points == 1:
        return fits and weights >= costs.least_prefetched
    return fits and 2 * pixels <= points <= costs.prefetch_steps * vectors * pixels


@dataclass(frozen=True)
class Share:
    """The part of the next block of weights that one tile prefetches while it is computed. `step`: the number of
    elements that each of its steps prefetches; `pixel`: the number that all its steps prefetch, divided by the number
    of its pixels and rounded up. A tile whose first pixel is x begins at element `x * pixel` of the block."""

    step: int
    pixel: int


def share_of(size: int, points: int, pixels: int, steps: int) -> Share:
    """Return the part of the next block of weights, which has `size` elements, that one tile prefetches, such that all
    tiles together prefetch the whole block. The tile computes `pixels` of `points` pixels, in `steps` iterations of the
    reduction loop."""
    step = -(-size * pixels // (points * steps))
    return Share(step, -(-step * steps // pixels))


def prefetch_share(b: LoopBuilder, weights: SSAValue, at: Index, share: Share, stride: int) -> None:
    """Emit prefetches of the elements of `weights` that one step of a tile has to prefetch, from index `at` on: one
    prefetch for every `stride` bytes."""
    for line in range(0, share.step, max(stride // dtype_of(buffer_of(weights).element_type).itemsize, 1)):
        b.add(PrefetchOp.make(weights, [b.index(b.plus(at, line))], SECOND_LEVEL))


def prefetch_in_parts(
    b: LoopBuilder, weights: SSAValue, start: Index, size: int, step: Index, share: Share, stride: int
) -> None:
    """Prefetch one step's share of the block of `size` elements that starts at `start`. The block is divided into
    parts, and the step prefetches from each of them, because memory bandwidth is higher for several streams than for
    one. If the share has at least `FEW_PARTS` lines of `stride` bytes, there is a part for each line; else there are up
    to `PARTS` parts, and the step advances by a fraction of a line in each."""
    line = max(stride // dtype_of(buffer_of(weights).element_type).itemsize, 1)
    lines = max(share.step // line, 1)
    parts = lines if lines >= FEW_PARTS else min(PARTS, share.step)
    for part in range(parts):
        at = b.plus(part * (size // parts), b.times(step, min(line, share.step // parts)))
        b.add(PrefetchOp.make(weights, [b.index(b.plus(start, at))], SECOND_LEVEL))
