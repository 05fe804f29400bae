"""Depthwise convolutions of codes by dot products: four taps of a kernel row at a time.

Codes of neighbouring channels are contiguous, those of neighbouring taps are not: the bytes of four taps' vectors of
channels are rearranged so that a word has one channel's codes of all four. The weights' words are packed when the model
is built; missing taps of a row have weights of 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import BlockArgument, SSAValue

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.channel_tables import interleave, read
from relay.lowering.gpu.dots import LEAST_DOT, dot4
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.scheduling.arguments import argument_of
from relay.lowering.scheduling.contraction import Convolution, recognise
from relay.lowering.scheduling.given_constants import GivenConstants

TAPS = LEAST_DOT
"""The number of taps of a dot product."""
SUFFIXES = ("taps", "start")


@dataclass(frozen=True)
class DepthwiseDot:
    """A depthwise convolution whose weights are constants without a zero point."""

    conv: Convolution
    weights: BlockArgument

    @property
    def groups(self) -> int:
        """The number of dot products of a kernel row."""
        return -(-self.conv.kernel_columns // TAPS)

    def words(self, weights: Array) -> Array:
        """Return the 8-bit weights [rows, columns, channels] as 32-bit words [rows * groups, channels]: a word has one
        channel's weights of four neighbouring taps of a row, and a row is padded with zeros to `groups` words."""
        conv = self.conv
        taps = weights.reshape(conv.kernel_rows, conv.kernel_columns, conv.channels)
        taps = np.pad(taps, ((0, 0), (0, self.groups * TAPS - conv.kernel_columns), (0, 0)))
        taps = taps.reshape(conv.kernel_rows * self.groups, TAPS, conv.channels).transpose(0, 2, 1)
        return np.ascontiguousarray(taps).view(np.int32).reshape(-1, conv.channels)

    def starts(self, weights: Array) -> Array:
        """Return the number with which each channel's sum starts, as an int32 array [channels]: minus the data's zero
        point times the sum of the channel's weights."""
        kind = np.uint8 if self.conv.kernel.unsigned else np.int8
        sums = weights.view(kind).astype(np.int64).reshape(-1, self.conv.channels).sum(axis=0)
        return (-sums * self.conv.data.zero_point).astype(np.int32)


def depthwise_dot_of(nest: Nest, producers: Mapping[SSAValue, Producer], given: GivenConstants) -> DepthwiseDot | None:
    """Return the nest as a depthwise convolution by dot products, if it is one whose rows have at least two taps; else
    None."""
    conv = recognise(nest.op)
    if conv is None or not conv.depthwise or conv.is_float or conv.data.element != i8 or conv.kernel.element != i8:
        return None
    weights = argument_of(conv.kernel.value)
    if weights is None or weights.owner is not given.block or not given.calls or not given.constant(weights):
        return None
    computed = isinstance(producers.get(conv.data.value), Nest)
    return None if computed or conv.kernel.zero_point or conv.kernel_columns < 2 else DepthwiseDot(conv, weights)


def emit(points: PointEmitter, nest: Nest, dot: DepthwiseDot, dims: list[Index], given: GivenConstants) -> SSAValue:
    """Emit the sums of a vector of channels, added to the nest's initial values."""
    b, conv, lanes = points.b, dot.conv, points.lanes
    words, *starts = packed(dot, given, lanes)
    threads, channel = conv.channels // lanes, dims[nest.parallel[-1]]
    start = points.starting(nest, dims)[0]
    for table in starts:
        start = b.add(arith.AddiOp(start, read(b, table, channel, lanes, threads))).result
    row, column = nest.reduction
    with b.loop(0, conv.kernel_rows, carried=[b.lane(start, n) for n in range(lanes)]) as (index, state):
        dims[row], sums = index, list(state.args)
        for group in range(dot.groups):
            at = b.plus(b.times(index, dot.groups), group)
            factors = read(b, words, channel, lanes, threads, (at,))
            data = list[SSAValue]()
            for tap in range(group * TAPS, min(conv.kernel_columns, (group + 1) * TAPS)):
                dims[column] = tap
                place = [b.apply(result, dims) for result in nest.maps[0].results]
                data.append(points.element(conv.data.value, place))
            for number, word in enumerate(turned(b, data, lanes)):
                weights = b.lane(factors, number)
                sums[number] = dot4(b, word, conv.data.unsigned, weights, conv.kernel.unsigned, sums[number])
        state.next = sums
    return b.packed(list(state.results))


def packed(dot: DepthwiseDot, given: GivenConstants, lanes: int) -> list[SSAValue]:
    """Add arguments with the packed weights, and, if the data has a zero point, with initial sums, after the weights;
    return them."""
    rows, threads = list[list[Array]](), dot.conv.channels // lanes
    for weights in given.arrays_of(dot.weights):
        words = [interleave(row, lanes, threads) for row in dot.words(weights)]
        starts = [interleave(dot.starts(weights), lanes, threads)] if dot.conv.data.zero_point else []
        rows.append([np.stack(words), *starts])
    return given.beside(dot.weights, rows, SUFFIXES)


def turned(b: LoopBuilder, data: Sequence[SSAValue], lanes: int) -> list[SSAValue]:
    """Transpose up to four vectors of `lanes` bytes, one byte per channel. Return a word for each channel, which
    contains the channel's byte of each vector; with fewer than four vectors, bytes are repeated to fill the word."""
    found = list[SSAValue]()
    for quad in range(lanes // TAPS):
        four = [b.shuffle(vector, vector, range(quad * TAPS, (quad + 1) * TAPS)) for vector in data]
        pairs = [paired(b, four[number : number + 2]) for number in range(0, len(four), 2)]
        for channel in range(TAPS):
            (x, first), (y, last) = pairs[0][channel], pairs[-1][channel]
            word = b.shuffle(x, y, [*first, *(TAPS + byte for byte in last)])
            found.append(b.lane(b.bitcast(word, i32, 1), 0))
    return found


def paired(b: LoopBuilder, vectors: Sequence[SSAValue]) -> list[tuple[SSAValue, tuple[int, int]]]:
    """Interleave one or two vectors of four bytes, one byte per channel. Return, for each channel, a vector of four
    bytes, and the positions in it of the channel's two bytes; with one vector, twice the position of the channel's only
    byte."""
    if len(vectors) == 1:
        return [(vectors[0], (channel, channel)) for channel in range(TAPS)]
    first, second = vectors
    halves = [b.shuffle(first, second, order) for order in ((0, 4, 1, 5), (2, 6, 3, 7))]
    return [(half, places) for half in halves for places in ((0, 1), (2, 3))]
