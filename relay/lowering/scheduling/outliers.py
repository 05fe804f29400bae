"""Unsigned weights with a zero point as signed weights for a dot product, and the outliers that exceed 8 bits.

`weight - zero point` has 9 bits. Most weights fit 8 bits, and a layer has typically one or two that do not: these are
clipped, and the remainder is added by extra steps of the reduction, one for each group of 4 codes with an outlier, in
the blocks of channels that have one. If a layer has many outliers, 128 is subtracted from the weights instead of their
zero point, and the sum of the data times `zero point - 128` is subtracted from each result (`MatmulEmitter.correct`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.packing import blocks_of, pack, run_length, runs
from relay.target import LANES, CpuCosts


@dataclass(frozen=True)
class Outliers:
    """The extra steps of the reduction that add, for each block of channels, the parts of weights that exceed 8 bits.
    `counts`: the number of steps of each block, at most `most`; `offsets`: for each step, the offset of its 4 codes
    from the first tap of a pixel; `weights`: [block][step][vector][16 channels][4]. `offsets` and `weights` are padded
    to `most` steps per block."""

    counts: Array
    offsets: Array
    weights: Array
    most: int


def centred(conv: Convolution, kernel: Array) -> tuple[Array, Array]:
    """Return the kernel's codes minus their zero point, clipped to i8, and the remainder, both as i16."""
    wide = kernel.astype(np.int16) - np.int16(conv.kernel.zero_point)
    clipped = np.clip(wide, -128, 127)
    return clipped, wide - clipped


def fits(conv: Convolution, kernel: Array) -> bool:
    """Whether each weight minus its zero point is a sum of two numbers of 8 bits."""
    return bool(centred(conv, kernel)[1].max(initial=0) <= 127)


def few(conv: Convolution, kernel: Array, vectors: int, costs: CpuCosts) -> bool:
    """Whether extra steps of the reduction can add the outliers (the parts of weights that exceed 8 bits), and no block
    of channels needs more such steps than the costs allow."""
    if not fits(conv, kernel):
        return False
    share = kernel.size // max(kernel.shape[0], 1) // costs.steps_per_outlier + 1
    return most_steps(conv, kernel, vectors) <= min(costs.most_outlier_steps, share)


def groups_of(conv: Convolution, rest: Array, vectors: int) -> list[Array]:
    """Return, for each block of `vectors` vectors of channels, which groups of 4 weights along the reduction have a
    nonzero part in `rest` for any of the channels: the part of weights that exceeds 8 bits."""
    matrix = runs(conv, rest, 4)
    return [
        np.flatnonzero(matrix[first : first + count * LANES].reshape(-1, matrix.shape[1] // 4, 4).any(axis=(0, 2)))
        for first, count in blocks_of(conv.outputs, vectors)
    ]


def extra_steps(conv: Convolution, kernel: Array, vectors: int, most: int) -> Outliers:
    """Return the extra steps of the reduction for outliers, the weights that exceed 8 bits after the zero point is
    subtracted: the steps add the products of the data and what is left of these weights after clipping them to 8 bits.
    They are padded to `most` steps for each block of channels."""
    rest = centred(conv, kernel)[1]
    matrix = runs(conv, rest, 4)
    steps = groups_of(conv, rest, vectors)
    places = offsets(conv)
    counts = np.array([len(found) for found in steps], np.int32)
    where = np.zeros((len(steps), most), np.int32)
    parts: list[Array] = []
    for number, ((first, count), found) in enumerate(zip(blocks_of(conv.outputs, vectors), steps, strict=True)):
        where[number, : len(found)] = places[found]
        chosen = np.zeros((min(count * LANES, conv.outputs - first), most * 4), np.int16)
        for k, step in enumerate(found):
            chosen[:, 4 * k : 4 * k + 4] = matrix[first : first + count * LANES, 4 * step : 4 * step + 4]
        parts.append(np.pad(pack(chosen, count, 4), (0, (vectors - count) * LANES * most * 4)))
    return Outliers(counts, where.reshape(-1), np.concatenate(parts).astype(np.int8), most)


def most_steps(conv: Convolution, kernel: Array, vectors: int) -> int:
    """Return the largest number of extra reduction steps that a block of channels needs for its outliers, the weights
    that exceed 8 bits."""
    return max((len(found) for found in groups_of(conv, centred(conv, kernel)[1], vectors)), default=0)


def offsets(conv: Convolution) -> Array:
    """Return an array with the offset of each group of 4 codes that a step of the reduction multiplies, in elements
    from the first element of a window."""
    run = run_length(conv)
    taps = conv.kernel_columns * conv.channels // run
    row, column, code = np.meshgrid(
        np.arange(conv.kernel_rows) * conv.dilation[0] * conv.columns * conv.pitch,
        np.arange(taps) * conv.dilation[1] * conv.pitch,
        np.arange(-(-run // 4)) * 4,
        indexing="ij",
    )
    return (row + column + code).reshape(-1).astype(np.int32)
