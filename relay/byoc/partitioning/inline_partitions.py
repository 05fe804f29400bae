"""The pass `inline-partitions`: undoes partitioning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, NameLoc
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, is_side_effect_free

from relay.byoc.partitioning import bodies
from relay.byoc.partitioning.records import REFUSALS
from relay.byoc.partitioning.refusals import TARGETS, forget
from relay.byoc.partitioning.scope import blocks, captured, functions, partitioned
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pass
from relay.transforms.topological_order import topological_order


@dataclass(frozen=True)
class InlinePartitions(Pass):
    """Undo partitioning, whichever of its passes have run. External functions are inlined where they are called,
    regions, composites and annotations become plain ops, equal constants are merged, and the records for the report are
    removed.

    Ops return to the order of their sources. A module that a frontend made, or that was parsed, then prints as before
    partitioning, provided that before it the ops were in the order of their sources, each constant of a model was just
    before its first use, no two constants were equal, and every constant was used. The settings for the compilers stay
    (`byoc.options`, `byoc.exact`). An attribute `compiler` by which a function requested a compiler is not restored.
    Raises InvalidArgument for a function that is already compiled, since its ops are gone.
    """

    name: ClassVar[str] = "inline-partitions"
    invalidates = ()
    why = "returns all functions of external compilers to the host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        external = {name: function for name, function in IRModule(op).functions.items() if partitioned(function)}
        for name, function in external.items():
            if not function.body.blocks:
                hint = "run inline-partitions before compile-external"
                raise InvalidArgument(f"function {name}", "is compiled already, its ops are gone", hint)
        for function in functions(op):
            for block in list(blocks(function)):
                inline_calls(block, external)
                bodies.inline_all(block, byoc.RegionOp)
                bodies.drop_boundaries(block)
                bodies.inline_all(block, byoc.CompositeOp)
                share_constants(block)
                restore_order(block)
            forget(function)
            function.attributes.pop(TARGETS, None)
        for function in external.values():
            Rewriter.erase_op(function)
        op.attributes.pop(REFUSALS, None)


def inline_calls(block: Block, external: dict[str, FuncOp]) -> None:
    """Inline calls of external functions."""
    for call in list(block.ops):
        if not isinstance(call, CallOp) or call.callee.string_value() not in external:
            continue
        body = external[call.callee.string_value()].body.block
        known: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
        for op in body.ops:
            if isinstance(op, ReturnOp):
                for old, value in zip(call.res, op.arguments, strict=True):
                    if isinstance(known[value], OpResult) and old.name_hint is not None:
                        known[value].name_hint = old.name_hint
                    old.replace_all_uses_with(known[value])
            else:
                block.insert_op_before(op.clone(known), call)
        Rewriter.erase_op(call)


def share_constants(block: Block) -> None:
    """Replace constants with equal value and label by the first one."""
    seen: dict[tuple[Attribute, Attribute | None], ConstantOp] = {}
    for op in list(block.ops):
        if isinstance(op, ConstantOp):
            first = seen.setdefault((op.value, op.label), op)
            if first is not op:
                op.result.replace_all_uses_with(first.result)
                Rewriter.erase_op(op)


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
        producers = [block.find_ancestor_op_in_block(owner) for owner in owners]
        if not is_side_effect_free(op):
            producers.append(last)
            last = op
        before[op] = {each for each in producers if each is not None and each in keys and each is not op}
    return topological_order(before, keys.__getitem__)


def place_of(op: Operation) -> tuple[int, int] | None:
    """The line and column of the op's source; None if unknown."""
    location = op.location.location if isinstance(op.location, NameLoc) else op.location
    return (location.line.data, location.column.data) if isinstance(location, FileLineColLoc) else None
