"""Threads that divide a reduction: each processes every n-th iteration, and their partial results are combined."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, i8, i16, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, Loop, LoopBuilder
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.shared_memory import shared_memory, shared_view
from relay.lowering.indices import below, minus, quotient, remainder, when
from relay.lowering.scheduling.affine import coefficients
from relay.lowering.scheduling.padding import Padding
from relay.lowering.scheduling.reduction import IDEMPOTENT
from relay.lowering.shaped import is_buffer, is_vector, scalar_of
from relay.target.costs import GpuCosts
from relay.target.record import WARP

EVERYONE = -1
"""The mask of the lanes of a warp that take part in a shuffle: all of them."""
WORD = 4
SUMS = (arith.AddiOp, arith.AddfOp)
"""Combining ops whose neutral element is 0."""
Join = type[
    arith.AddiOp
    | arith.AddfOp
    | arith.MaximumfOp
    | arith.MinimumfOp
    | arith.MaxSIOp
    | arith.MinSIOp
    | arith.MaxUIOp
    | arith.MinUIOp
]


@dataclass(frozen=True)
class Team:
    """The `size` threads that together compute one point, such as an element of a result or a row. `along`: whether the
    threads of a point have neighbouring numbers; if not, neighbouring threads belong to neighbouring points.
    `shuffles`: whether threads combine partial results by shuffles between lanes of a warp; if not, they combine them
    through shared memory, which requires that the threads of a point have neighbouring numbers."""

    size: int
    along: bool
    shuffles: bool = True


def join_of(op: linalg.GenericOp) -> Join | None:
    """Return the class of the op by which a `linalg.generic` accumulates its only result, if partial results can be
    combined by it; else None."""
    block = op.body.block
    end = block.last_op
    if len(op.outputs) != 1 or not isinstance(end, linalg.YieldOp):
        return None
    join = end.operands[0].owner
    if not isinstance(join, (*SUMS, *IDEMPOTENT)):
        return None
    last = block.args[-1]
    known = last.type in (i8, i16, i32, Float32Type())
    return type(join) if known and last.has_one_use() and last in join.operands else None


def is_shareable(nest: Nest, producers: Mapping[SSAValue, Nest | Padding]) -> bool:
    """Whether the iterations of all reductions of the nest can be divided among threads, whose partial results are then
    combined."""
    return all(inner is not None and join_of(inner.op) is not None for inner in reductions(nest, producers))


def largest_team(narrow: bool, costs: GpuCosts) -> int:
    """Return the largest number of threads that can compute one result of a reduction together; `narrow`: they must all
    belong to one warp."""
    return WARP if narrow else min(costs.team_threads, costs.largest_block)


def team_size(inner: Sequence[Nest], points: int, codes: int, narrow: bool, costs: GpuCosts) -> int:
    """Return the number of threads that share the reductions `inner` of one result. It is large enough to keep the
    device busy with `points` results, but small enough that each thread has several iterations. `codes`: the products
    that an iteration sums; `narrow`: the threads must belong to one warp."""
    turns = min(prod(each.sizes[dim] for dim in each.reduction) for each in inner) // codes
    size, most = 1, largest_team(narrow, costs)
    if points and turns >= costs.shared_turns:
        while 2 * size <= most and points * size < costs.busy_threads:
            if 2 * size * (1 if size < WARP else costs.warps_turns) > turns:
                break
            size *= 2
    return size


def is_along(nest: Nest) -> bool:
    """Whether consecutive iterations of the reduction read contiguous elements."""
    last = nest.reduction[-1]
    buffers = [map for value, map in zip(nest.op.inputs, nest.maps, strict=False) if is_buffer(value.type)]
    linear = [coefficients(map.results[-1]) for map in buffers if map.results]
    return any(entry is not None and last in entry[0] for entry in linear)


def reductions(nest: Nest, producers: Mapping[SSAValue, Nest | Padding]) -> Iterator[Nest | None]:
    """Yield the nest if it is a reduction, else the reductions that it inlines; None for a reduction whose results are
    read only under a condition, as inside padding."""
    if nest.reduction:
        yield nest
        return
    for value in nest.op.inputs:
        inner, behind = producers.get(value), False
        while isinstance(inner, Padding):
            inner, behind = producers.get(inner.source), True
        if isinstance(inner, Nest):
            yield from (None if behind else each for each in reductions(inner, producers))


class Members:
    """Emits the work of a thread as a member of a team, the threads that together compute one point such as a row:
    its iterations, and combining values with the other members. `member`: its number in the team; `thread`: its number
    in its block of `block` threads."""

    def __init__(self, builder: LoopBuilder, team: Team, member: Index, thread: Index = 0, block: int = 0):
        self.b, self.team, self.member = builder, team, member
        self.thread, self.block = thread, block
        self.used = 0

    @property
    def group(self) -> Index:
        """The team's number in its block, `thread / team size`. Correct only if the threads of a team have consecutive
        numbers."""
        return quotient(self.b, self.thread, self.team.size)

    @contextmanager
    def turns(self, count: int, carried: Sequence[SSAValue]) -> Generator[tuple[Index, Loop]]:
        """Emit the thread's share of `count` iterations; the `with` block emits one of them."""
        b, size = self.b, self.team.size
        inner: Loop | None = None
        with b.loop(0, -(-count // size), carried=carried) as (turn, state):
            number = b.plus(b.times(turn, size), self.member)
            if count % size == 0:
                yield number, state
            else:
                inner, outer, inside = Loop(state.args), b.block, Block()
                condition = below(b, number, count)
                b.block = inside
                yield number, inner
                b.add(scf.YieldOp(*inner.next))
                b.block = outer
                types = [value.type for value in state.args]
                rest = Block([scf.YieldOp(*state.args)])
                state.next = list(b.add(scf.IfOp(condition, types, Region(inside), Region(rest))).results)
        if inner is not None:
            inner.results = state.results

    def joined(self, values: Sequence[SSAValue], join: Join) -> list[SSAValue]:
        """Combine each of `values` with the other members' values at the same position, by the operation `join`; every
        member gets the results."""
        if self.team.shuffles or self.team.size == 1:
            return [self.join(value, join) for value in values]
        return self.in_turn(values, join)

    def join(self, value: SSAValue, join: Join) -> SSAValue:
        """Combine a value of all members; every member gets the result."""
        size = self.team.size
        distance = 1 if self.team.along else WARP // size
        for _ in range(min(size, WARP).bit_length() - 1):
            value = self.b.add(join(value, self.across(value, distance))).results[0]
            distance *= 2
        return value if size <= WARP else self.between(value, join)

    def across(self, value: SSAValue, distance: int) -> SSAValue:
        """Return the value of the lane whose number differs from this lane's number in the bit `distance`, a power of
        two."""
        b = self.b
        if is_vector(value.type):
            (lanes,) = value.type.get_shape()
            result = value
            for number in range(lanes):
                other = self.across(b.lane(value, number), distance)
                result = b.with_lane(result, number, other)
            return result
        kind = scalar_of(value.type)
        if kind not in (i32, Float32Type()):
            return from_word(b, self.across(as_word(b, value), distance), kind)
        return shuffled(b, "bfly", value, distance)

    def between(self, value: SSAValue, join: Join) -> SSAValue:
        """Combine the values of all warps of the block through memory."""
        b, warps, kind = self.b, self.team.size // WARP, value.type
        start, words = self.words(warps)
        first = b.compare(b.index(remainder(b, self.member, WARP)), "eq", b.index(0))
        place = b.plus(quotient(b, self.member, WARP), start)
        when(b, first, lambda: b.store(as_word(b, value), words, [place]))
        b.add(BarrierOp.create())
        found = from_word(b, b.load(words, [start]), kind)
        for warp in range(1, warps):
            found = b.add(join(found, from_word(b, b.load(words, [start + warp]), kind))).results[0]
        return found

    def in_turn(self, values: Sequence[SSAValue], join: Join) -> list[SSAValue]:
        """Combine the values of all threads of the team through memory, in the same order in each thread."""
        b, kind = self.b, values[0].type
        start, words = self.words(self.block * len(values))
        starts = [start + number * self.block for number in range(len(values))]
        for value, start in zip(values, starts, strict=True):
            b.store(as_word(b, value), words, [b.plus(self.thread, start)])
        b.add(BarrierOp.create())
        firsts = [b.plus(minus(b, self.thread, self.member), start) for start in starts]
        found = [from_word(b, b.load(words, [first]), kind) for first in firsts]
        with b.loop(1, self.team.size, carried=found) as (number, state):
            others = [from_word(b, b.load(words, [b.plus(first, number)]), kind) for first in firsts]
            state.next = [b.add(join(*pair)).results[0] for pair in zip(state.args, others, strict=True)]
        return list(state.results)

    def words(self, count: int) -> tuple[int, SSAValue]:
        """Reserve `count` words of the block's shared memory; return the number of the first one, and the memory."""
        start, self.used = self.used, self.used + count
        shared = shared_memory(self.b, self.used * WORD)
        return start, shared_view(self.b, shared, i32, self.used)


def shuffled(b: LoopBuilder, mode: str, value: SSAValue, number: int) -> SSAValue:
    """Return the value, an i32 or f32, of another lane of the warp: of lane `number` if `mode` is `idx`; if it is
    `bfly`, of the lane whose number differs from this lane's in the bits `number`."""
    name = "f32" if isinstance(value.type, Float32Type) else "i32"
    every, lane, last = (b.constant(each, i32) for each in (EVERYONE, number, WARP - 1))
    return b.intrinsic(f"llvm.nvvm.shfl.sync.{mode}.{name}", [every, value, lane, last], value.type)


def as_word(b: LoopBuilder, value: SSAValue) -> SSAValue:
    """Return the value's bits as an i32."""
    if isinstance(value.type, Float32Type):
        return b.add(arith.BitcastOp(value, i32)).result
    return value if value.type == i32 else b.add(arith.ExtSIOp(value, i32)).result


def from_word(b: LoopBuilder, word: SSAValue, kind: Attribute) -> SSAValue:
    """Convert the bits of an i32 back to a value of type `kind`."""
    if isinstance(kind, Float32Type):
        return b.add(arith.BitcastOp(word, kind)).result
    return word if kind == i32 else b.add(arith.TruncIOp.create(operands=[word], result_types=[kind])).results[0]
