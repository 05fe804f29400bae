"""Grids of blocks of threads, as `scf.parallel` over blocks with one over threads inside, mapped as
`gpu-map-parallel-loops` does it: a thread for each point of a shape, or a team of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import INDEX, Index, LoopBuilder
from relay.lowering.gpu.teams import Members, Team
from relay.lowering.indices import below, binary, both, quotient, remainder, unravelled
from relay.target.record import WARP

MAPPED = "mapping"
"""The attribute of a parallel loop that says what runs its turns."""


@contextmanager
def threads(b: LoopBuilder, shape: Sequence[int], block: int) -> Generator[list[Index]]:
    """A grid of blocks of so many threads over the points of a shape, the last dimension's neighbours beside each
    other; the `with` block is what a thread does for its point."""
    total = prod(shape)
    if not total:
        outer, b.block = b.block, Block()
        yield [0] * len(shape)
        b.block.erase(safe_erase=False)
        b.block = outer
        return
    blocks = -(-total // block)
    with grid(b, blocks, block) as (number, inner):
        thread = b.plus(b.times(number, block), inner)
        if blocks * block == total:
            yield unravelled(b, thread, shape)
        else:
            small = b.add(arith.CmpiOp(b.index(thread), b.index(total), "ult")).result
            body, b.block = b.block, Block()
            inside = b.block
            yield unravelled(b, thread, shape)
            b.add(scf.YieldOp())
            b.block = body
            b.add(scf.IfOp(small, [], Region(inside)))


@contextmanager
def teams(
    b: LoopBuilder, shape: Sequence[int], team: Team, block: int
) -> Generator[tuple[list[Index], Members | None, SSAValue | None]]:
    """As `threads`, with a team of them for each point: its member, and whether that is the one that writes."""
    if team.size == 1:
        with threads(b, shape, block) as at:
            yield at, None, None
        return
    with points_of_teams(b, shape, team, block) as (at, members, inside):
        first = b.add(arith.CmpiOp(b.index(members.member), b.index(0), "eq")).result
        yield at, members, both(b, [first, inside])


@contextmanager
def points_of_teams(
    b: LoopBuilder, shape: Sequence[int], team: Team, block: int
) -> Generator[tuple[list[Index], Members, SSAValue | None]]:
    """A grid of blocks of so many threads, in which every point of a shape has a team; the `with` block is what each
    member does. The last one is whether the team's point is one: None where all are. Other teams repeat the last
    point, as all threads of a block must arrive where one waits."""
    total, size = prod(shape), team.size
    points = block // size
    with grid(b, -(-total // points), block) as (number, thread):
        point, member = quotient(b, thread, size), remainder(b, thread, size)
        if not team.along:
            together = WARP // size
            point = b.plus(b.times(quotient(b, thread, WARP), together), remainder(b, thread, together))
            member = quotient(b, remainder(b, thread, WARP), together)
        point = b.plus(b.times(number, points), 0 if points == 1 else point)
        inside: SSAValue | None = None
        if total % points:
            inside = below(b, point, total)
            point = binary(b, arith.MinUIOp, point, total - 1)
        yield unravelled(b, point, shape), Members(b, team, member, thread, block), inside


@contextmanager
def grid(b: LoopBuilder, blocks: int, size: int) -> Generator[tuple[Index, Index]]:
    """So many blocks of threads; the `with` block is what a thread does, by the numbers of its block and itself."""
    bodies = [Block(arg_types=[INDEX]), Block(arg_types=[INDEX])]
    outer, b.block = b.block, bodies[1]
    yield bodies[0].args[0] if blocks > 1 else 0, bodies[1].args[0]
    b.add(scf.ReduceOp())
    b.block = bodies[0]
    parallel(b, size, bodies[1], gpu.ProcessorEnum.Thread_X)
    b.add(scf.ReduceOp())
    b.block = outer
    parallel(b, blocks, bodies[0], gpu.ProcessorEnum.Block_X)


def parallel(b: LoopBuilder, count: int, body: Block, processor: gpu.ProcessorEnum) -> None:
    """A mapped loop of so many turns."""
    loop = b.add(scf.ParallelOp([b.index(0)], [b.index(count)], [b.index(1)], Region(body)))
    same = AffineMapAttr(AffineMap.identity(1))
    loop.attributes[MAPPED] = ArrayAttr([gpu.LoopDimMapAttr(gpu.ProcessorAttr(processor), same, same)])
