"""The conversion of `scf.while` from tensors to memrefs, for `bufferize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.op import is_tensor


class Bufferizer(Protocol):
    """An object that converts the ops of a function from tensors to memrefs; new ops go before `at` in `block`, and
    `buffers` has the memref of each tensor."""

    block: Block
    at: Operation
    buffers: dict[SSAValue, SSAValue]

    def allocate(self, value: SSAValue) -> SSAValue:
        """Allocate a buffer for a tensor."""
        ...

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        """Copy one buffer to another."""

    def dense(self, value: SSAValue) -> SSAValue:
        """Return the buffer of a tensor, as a contiguous one."""
        ...

    def insert(self, op: Operation) -> object:
        """Insert an op before the op `self.at` in `self.block`."""

    def convert(self, op: Operation) -> None:
        """Convert one op of the function from tensors to memrefs."""

    def drop(self, block: Block, end: Operation) -> None:
        """Erase a converted block's terminator and the ops on tensors before it."""


def convert_while(b: Bufferizer, op: scf.WhileOp) -> None:
    """Convert a loop: carried tensors are in the same buffers in every iteration. The buffers of the test's block start
    as copies of the initial values; the buffers of the values that the test passes on are also the loop's results.
    Scalars remain loop-carried values."""
    tested, given = op.before_region.block, op.after_region.block
    carried = [b.allocate(arg) for arg in tested.args if is_tensor(arg.type)]
    for value, buffer in zip([v for v in op.arguments if is_tensor(v.type)], carried, strict=True):
        b.copy(b.dense(value), buffer)
    kept = [b.allocate(arg) for arg in given.args if is_tensor(arg.type)]
    for block, buffers, others in ((tested, carried, kept), (given, kept, carried)):
        tensors = [arg for arg in block.args if is_tensor(arg.type)]
        b.buffers.update(zip(tensors, buffers, strict=True))
        convert_turn(b, block, others)
        for arg in tensors:
            block.erase_arg(arg)
    results = [result for result in op.res if is_tensor(result.type)]
    b.buffers.update(zip(results, kept, strict=True))
    others = [result for result in op.res if result not in results]
    regions = [op.detach_region(region) for region in list(op.regions)]
    numbers = [value for value in op.arguments if not is_tensor(value.type)]
    new = scf.WhileOp(numbers, [result.type for result in others], *regions)
    b.insert(new)
    for old, result in zip(others, new.res, strict=True):
        old.replace_all_uses_with(result)
    if not results:
        Rewriter.erase_op(op)


def convert_turn(b: Bufferizer, block: Block, outputs: Sequence[SSAValue]) -> None:
    """Convert one block of a loop. At its end, the tensors that it passes on are copied to `outputs`."""
    outer, at, end = b.block, b.at, block.last_op
    assert isinstance(end, scf.YieldOp | scf.ConditionOp) and block.first_op is not None
    b.block, b.at = block, block.first_op
    for op in list(block.ops):
        b.at = op
        b.convert(op)
    b.at = end
    values = list(end.operands) if isinstance(end, scf.YieldOp) else list(end.args)
    tensors = [value for value in values if is_tensor(value.type)]
    sources = [b.buffers[value] for value in tensors]
    for source, output in zip(sources, outputs, strict=True):
        b.copy(source, output)
    numbers = [value for value in values if not is_tensor(value.type)]
    b.insert(scf.YieldOp(*numbers) if isinstance(end, scf.YieldOp) else scf.ConditionOp(end.condition, *numbers))
    b.drop(block, end)
    b.block, b.at = outer, at
