"""What partitioning looks at: the functions of the host, their blocks, the ops that a compiler may take."""

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
"""On an op that only the compiler of this name is to be asked for, while plans are tried: "x"; "" is the host."""
CONSTANTS = "byoc.constants"
"""On a function whose constants are its compiler's alone: "vendor"."""


def partitioned(function: FuncOp) -> bool:
    """Whether the function is an external compiler's, and not one whose ops a compiler is to be asked for."""
    return COMPILER in function.attributes and SYMBOL in function.attributes


def functions(module: ModuleOp) -> list[FuncOp]:
    """The functions with a body that are the host's, in the module's order."""
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return [function for function in found if function.body.blocks and not partitioned(function)]


def symbols(module: ModuleOp) -> dict[str, FuncOp]:
    """Every function by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def blocks(op: Operation) -> Iterator[Block]:
    """Every block inside, those of control flow too, but not what a compiler has taken."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, byoc.Body):
                    yield from blocks(inner)


def eligible(op: Operation) -> bool:
    """Whether a compiler may be asked for the op: it computes something, and its results are all that it does."""
    return (
        not isinstance(op, ConstantOp | byoc.Boundary | byoc.RegionOp)
        and (isinstance(op, byoc.CompositeOp) or not op.regions)
        and not op.has_trait(IsTerminator)
        and bool(op.results)
        and is_side_effect_free(op)
    )


def offered(op: Operation, compiler: str) -> bool:
    """Whether the plan that is tried leaves the op to this compiler."""
    choice = op.attributes.get(CHOICE)
    return not isinstance(choice, StringAttr) or choice.data == compiler


def used(op: Operation) -> bool:
    """Whether anything needs the op."""
    return any(result.uses.get_length() for result in op.results)


def variables(op: Operation) -> list[SSAValue]:
    """The operands that are no constants."""
    return [value for value in op.operands if not isinstance(value.owner, ConstantOp)]


def source(value: SSAValue) -> SSAValue:
    """The value without the boundaries that it passes."""
    while isinstance(value, OpResult) and isinstance(value.owner, byoc.Boundary):
        value = value.owner.input
    return value


def captured(op: Operation) -> Iterator[SSAValue]:
    """The operands of the op and of the ops inside it."""
    for inner in op.walk():
        yield from inner.operands


def holder(op: Operation, block: Block) -> Operation | None:
    """The op of the block that is this op or holds it; None if the block does not hold it."""
    found: Operation | None = op
    while found is not None and found.parent is not block:
        found = found.parent_op()
    return found


def annotated(op: Operation) -> bool:
    """Whether the op is in a compiler's region already."""
    return any(isinstance(value.owner, byoc.CompilerBeginOp) for value in op.operands) or any(
        isinstance(use.operation, byoc.CompilerEndOp) for result in op.results for use in result.uses
    )


def opened(ops: Sequence[Operation]) -> list[Operation]:
    """The ops, those of composites instead of these; constants are left out."""
    found: list[Operation] = []
    for op in ops:
        inner = op.body.block.ops if isinstance(op, byoc.Body) else ()
        found += opened(list(inner)) if inner else [op] if eligible(op) else []
    return found
