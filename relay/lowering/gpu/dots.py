"""Sums of products of codes, four at a time (`idp4a`): of neighbouring channels, or, in depthwise convolutions, of four
taps of a kernel row.

Codes of neighbouring channels are contiguous, those of neighbouring taps are not: the bytes of four taps' vectors of
channels are rearranged so that a word has one channel's codes of all four. The weights' words are packed when the model
is built; missing taps of a row have weights of 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import BlockArgument, SSAValue

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.channel_tables import interleave, read
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.teams import Members
from relay.lowering.gpu.widths import Narrow, fitting, reads
from relay.lowering.indices import unravelled
from relay.lowering.scheduling.contraction import Convolution, recognise
from relay.lowering.scheduling.given_constants import GivenConstants, argument_of
from relay.lowering.scheduling.zero_points import wrapped
from relay.lowering.shaped import buffer_of

LEAST_DOT = 4
"""The number of codes that one instruction multiplies: the shortest dot product."""
ONES = 0x01010101
"""A word of four codes with the value 1."""
SUFFIXES = ("taps", "start")
"""The suffixes of the names of depthwise convolutions' packed constants."""


@dataclass(frozen=True)
class Dot:
    """A convolution or product whose codes are read `lanes` at a time."""

    conv: Convolution
    lanes: int


def dot_of(nest: Nest, producers: Mapping[SSAValue, Producer], most: int = 16) -> Dot | None:
    """Return the nest as a convolution or product computed by dot products, if both factors are codes that are
    contiguous along its last loop; else None. A thread reads 16, 8 or 4 codes of each factor at once, but not more than
    `most`."""
    conv = recognise(nest.op)
    if conv is None or conv.depthwise or conv.is_float or conv.data.element != i8 or conv.kernel.element != i8:
        return None
    if conv.kernel.value in producers or isinstance(producers.get(conv.data.value), Nest):
        return None
    try:
        types = [*reads(conv.data.value, producers), buffer_of(conv.kernel.value)]
    except Narrow:
        return None
    lanes = fitting(conv.channels, types, min(most, 16))
    return Dot(conv, lanes) if lanes >= LEAST_DOT else None


