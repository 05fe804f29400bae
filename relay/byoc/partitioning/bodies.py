"""Creating and dissolving ops that contain ops of a block (`byoc.region`, `byoc.composite`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.byoc.partitioning.refusals import reasons, refuse
from relay.byoc.partitioning.scope import eligible
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp

Kind = TypeVar("Kind", bound=byoc.Body)


def enclose(
    kind: type[Kind],
    members: Sequence[Operation],
    properties: Mapping[str, Attribute],
    constants: Collection[Operation] | None = None,
) -> Kind:
    """Move these ops of one block, in this order, into the body of a new op with these properties, with copies of the
    given constants (None: of all that they use).

    The new op's operands are the values from outside, in the order of their first use; its results are those used
    outside. It has the location of the last op, and is not yet inserted: it belongs where the last op was.
    """
    outputs = results_used_outside(members)
    known: dict[SSAValue, SSAValue] = {}
    block, inputs = Block(), list[SSAValue]()
    inside = set(members)
    for op in members:
        for value in op.operands:
            if value in known or value.owner in inside:
                continue
            if isinstance(value.owner, ConstantOp) and (constants is None or value.owner in constants):
                block.add_op(copy := value.owner.clone())
                known[value] = copy.result
            else:
                inputs.append(value)
                known[value] = block.insert_arg(value.type, len(block.args))
                known[value].name_hint = value.name_hint
    for op in members:
        op.detach()
        op.operands = [known.get(value, value) for value in op.operands]
    block.add_ops(members)
    end = byoc.YieldOp.create(operands=outputs)
    block.add_op(end)
    body = kind.create(
        operands=inputs,
        result_types=[value.type for value in outputs],
        properties=dict(properties),
        regions=[Region(block)],
        location=members[-1].location,
    )
    inside.add(end)
    for old, new in zip(outputs, body.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation not in inside)
    return body


def results_used_outside(members: Sequence[Operation]) -> list[OpResult]:
    """Return the results of `members` that are used by ops outside of `members`, in order."""
    inside = set(members)
    return [r for op in members for r in op.results if any(use.operation not in inside for use in r.uses)]


def inline(body: byoc.Body) -> None:
    """Replace an op with a body by the ops of the body, which take over its recorded reasons of refusal."""
    block = body.body.block
    for compiler, reason in reasons(body).items():
        for op in block.ops:
            if eligible(op):
                refuse(op, compiler, reason)
    assert isinstance(end := block.last_op, byoc.YieldOp)
    results = [body.operands[block.args.index(value)] if value in block.args else value for value in end.operands]
    Rewriter.erase_op(end)
    Rewriter.inline_block(block, InsertPoint.before(body), tuple(body.operands))
    for old, new in zip(body.results, results, strict=True):
        if isinstance(new, OpResult) and old.name_hint is not None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    Rewriter.erase_op(body)


def inline_all(block: Block, kind: type[byoc.Body]) -> None:
    """Replace every op of this kind (composites, or regions) in the block by its ops."""
    for op in list(block.ops):
        if isinstance(op, kind):
            inline(op)


def drop_boundaries(block: Block) -> None:
    """Remove every `compiler_begin` and `compiler_end` of the block."""
    for op in list(block.ops):
        if isinstance(op, byoc.Boundary):
            op.result.replace_all_uses_with(op.input)
            Rewriter.erase_op(op)
