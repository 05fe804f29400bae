"""Packs weights at compile time, in numpy, in the order in which micro-kernels read them: blocks of channels.

The number of channels of a product may be known only at run time, such as the keys of attention (`OpenGroup`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, minus, quotient, remainder, when
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.shaped import Extent, at_most
from relay.target import LANES


def blocks_of(outputs: int, vectors: int) -> list[tuple[int, int]]:
    """Divide output channels into blocks of `vectors` vectors, and a block for the rest; return (first channel,
    vectors)."""
    whole = -(-outputs // LANES)
    full = [(b * vectors * LANES, vectors) for b in range(whole // vectors)]
    return full + ([(len(full) * vectors * LANES, whole % vectors)] if whole % vectors else [])


@dataclass(frozen=True)
class Block:
    """A block of output channels inside a loop over blocks: its number, its first channel, the number of its vectors
    of 16 channels, and `last`, the number of channels in its last vector."""

    number: Index
    channel: Index
    vectors: int
    last: Index


@dataclass(frozen=True)
class Group:
    """Consecutive blocks of output channels of equal size: `count` blocks, of which `first` is the number of the first.
    Each has `vectors` vectors of 16 channels, the last one with `last` channels; block n starts at channel
    `n * width`."""

    first: int
    count: int
    vectors: int
    width: int
    last: int

    def loop(self, b: LoopBuilder, apart: DictionaryAttr | None, body: Callable[[Block], None]) -> None:
        """Emit a loop of `body` over these blocks of channels, which all have the same size. `apart` describes the data
        that cores transfer if they share the loop, from which the cost of threads is estimated."""
        with b.loop(self.first, self.first + self.count, independent=True, apart=apart) as (number, _):
            body(Block(number, b.times(number, self.width), self.vectors, self.last))


def groups_of(outputs: int, vectors: int) -> list[Group]:
    """Divide `outputs` channels into blocks of `vectors` vectors of 16 channels, and return groups of blocks of equal
    size: one of all whole blocks; then, if channels remain, a group of one smaller block or one whose last vector is
    partial."""
    blocks = blocks_of(outputs, vectors)
    whole = sum(first + count * LANES <= outputs and count == vectors for first, count in blocks)
    groups = [Group(0, whole, vectors, vectors * LANES, LANES)] if whole else []
    for number, (first, count) in enumerate(blocks[whole:], whole):
        last = min(LANES, outputs - first - (count - 1) * LANES)
        groups.append(Group(number, 1, count, vectors * LANES, last))
    return groups


def as_matrix(conv: Convolution, kernel: Array, group: int) -> Array:
    """Return the kernel [o, i, j, c] minus its zero point as an int or float matrix [o, reduction]. Along the
    reduction, the weights of each contiguous run of data are padded with zeros to a multiple of `group`."""
    return runs(conv, kernel.astype(np.int32) - conv.kernel.zero_point if not conv.is_float else kernel, group)


def runs(conv: Convolution, kernel: Array, group: int) -> Array:
    """Reshape a kernel [o, i, j, c] to [o, reduction], where each contiguous run of data is padded with zeros to a
    multiple of `group`.

    A run is a row of taps (j, c) where the taps are contiguous in memory, else the channels of a tap.
    """
    rows = kernel.reshape(kernel.shape[0], -1, run_length(conv))
    return np.pad(rows, ((0, 0), (0, 0), (0, -rows.shape[2] % group))).reshape(kernel.shape[0], -1)


def rows_of_codes(conv: Convolution, kernel: Array, size: int) -> Array:
    """Reshape a kernel [o, i, j, c] to [o, reduction] for tile registers, each row of which holds up to `size` codes of
    a contiguous run of data. If a run is longer than `size` and not a multiple of it, its last `size` codes are the
    last row, which overlaps the row before it. The last row's weights are 0 for the codes that both rows contain."""
    parts = kernel.reshape(kernel.shape[0], -1, run_length(conv))
    left = parts.shape[2] % size
    if parts.shape[2] < size or not left:
        return runs(conv, kernel, size)
    zeros = np.zeros((*parts.shape[:2], size - left), parts.dtype)
    return np.concatenate([parts[..., :-left], zeros, parts[..., -left:]], axis=2).reshape(kernel.shape[0], -1)


