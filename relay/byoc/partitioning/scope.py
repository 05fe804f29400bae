"""The parts of a module that partitioning considers: functions of the host, their blocks, and ops that a compiler may
take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from relay.dialects import byoc
from relay.dialects.relay import ConstantOp

COMPILER = "compiler"
SYMBOL = "global_symbol"
CHOICE = "byoc.choice"
"""While plans are tried, the attribute of an op with the name of the only compiler to which it is offered; "" is the
host."""
CONSTANTS = "byoc.constants"
"""The name of an attribute whose presence on a function (with the value "vendor") says that the external compiler must
put all constants of the function into the artifact."""


def partitioned(function: FuncOp) -> bool:
    """Whether the function belongs to an external compiler, rather than only requesting that its ops are offered to
    one."""
    return COMPILER in function.attributes and SYMBOL in function.attributes


def functions(module: ModuleOp) -> list[FuncOp]:
    """The host's functions with a body, in the module's order."""
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return [function for function in found if function.body.blocks and not partitioned(function)]


def blocks(op: Operation) -> Iterator[Block]:
    """Every block inside the op, including those of control flow, but not those of regions and composites."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, byoc.Body):
                    yield from blocks(inner)


def eligible(op: Operation) -> bool:
    """Whether a compiler may be offered the op: it computes results and has no side effects."""
    return (
        not isinstance(op, ConstantOp | byoc.Boundary | byoc.RegionOp)
        and (isinstance(op, byoc.CompositeOp) or not op.regions)
        and not op.has_trait(IsTerminator)
        and bool(op.results)
        and is_side_effect_free(op)
    )


def offered(op: Operation, compiler: str) -> bool:
    """Whether the plan that is being tried offers the op to this compiler."""
    choice = op.attributes.get(CHOICE)
    return not isinstance(choice, StringAttr) or choice.data == compiler


def used(op: Operation) -> bool:
    """Whether a result of the op is used."""
    return any(result.uses.get_length() for result in op.results)


def variables(op: Operation) -> list[SSAValue]:
    """The operands that are not constants."""
    return [value for value in op.operands if not isinstance(value.owner, ConstantOp)]


def source(value: SSAValue) -> SSAValue:
    """The value behind any `compiler_begin` and `compiler_end`."""
    while isinstance(value, OpResult) and isinstance(value.owner, byoc.Boundary):
        value = value.owner.input
    return value


def captured(op: Operation) -> Iterator[SSAValue]:
    """The operands of the op and of all ops inside it."""
    for inner in op.walk():
        yield from inner.operands


def annotated(op: Operation) -> bool:
    """Whether the op is already annotated for a compiler."""
    return any(isinstance(value.owner, byoc.CompilerBeginOp) for value in op.operands) or any(
        isinstance(use.operation, byoc.CompilerEndOp) for result in op.results for use in result.uses
    )


def opened(ops: Sequence[Operation]) -> list[Operation]:
    """The ops, with composites and regions replaced by the ops inside them, without constants."""
    found: list[Operation] = []
    for op in ops:
        inner = op.body.block.ops if isinstance(op, byoc.Body) else ()
        found += opened(list(inner)) if inner else [op] if eligible(op) else []
    return found