@dataclass(eq=False)
class DotEmitter:
    """Emits the sum at a point: `sum x w - zx sum w - zw sum x + count zx zw`, with data codes x, weight codes w, their
    zero points zx and zw, and `count` products."""

    b: LoopBuilder
    producers: Mapping[SSAValue, Producer]
    nest: Nest
    dot: Dot
    members: Members | None = None
    selects: bool = False

    def __post_init__(self) -> None:
        self.points = PointEmitter(self.b, self.producers, self.dot.lanes, selects=self.selects)

    def emit(self, points: Sequence[list[Index]], starts: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the sum of products for each of `points`, the indices of one result each, added to its initial value
        in `starts`. If several threads compute a sum together, there must be a single point."""
        b, zero = self.b, self.b.constant(0, i32)
        more = [zero] * (bool(self.dot.conv.data.zero_point) + bool(self.dot.conv.kernel.zero_point))
        if self.members is None:
            first = [value for start in starts for value in (start, *more)]
            sums = self.loops(points, self.nest.reduction, first)
            each = 1 + len(more)
            return [self.total(sums[n : n + each]) for n in range(0, len(sums), each)]
        (dims,), (start,) = points, starts
        sums = [self.members.join(sum, arith.AddiOp) for sum in self.share(dims, [zero, *more], self.members)]
        sums[0] = b.add(arith.AddiOp(start, sums[0])).result
        return [self.total(sums)]

    def total(self, sums: Sequence[SSAValue]) -> SSAValue:
        """Return the sum of products, from the sum of products of codes and the sums of the weights' and of the data's
        codes."""
        conv, b = self.dot.conv, self.b
        zx, zw = conv.data.zero_point, conv.kernel.zero_point
        total, rest = sums[0], sums[1:]
        for zero_point, sum in zip([z for z in (zx, zw) if z], rest, strict=True):
            scaled = b.add(arith.MuliOp(sum, b.constant(zero_point, i32))).result
            total = b.add(arith.SubiOp(total, scaled)).result
        if zx and zw:
            count = conv.kernel_rows * conv.kernel_columns * conv.channels
            total = b.add(arith.AddiOp(total, b.constant(wrapped(count * zx * zw), i32))).result
        return total

    def loops(self, points: Sequence[list[Index]], order: Sequence[int], sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit the loops over taps, and over the channels in steps of `lanes`; return the sums."""
        dim, last = order[0], len(order) == 1
        with self.b.loop(0, self.nest.sizes[dim], self.dot.lanes if last else 1, carried=sums) as (index, state):
            for at in points:
                at[dim] = self.b.index(index) if last else index
            if last:
                self.points.wide = {self.b.index(index)}
                each = len(sums) // len(points)
                turns = [self.turn(at, state.args[n * each : n * each + each]) for n, at in enumerate(points)]
                state.next = [value for turn in turns for value in turn]
            else:
                state.next = self.loops(points, order[1:], state.args)
        return list(state.results)

    def share(self, dims: list[Index], sums: Sequence[SSAValue], members: Members) -> list[SSAValue]:
        """Emit the iterations over taps and channels that one thread of a team (threads that divide a reduction)
        executes, starting from `sums`, and return the thread's partial sums. The team's other threads execute the other
        iterations."""
        order, lanes = self.nest.reduction, self.dot.lanes
        sizes = [self.nest.sizes[dim] for dim in order]
        sizes[-1] //= lanes
        with members.turns(prod(sizes), sums) as (number, state):
            for dim, index in zip(order, unravelled(self.b, number, sizes), strict=True):
                dims[dim] = index
            channel = dims[order[-1]] = self.b.index(self.b.times(dims[order[-1]], lanes))
            self.points.wide = {channel}
            state.next = self.turn(dims, state.args)
        return list(state.results)

    def turn(self, dims: Sequence[Index], sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Load `lanes` codes of each factor at the loop indices `dims`, and add their products to the sums."""
        b, conv = self.b, self.dot.conv
        x, w = (
            b.bitcast(self.points.element(value, [b.apply(r, dims) for r in map.results]), i32, self.dot.lanes // 4)
            for value, map in zip((conv.data.value, conv.kernel.value), self.nest.maps, strict=False)
        )
        ones = b.constant(ONES, i32)
        found = list(sums)
        for word in range(self.dot.lanes // 4):
            a, c = b.lane(x, word), b.lane(w, word)
            found[0] = dot4(b, a, conv.data.unsigned, c, conv.kernel.unsigned, found[0])
            if conv.data.zero_point:
                found[1] = dot4(b, ones, False, c, conv.kernel.unsigned, found[1])
            if conv.kernel.zero_point:
                found[-1] = dot4(b, ones, False, a, conv.data.unsigned, found[-1])
        return found


def dot4(b: LoopBuilder, x: SSAValue, x_unsigned: bool, y: SSAValue, y_unsigned: bool, sum: SSAValue) -> SSAValue:
    """Return `sum` plus the products of the four bytes of `x` by those of `y`."""
    signs = ".".join("u" if unsigned else "s" for unsigned in (x_unsigned, y_unsigned))
    return b.add(llvm.CallIntrinsicOp(f"llvm.nvvm.idp4a.{signs}", [x, y, sum], [i32])).results[0]


def sums_at(points: PointEmitter, nest: Nest, places: Sequence[list[Index]], dots: int) -> list[SSAValue]:
    """Emit the reduction `nest` at several points in the same loops, and return the results. `places`: the indices of
    its dimensions at each point; `dots`: the largest number of codes that a dot product may read at once; 0 for
    none."""
    starts = [points.starting(nest, dims)[0] for dims in places]
    dot = dot_of(nest, points.producers, dots) if dots else None
    if dot is not None:
        return DotEmitter(points.b, points.producers, nest, dot, selects=True).emit(places, starts)
    return points.reduce(nest, places, nest.reduction, starts)


@dataclass(frozen=True)
class DepthwiseDot:
    """A depthwise convolution whose weights are constants without a zero point."""

    conv: Convolution
    weights: BlockArgument

    @property
    def groups(self) -> int:
        """The number of dot products of a kernel row."""
        return -(-self.conv.kernel_columns // LEAST_DOT)

    def words(self, weights: Array) -> Array:
        """Return the 8-bit weights [rows, columns, channels] as 32-bit words [rows * groups, channels]: a word has one
        channel's weights of four neighbouring taps of a row, and a row is padded with zeros to `groups` words."""
        conv = self.conv
        taps = weights.reshape(conv.kernel_rows, conv.kernel_columns, conv.channels)
        taps = np.pad(taps, ((0, 0), (0, self.groups * LEAST_DOT - conv.kernel_columns), (0, 0)))
        taps = taps.reshape(conv.kernel_rows * self.groups, LEAST_DOT, conv.channels).transpose(0, 2, 1)
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


def depthwise_sums(
    points: PointEmitter, nest: Nest, dot: DepthwiseDot, dims: list[Index], given: GivenConstants
) -> SSAValue:
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
            for tap in range(group * LEAST_DOT, min(conv.kernel_columns, (group + 1) * LEAST_DOT)):
                dims[column] = tap
                place = [b.apply(result, dims) for result in nest.maps[0].results]
                data.append(points.element(conv.data.value, place))
            for number, word in enumerate(turned(b, data, lanes)):
                weights = b.lane(factors, number)
                sums[number] = dot4(b, word, conv.data.unsigned, weights, conv.kernel.unsigned, sums[number])
        state.next = sums
    return b.packed(list(state.results))


def packed(dot: DepthwiseDot, given: GivenConstants, lanes: int) -> list[SSAValue]:
    """Give the kernel new arguments after its weights, and return them: the packed weights and, if the data has a zero
    point, the initial sums."""
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
    for quad in range(lanes // LEAST_DOT):
        four = [b.shuffle(vector, vector, range(quad * LEAST_DOT, (quad + 1) * LEAST_DOT)) for vector in data]
        pairs = [paired(b, four[number : number + 2]) for number in range(0, len(four), 2)]
        for channel in range(LEAST_DOT):
            (x, first), (y, last) = pairs[0][channel], pairs[-1][channel]
            word = b.shuffle(x, y, [*first, *(LEAST_DOT + byte for byte in last)])
            found.append(b.lane(b.bitcast(word, i32, 1), 0))
    return found


def paired(b: LoopBuilder, vectors: Sequence[SSAValue]) -> list[tuple[SSAValue, tuple[int, int]]]:
    """Interleave one or two vectors of four bytes, one byte per channel. Return, for each channel, a vector of four
    bytes, and the positions in it of the channel's two bytes; with one vector, twice the position of the channel's only
    byte."""
    if len(vectors) == 1:
        return [(vectors[0], (channel, channel)) for channel in range(LEAST_DOT)]
    first, second = vectors
    halves = [b.shuffle(first, second, order) for order in ((0, 4, 1, 5), (2, 6, 3, 7))]
    return [(half, places) for half in halves for places in ((0, 1), (2, 3))]
