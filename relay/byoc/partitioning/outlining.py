"""Outlining regions as functions, without duplicate or unneeded arguments and results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.byoc.partitioning.refusals import forget
from relay.byoc.partitioning.scope import COMPILER, SYMBOL
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.transforms.dead_ops import erase_dead


def outline(region: byoc.RegionOp, name: str, hoist: bool) -> FuncOp | None:
    """Outline a region as a function, and replace the region by a call. Returns None, and only removes the region, if
    nothing has to be computed in it.

    Constants are inside the function; with `hoist` they are arguments instead, one for equal constants.
    """
    body, holder = region.body, region.parent
    block, results = body.block, outputs(region)
    assert holder is not None and block.last_op is not None
    Rewriter.erase_op(block.last_op)
    block.add_op(end := ReturnOp(*results))
    end.location = region.location
    erase_dead(block.ops)
    forget(region)
    arguments = inputs(region, hoist)
    call = CallOp(name, arguments, [value.type for value in results])
    call.location = region.location
    for value, new in zip(results.items(), call.res, strict=True):
        new.name_hint = value[1].name_hint
        value[1].replace_all_uses_with(new)
    if results:
        holder.insert_op_before(call, region)
    region.detach_region(body)
    Rewriter.erase_op(region)
    if not results:
        body.erase()
        return None
    types = ([argument.type for argument in block.args], [value.type for value in results])
    function = FuncOp(name, types, body, visibility="private")
    function.location = call.location
    function.attributes |= {COMPILER: region.compiler, SYMBOL: StringAttr(name)} | composite_of(list(block.ops))
    return function


def outputs(region: byoc.RegionOp) -> dict[SSAValue, OpResult]:
    """Return the values that the function has to return, each with the first region result that yields it. A region
    result that is an argument or a constant of the region is not among them: in the host, its uses become uses of the
    region's operand, or of a copy of the constant."""
    end, holder = region.body.block.last_op, region.parent
    assert isinstance(end, byoc.YieldOp) and holder is not None
    kept: dict[SSAValue, OpResult] = {}
    for result, value in zip(region.results, end.operands, strict=True):
        if not result.uses.get_length():
            continue
        if isinstance(value, BlockArgument):
            result.replace_all_uses_with(region.operands[value.index])
        elif isinstance(value.owner, ConstantOp):
            holder.insert_op_before(copy := value.owner.clone(), region)
            result.replace_all_uses_with(copy.result)
        elif value in kept:
            result.replace_all_uses_with(kept[value])
        else:
            kept[value] = result
    return kept


def inputs(region: byoc.RegionOp, hoist: bool) -> list[SSAValue]:
    """The values to pass to the function, one for each distinct operand in the order of first use, then one for each
    hoisted constant; the region's block arguments are changed accordingly."""
    block, holder = region.body.block, region.parent
    assert holder is not None
    known: dict[SSAValue, SSAValue] = {}
    for value, argument in zip(region.operands, list(block.args), strict=True):
        if value in known:
            argument.replace_all_uses_with(known[value])
        elif isinstance(value.owner, ConstantOp) and argument.uses.get_length():
            copy = value.owner.clone()
            Rewriter.insert_op(copy, InsertPoint.at_start(block))
            argument.replace_all_uses_with(copy.result)
        elif argument.uses.get_length():
            known[value] = argument
        if not argument.uses.get_length():
            block.erase_arg(argument)
    if not hoist:
        return list(known)
    lift(block)
    hoisted: dict[tuple[Attribute, Attribute | None], SSAValue] = {}
    for op in [op for op in block.ops if isinstance(op, ConstantOp)]:
        key = (op.value, op.label)
        if key not in hoisted:
            holder.insert_op_before(copy := op.clone(), region)
            hoisted[key] = known[copy.result] = block.insert_arg(op.result.type, len(block.args))
            hoisted[key].name_hint = op.result.name_hint
        op.result.replace_all_uses_with(hoisted[key])
        Rewriter.erase_op(op)
    return list(known)


def lift(block: Block) -> None:
    """Move the constants inside composites out of them, as operands of the composites."""
    for composite in [op for op in block.ops if isinstance(op, byoc.CompositeOp)]:
        for op in list(composite.body.block.ops):
            if isinstance(op, ConstantOp):
                block.insert_op_before(copy := op.clone(), composite)
                argument = composite.body.block.insert_arg(op.result.type, len(composite.operands))
                composite.operands = [*composite.operands, copy.result]
                op.result.replace_all_uses_with(argument)
                Rewriter.erase_op(op)


def composite_of(ops: Sequence[Operation]) -> dict[str, StringAttr]:
    """The attributes that a function of these ops gets from its composite, if the ops are exactly one composite; else
    empty."""
    match [op for op in ops if not isinstance(op, ConstantOp | ReturnOp)]:
        case [byoc.CompositeOp() as only]:
            return {"composite": only.composite, "partitioned_from_pattern": only.partitioned_from_pattern}
        case _:
            return {}