def run_length(conv: Convolution) -> int:
    """Return the number of contiguous data elements that are multiplied by contiguous kernel elements."""
    joined = (conv.dilation[1] == 1 and not conv.others) or conv.kernel_columns == 1
    return conv.kernel_columns * conv.channels if joined else conv.channels


def pack(matrix: Array, vectors: int, group: int) -> Array:
    """Reorder a matrix [o, reduction] to blocks [reduction / group][vectors][16 channels][group], channels padded with
    zeros."""
    outputs, depth = matrix.shape
    parts: list[Array] = []
    for first, count in blocks_of(outputs, vectors):
        block = matrix[first : first + count * LANES]
        block = np.pad(block, ((0, count * LANES - block.shape[0]), (0, 0)))
        parts.append(block.reshape(count, LANES, depth // group, group).transpose(2, 0, 1, 3).reshape(-1))
    return np.concatenate(parts)


def padded(vector: Array) -> Array:
    """Pad a per-channel vector with zeros to a multiple of 16."""
    return np.pad(vector, (0, -vector.size % LANES))


def wrap_i32(value: Array) -> Array:
    """Convert int64 to int32, with wrap-around."""
    return value.astype(np.int64).astype(np.int32)


def initial_accumulator(conv: Convolution, kernel: Array, bias_of_data: int) -> Array:
    """Return initial accumulators, i32, that account for the zero point of the data, so that it need not be subtracted:
    `-bias_of_data * sum(kernel - kernel zero point)`. `bias_of_data`: the zero point of the codes as the micro-kernel
    reads them."""
    axes: Sequence[int] = (0, 1) if conv.depthwise else (1, 2, 3) if kernel.ndim == 4 else (1,)
    sums = (kernel.astype(np.int64) - conv.kernel.zero_point).sum(axis=tuple(axes))
    return padded(wrap_i32(-bias_of_data * sums))


@dataclass(frozen=True)
class OpenGroup:
    """Consecutive blocks of channels, all of the same size. `first`: the first channel; `count`: the number of blocks,
    known at run time and at most `most`; `vectors`: the number of vectors of channels in a block. If `last` is not
    None, the group is instead one partial vector of `last` channels, and no code of it runs if `last` is 0."""

    first: Index
    count: Index
    vectors: int
    most: int
    last: Index | None = None

    def loop(self, b: LoopBuilder, apart: DictionaryAttr | None, body: Callable[[Block], None]) -> None:
        """Emit `body` for each block of channels; the number of the block of one partial vector is 0. `apart`: the
        attribute that says what cores transfer if they share the loop (see `sharing.traffic`)."""
        if self.last is not None:
            last = self.last
            when(b, below(b, 0, last), lambda: body(Block(0, self.first, 1, last)))
            return
        with b.loop(0, self.count, independent=True, apart=apart, turns=self.most) as (number, _):
            first = b.plus(self.first, b.times(number, self.vectors * LANES))
            body(Block(number, first, self.vectors, LANES))


def all_groups(b: LoopBuilder, outputs: int, vectors: int) -> Sequence[Group | OpenGroup]:
    """Divide the output channels into blocks of up to `vectors` vectors each, and return groups of equal blocks.
    `outputs`: the number of channels, an `Extent` if it is known only at run time."""
    return open_groups(b, outputs, vectors) if isinstance(outputs, Extent) else groups_of(outputs, vectors)


def open_groups(b: LoopBuilder, outputs: Extent, vectors: int) -> Sequence[OpenGroup]:
    """Divide channels whose number is known at run time: into blocks of `vectors` vectors, then blocks of one vector
    for the rest, then a block of one partial vector."""
    end, width = b.length(outputs), vectors * LANES
    whole, last = quotient(b, end, width), remainder(b, end, LANES)
    groups = [OpenGroup(0, whole, vectors, at_most(outputs) // width)]
    if vectors > 1:
        single = quotient(b, remainder(b, end, width), LANES)
        groups.append(OpenGroup(b.times(whole, width), single, 1, vectors - 1))
    return [*groups, OpenGroup(minus(b, end, last), 1, 1, 1, last)]
