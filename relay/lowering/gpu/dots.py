"""Sums of products of codes, four at a time: `idp4a` on neighbouring channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.teams import Members
from relay.lowering.gpu.widths import Narrow, fitting, reads
from relay.lowering.indices import unravelled
from relay.lowering.scheduling.contraction import Convolution, recognise
from relay.lowering.scheduling.zero_points import wrapped
from relay.lowering.shaped import buffer_of

LEAST_DOT = 4
"""The number of codes that one instruction multiplies: the shortest dot product."""
ONES = 0x01010101
"""A word of four codes with the value 1."""


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


class DotEmitter:
    """Emits the sum at a point: `sum x w - zx sum w - zw sum x + count zx zw`, with data codes x, weight codes w, their
    zero points zx and zw, and `count` products."""

    def __init__(
        self,
        builder: LoopBuilder,
        producers: Mapping[SSAValue, Producer],
        nest: Nest,
        dot: Dot,
        members: Members | None = None,
        selects: bool = False,
    ):
        self.b, self.nest, self.dot, self.members = builder, nest, dot, members
        self.points = PointEmitter(builder, producers, dot.lanes, selects=selects)

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
