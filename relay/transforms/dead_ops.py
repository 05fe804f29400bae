"""Erases dead ops, at all stages."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType

from xdsl.ir import Operation
from xdsl.traits import MemoryAllocEffect
from xdsl.transforms.dead_code_elimination import is_trivially_dead


def is_dead(op: Operation) -> bool:
    """Whether the op's results are unused, and it has no side effect except their allocation: a terminator, a function
    or a call is never dead, nor is an op whose effects are not known."""
    if op.has_trait(MemoryAllocEffect, value_if_unregistered=False):
        return all(result.first_use is None for result in op.results)
    return is_trivially_dead(op)


def erase_dead(ops: Iterable[Operation], kinds: type[Operation] | UnionType = Operation) -> None:
    """Erase those of the ops that are dead, last first, and then the ops that computed the operands of erased ops and
    are now dead, too. Only ops of `kinds` are erased. `erase_dead(op.walk())` does the same as the pass `dce`, and
    erases allocations, too."""
    pending = list(ops)
    while pending:
        op = pending.pop()
        if op.parent is None or not (kinds is Operation or isinstance(op, kinds)) or not is_dead(op):
            continue
        owners = (value.owner for inner in op.walk() for value in inner.operands)
        pending += [owner for owner in owners if isinstance(owner, Operation) and not op.is_ancestor(owner)]
        op.detach()
        op.erase()
