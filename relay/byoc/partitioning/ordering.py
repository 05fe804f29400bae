"""The order of a block's ops as it was before partitioning, as far as their sources tell it."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from xdsl.dialects.builtin import FileLineColLoc, NameLoc
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator, is_side_effect_free

from relay.byoc.partitioning.scope import captured, holder
from relay.dialects.relay import ConstantOp


def restore_order(block: Block) -> None:
    """Put the ops in the order of their places in the source: the operators of a model, lines and columns of a text.

    Ops of one place, and those that have none, stay behind those they were behind. A constant that has no place in a
    text stands before the first op that uses it. Ops with effects keep their order.
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
    """The ops by place, each after those that it needs."""
    keys: dict[Operation, tuple[int, int, int]] = {}
    line, column = -1, -1
    for number, op in enumerate(ops):
        line, column = place_of(op) or (line, column)
        keys[op] = (line, column, number)
    later: dict[Operation, list[Operation]] = {op: [] for op in ops}
    waiting: dict[Operation, int] = dict.fromkeys(ops, 0)
    last: Operation | None = None
    for op in ops:
        owners = [value.owner for value in captured(op) if isinstance(value.owner, Operation)]
        needed = {found for owner in owners if (found := holder(owner, block)) in waiting and found is not op}
        if not is_side_effect_free(op):
            needed |= {last} if last is not None else set()
            last = op
        for producer in needed:
            if producer is not None:
                later[producer].append(op)
                waiting[op] += 1
    ready = [(keys[op], op) for op in ops if not waiting[op]]
    heapify(ready)
    order: list[Operation] = []
    while ready:
        _, op = heappop(ready)
        order.append(op)
        for user in later[op]:
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, (keys[user], user))
    return order


def place_of(op: Operation) -> tuple[int, int] | None:
    """Line and column of the op's source; None if they are not known."""
    location = op.location.location if isinstance(op.location, NameLoc) else op.location
    return (location.line.data, location.column.data) if isinstance(location, FileLineColLoc) else None
