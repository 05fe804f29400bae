"""`distribute-loops`: divides a loop whose iterations are long chains of operations into two consecutive loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from relay.lowering.builder import INDEPENDENT, INDEX, ROLLED, Before, Index, LoopBuilder
from relay.lowering.scheduling.work import range_of
from relay.lowering.shaped import is_vector, root, scalar_of
from relay.lowering.walking import walked
from relay.passes import Pass
from relay.target import cpu_of

FEWEST = 4
"""The fewest iterations for which dividing a loop pays."""
ROOM = 1024
"""The most elements, over all iterations, of a vector that the first of the two loops leaves on the stack for the
second. A loop with more iterations is divided into blocks of iterations, and each block becomes two loops."""
PURE = frozenset(
    "llvm.call_intrinsic memref.load vector.bitcast vector.broadcast vector.extract vector.insert vector.load "
    "vector.shuffle".split()
)
"""Ops that an iteration may contain besides `arith`, `math` and stores."""


@dataclass(frozen=True)
class DistributeLoops(Pass):
    """Split a loop whose body is a long chain of vector operations into two loops. Loops of an epilogue with GELU have
    such bodies.

    A processor executes operations of several iterations at once, but only within the next few hundred operations: if
    an iteration is a long chain, few iterations overlap, and if it is half as long, twice as many do. Values that the
    second loop needs from the first are stored on the stack; the cut is near the middle of the chains, where the fewest
    vectors are live. A loop with many iterations becomes two loops inside a third one. Neither loop is unrolled: LLVM
    would fuse them again.

    `longest`: the number of operations of a chain from which on its loop is split; the default is in the target's
    costs.
    """

    name = "distribute-loops"
    requires = ("functions",)
    invalidates = ()
    opt_level = 1
    why = "makes two loops of one with long chains of operations"
    longest: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        longest = cpu_of(op, self.name).costs.longest_chain if self.longest is None else self.longest
        for loop in walked(op):
            if loop.name == scf.ForOp.name and isinstance(loop, scf.ForOp) and (bounds := bounds_of(loop)) is not None:
                if len(bounds) >= FEWEST and (cut := cut_of(loop, longest)) is not None:
                    divide(loop, bounds, cut)


def bounds_of(loop: scf.ForOp) -> range | None:
    """Return the bounds of a loop without side effects other than stores; None for any other loop."""
    if loop.iter_args or not isinstance(loop.attributes.get(INDEPENDENT, UnitAttr()), UnitAttr):
        return None
    pure = all(
        op.name in PURE or op.name.startswith(("arith.", "math.")) or isinstance(op, vector.StoreOp)
        for op in list(loop.body.block.ops)[:-1]
    )
    return range_of(loop) if pure else None


@dataclass(frozen=True)
class Cut:
    """How the operations of a loop's body are divided between two consecutive loops. `same`: those with the same
    results in every iteration; `early` and `late`: those of the first and of the second loop (address
    computations are in both); `left`: the vectors that the first loop stores for the second."""

    same: Sequence[Operation]
    early: Sequence[Operation]
    late: Sequence[Operation]
    left: Sequence[SSAValue]


def varying(block: Block, stored: set[SSAValue]) -> tuple[set[Operation], set[Operation]]:
    """Return two sets of ops of a loop's body: those whose results differ between iterations, or that store, or that
    read a buffer in `stored`; and those of the first set that only compute indices from the loop's index. When the loop
    is divided, both new loops repeat the second set. `stored`: the buffers to which the body stores."""
    varies, places = set[Operation](), set[Operation]()
    for op in list(block.ops)[:-1]:
        sources = {value.owner for value in op.operands}
        inside = varies & sources
        if block in sources or inside or isinstance(op, vector.StoreOp) or reads(op, stored):
            varies.add(op)
            indices = all(isinstance(value.type, IndexType) for value in (*op.operands, *op.results))
            if indices and inside <= places:
                places.add(op)
    return varies, places


def cut_of(loop: scf.ForOp, longest: int) -> Cut | None:
    """Return how the operations of a loop's body are divided between two loops: near the middle of the longest chain of
    operations, where the fewest vectors have to be passed from the first loop to the second. Return None if no chain
    has `longest` operations, or if there is no such division."""
    block = loop.body.block
    stored = {root(op.base) for op in block.ops if isinstance(op, vector.StoreOp)}
    varies, places = varying(block, stored)
    ops = [op for op in block.ops if op in varies]
    below = dict.fromkeys(ops, 0)  # the length of the longest chain of operations that depend on an op
    for op in reversed(ops):
        below[op] += op not in places
        for value in op.operands:
            if isinstance(owner := value.owner, Operation) and owner in below:
                below[owner] = max(below[owner], below[op])
    length = max(below.values(), default=0)
    found: tuple[set[Operation], Sequence[SSAValue]] | None = None
    for cut in range(length * 2 // 5, length * 3 // 5 + 1) if length >= longest else ():
        early = {op for op in ops if below[op] > cut}
        if any(reads(op, stored) for op in early):
            continue
        made = (value for op in ops if op in early and op not in places for value in op.results)
        left = [value for value in made if any(use.operation not in early for use in value.uses)]
        fits = left and all(is_vector(value.type) and scalar_of(value.type) != i1 for value in left)
        if fits and (found is None or len(left) < len(found[1])):
            found = early, left
    if found is None:
        return None
    early, left = found
    late, wanted = list[Operation](), set[SSAValue]()
    for op in reversed(ops):
        if op not in early or (op in places and wanted.intersection(op.results)):
            late.insert(0, op)
            wanted.update(op.operands)
    same = [op for op in list(block.ops)[:-1] if op not in varies]
    return Cut(same, [op for op in ops if op in early], late, left)


def reads(op: Operation, stored: set[SSAValue]) -> bool:
    """Whether an op loads from memory that the loop stores to."""
    return isinstance(op, memref.LoadOp | vector.LoadOp) and root(op.operands[0]) in stored


def divide(loop: scf.ForOp, bounds: range, cut: Cut) -> None:
    """Replace a loop by two loops, for all its iterations or block by block; operations that are the same in every
    iteration are moved in front of them."""
    before, marked = Before(loop), INDEPENDENT in loop.attributes
    for op in cut.same:
        op.detach()
        before.add(op)
    most = max(ROOM // max(lanes_of(value) for value in cut.left), 1)
    start, step, whole = bounds.start, bounds.step, 0
    if len(bounds) > most or (marked and not inside_independent(loop)):
        whole = len(bounds) // most
        strip = LoopBuilder(Block(arg_types=[INDEX]))
        two_loops(strip, loop, cut, strip.block.args[0], step, most)
        strip.add(scf.YieldOp())
        first, end, width = (before.index(n) for n in (start, start + whole * most * step, most * step))
        outer = before.add(scf.ForOp(first, end, width, [], Region(strip.block)))
        if marked:
            outer.attributes[INDEPENDENT] = UnitAttr()
    if rest := len(bounds) - whole * most:
        two_loops(before, loop, cut, start + whole * most * step, step, rest)
    Rewriter.erase_op(loop)


def inside_independent(loop: Operation) -> bool:
    """Whether a loop around this one may be divided among threads."""
    around = loop.parent_op()
    return around is not None and (INDEPENDENT in around.attributes or inside_independent(around))


def two_loops(b: LoopBuilder, loop: scf.ForOp, cut: Cut, start: Index, step: int, count: int) -> None:
    """Emit `count` iterations of a loop, which begin at `start` and are `step` apart, as two loops: the first executes
    the operations `cut.early` of all iterations and stores the vectors that the second loop needs on the stack; the
    second executes `cut.late`."""
    rooms = [
        b.add(memref.AllocaOp.get(scalar_of(value.type), 64, [count * lanes_of(value)])).memref for value in cut.left
    ]
    for ops in (cut.early, cut.late):
        inner = LoopBuilder(Block(arg_types=[INDEX]))
        turn = inner.block.args[0]
        kept = [*zip(cut.left, rooms, map(lanes_of, cut.left), strict=True)]
        copies = dict[SSAValue, SSAValue]()
        copies[loop.body.block.args[0]] = inner.index(inner.plus(start, inner.times(turn, step)))
        if ops is cut.late:
            copies |= {value: inner.vector_load(room, [inner.times(turn, n)], n) for value, room, n in kept}
        for op in ops:
            inner.add(op.clone(copies))
        if ops is cut.early:
            for value, room, lanes in kept:
                inner.store_parts(copies[value], room, [inner.times(turn, lanes)])
        inner.add(scf.YieldOp())
        new = b.add(scf.ForOp(b.index(0), b.index(count), b.index(1), [], Region(inner.block)))
        new.attributes[ROLLED] = UnitAttr()


def lanes_of(value: SSAValue) -> int:
    """Return the number of lanes of a vector."""
    assert is_vector(value.type)
    return value.type.get_shape()[0]
