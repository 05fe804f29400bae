"""`distribute-loops`: a loop whose turns are long chains of operations becomes two loops, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.lowering.builder import INDEPENDENT, INDEX, ROLLED, Before
from relay.lowering.shaped import is_vector, root
from relay.lowering.walking import walked
from relay.passes import Pass
from relay.target import cpu_of

TURNS = range(4, 65)
"""How often a loop may turn: fewer turns are too few to work on at once, more need too much of the stack."""
PURE = ("arith.", "math.", "vector.broadcast", "vector.load", "vector.shuffle", "llvm.call_intrinsic")
"""What a turn may consist of, but for the stores at its end."""


@dataclass(frozen=True)
class DistributeLoops(Pass):
    """Make two loops of one whose turns are long chains of operations on vectors, as those of an epilogue with GELU
    are. A processor looks a few hundred operations ahead; where each waits for the one before, it works on few turns at
    once, and on twice as many of half the length. What the second loop needs of the first one is on the stack, as few
    vectors as a cut near the middle leaves. Neither loop is unrolled: LLVM would join them again.

    `longest`: operations of a chain from which on its loop is made two; the target's costs say it if this is not given.
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
            if loop.name == scf.ForOp.name and isinstance(loop, scf.ForOp) and turns_of(loop) in TURNS:
                distribute(loop, longest)


def turns_of(loop: scf.ForOp) -> int:
    """How often a loop from 0 on, by 1, turns that does nothing but store what it computes; 0 of any other."""
    bounds = [value.owner for value in (loop.lb, loop.ub, loop.step)]
    known = [bound.value for bound in bounds if isinstance(bound, arith.ConstantOp)]
    numbers = [int(attr.value.data) for attr in known if isinstance(attr, IntegerAttr)]
    if len(numbers) != 3 or numbers[::2] != [0, 1] or loop.iter_args or INDEPENDENT in loop.attributes:
        return 0
    ops = list(loop.body.block.ops)[:-1]
    pure = all(op.name.startswith(PURE) for op in ops if not isinstance(op, vector.StoreOp))
    return numbers[1] if pure else 0


def distribute(loop: scf.ForOp, longest: int) -> None:
    """Make two loops of one, if its chains are long and there is a place to cut them."""
    block = loop.body.block
    hoist(loop)
    ops = list(block.ops)[:-1]
    below = {op: 0 for op in ops}  # how many operations wait for it, one for the other
    for op in reversed(ops):
        below[op] += counts(op)
        for value in op.operands:
            if (owner := value.owner) in below and isinstance(owner, Operation):
                below[owner] = max(below[owner], below[op])
    length = max(below.values(), default=0)
    if length < longest:
        return
    stored = {root(op.base) for op in ops if isinstance(op, vector.StoreOp)}
    found: tuple[list[Operation], Sequence[SSAValue]] | None = None
    for cut in range(length * 2 // 5, length * 3 // 5 + 1):
        early = [op for op in ops if below[op] > cut]
        inside = set(early)
        if any(isinstance(op, vector.LoadOp) and root(op.base) in stored for op in early):
            continue
        left = [v for op in early for v in op.results if any(use.operation not in inside for use in v.uses)]
        left = [value for value in left if not isinstance(value.type, IndexType)]
        if all(is_vector(value.type) for value in left) and (found is None or len(left) < len(found[1])):
            found = early, left
    if found is not None:
        split(loop, *found)


def counts(op: Operation) -> int:
    """Whether an operation is one of a chain: not what only says where something is."""
    return int(not any(isinstance(value.type, IndexType) for value in op.results))


def hoist(loop: scf.ForOp) -> None:
    """Move what is the same in every turn before the loop."""
    block = loop.body.block
    for op in list(block.ops)[:-1]:
        varies = any(value is block.args[0] or block_of(value) is block for value in op.operands)
        if not varies and op.results and not isinstance(op, vector.LoadOp):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(loop))


def block_of(value: SSAValue) -> Block | None:
    """The block that a value is computed in."""
    return value.owner.parent_block() if isinstance(value.owner, Operation) else value.owner


def split(loop: scf.ForOp, early: Sequence[Operation], left: Sequence[SSAValue]) -> None:
    """Do the `early` operations in a loop before this one, which reads the vectors that they leave."""
    block, before, head = loop.body.block, Before(loop), loop.body.block.first_op
    assert head is not None
    first = Block(arg_types=[INDEX])
    copies: dict[SSAValue, SSAValue] = {block.args[0]: first.args[0]}
    for op in early:
        first.add_op(op.clone(copies))
    end = scf.YieldOp()
    first.add_op(end)
    for value in left:
        assert is_vector(value.type)
        (lanes,) = value.type.get_shape()
        room = before.add(memref.AllocaOp.get(value.type.element_type, 64, [turns_of(loop) * lanes])).memref
        ahead, behind = Before(end), Before(head)
        ahead.vector_store(copies[value], room, [ahead.times(first.args[0], lanes)])
        read = behind.vector_load(room, [behind.times(block.args[0], lanes)], lanes)
        inside = set(early)
        value.replace_uses_with_if(read, lambda use, inside=inside: use.operation not in inside)
    for op in reversed(early):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
    other = before.add(scf.ForOp(loop.lb, loop.ub, loop.step, [], Region(first)))
    loop.attributes[ROLLED] = other.attributes[ROLLED] = UnitAttr()
