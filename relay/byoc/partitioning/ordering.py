"""Restoring the order that a block's ops had before partitioning, as far as their locations tell it."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc, NameLoc
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator, is_side_effect_free

from relay.byoc.partitioning.scope import captured, holder
from relay.dialects.relay import ConstantOp
from relay.transforms.topological_order import topological_order


def restore_order(block: Block) -> None:
    """Sort the ops by their source locations: operators of a model, lines and columns of a text.

    Ops with equal or no locations stay after the ops that they followed. A constant without a text location is placed
    before the first op that uses it. Ops with side effects keep their order.
    """
    *ops, end = block.ops
    if not end.has_trait(IsTerminator):
        return
    moved = [op for op in ops if isinstance(op, ConstantOp) and not isinstance(op.location, FileLineColLoc)]
    pulled = set(moved)
    order = sorted_ops(block, [op for op in ops if op not in pulled])
    for op in ops:
        op.detach()
    for op in (*order, end):
        if op is not end:
            block.insert_op_before(op, end)
        for value in captured(op):
            constant = value.owner
            if isinstance(constant, ConstantOp) and constant in pulled:
                pulled.discard(constant)
                block.insert_op_before(constant, op)
    for op in moved:
        if op in pulled:
            block.insert_op_before(op, end)


def sorted_ops(block: Block, ops: list[Operation]) -> list[Operation]:
    """The ops sorted by location, each after the ops on which it depends."""
    keys: dict[Operation, tuple[int, int, int]] = {}
    line, column = -1, -1
    for number, op in enumerate(ops):
        line, column = place_of(op) or (line, column)
        keys[op] = (line, column, number)
    before: dict[Operation, set[Operation]] = {}
    last: Operation | None = None
    for op in ops:
        owners = [value.owner for value in captured(op) if isinstance(value.owner, Operation)]
        producers = [holder(owner, block) for owner in owners]
        if not is_side_effect_free(op):
            producers.append(last)
            last = op
        before[op] = {each for each in producers if each is not None and each in keys and each is not op}
    return topological_order(before, keys.__getitem__)


def place_of(op: Operation) -> tuple[int, int] | None:
    """The line and column of the op's source; None if unknown."""
    location = op.location.location if isinstance(op.location, NameLoc) else op.location
    return (location.line.data, location.column.data) if isinstance(location, FileLineColLoc) else None
