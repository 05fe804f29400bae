"""Grids of blocks of threads, as `scf.parallel` over blocks around one over threads, mapped as by
`gpu-map-parallel-loops`: a thread for each point of a shape, or a team of threads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from relay.lowering.builder import INDEX, Index, LoopBuilder
from relay.lowering.gpu.teams import Members, Team
from relay.lowering.indices import below, both, limited, quotient, remainder, unravelled
from relay.target.record import WARP

MAPPED = "mapping"
"""The attribute of a parallel loop that names the processor of each dimension."""


@contextmanager
def threads(b: LoopBuilder, shape: Sequence[int], block: int) -> Generator[list[Index]]:
    """Emit a grid of blocks of `block` threads over the points of a shape, neighbours along the last dimension in
    neighbouring threads; the `with` block emits a thread's work for its point, which is yielded."""
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
            small = below(b, thread, total)
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
    """Emit a grid of blocks of `block` threads over the points of a shape, with a team of threads for each point.
    Yields the point, the team member (None if a team is one thread), and whether this member writes the result (None
    if it always does)."""
    if team.size == 1:
        with threads(b, shape, block) as at:
            yield at, None, None
        return
    with points_of_teams(b, shape, team, block) as (at, members, inside):
        first = b.compare(b.index(members.member), "eq", b.index(0))
        yield at, members, both(b, [first, inside])


@contextmanager
def points_of_teams(
    b: LoopBuilder, shape: Sequence[int], team: Team, block: int
) -> Generator[tuple[list[Index], Members, SSAValue | None]]:
    """Emit a grid of blocks of `block` threads, in which a team of `team.size` threads computes each point of a shape;
    the caller's `with` block emits the work of one thread. Yields the indices of the thread's point, the thread's place
    in its team, and a flag that is false in surplus teams (None if there are none). Surplus teams repeat the last
    point, because all threads of a block must reach its barriers, but must not store results."""
    total, size = prod(shape), team.size
    points = block // size
    with grid(b, -(-total // points), block) as (number, thread):
        point, member = quotient(b, thread, size), remainder(b, thread, size)
        if not team.along:
            together = WARP // size
            point = b.plus(b.times(quotient(b, thread, WARP), together), remainder(b, thread, together))
            member = quotient(b, remainder(b, thread, WARP), together)
        point = b.plus(b.times(number, points), 0 if points == 1 else point)
        inside, point = limited(b, point, total, total % points == 0)
        yield unravelled(b, point, shape), Members(b, team, member, thread, block), inside


@contextmanager
def grid(b: LoopBuilder, blocks: int, size: int) -> Generator[tuple[Index, Index]]:
    """Emit a grid of `blocks` blocks of `size` threads; the `with` block emits a thread's work, and gets the numbers of
    its block and of itself."""
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
    """Emit an `scf.parallel` of `count` iterations, with an attribute that maps it to the blocks or the threads of a
    GPU (`processor`)."""
    loop = b.add(scf.ParallelOp([b.index(0)], [b.index(count)], [b.index(1)], Region(body)))
    same = AffineMapAttr(AffineMap.identity(1))
    loop.attributes[MAPPED] = ArrayAttr([gpu.LoopDimMapAttr(gpu.ProcessorAttr(processor), same, same)])
