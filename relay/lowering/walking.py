"""All operations inside of one, for passes over whole modules of loops."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation


def walked(op: Operation) -> list[Operation]:
    """The operation and all inside of it, in the order of the text, as `op.walk()` yields them: that passes each one
    through three generators for each level of nesting."""
    return [op, *inside(block for region in op.regions for block in region.blocks)]


def inside(blocks: Iterable[Block]) -> list[Operation]:
    """All operations inside of blocks."""
    found: list[Operation] = []
    for block in blocks:
        op = block.first_op
        while op is not None:
            found.append(op)
            if op.regions:
                found += inside(inner for region in op.regions for inner in region.blocks)
            op = op.next_op
    return found
