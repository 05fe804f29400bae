"""The pass `annotate-target`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from relay.byoc.compiler import Compiler
from relay.byoc.partitioning.refusals import ask, refuse
from relay.byoc.partitioning.scope import (
    COMPILER,
    Compilers,
    Names,
    blocks,
    eligible,
    functions,
    targets,
    used,
    variables,
)
from relay.dialects import byoc
from relay.passes import Pass


@dataclass(frozen=True)
class AnnotateTarget(Pass):
    """Put `byoc.compiler_begin` and `byoc.compiler_end` around each op that an external compiler takes.

    A compiler takes its own composites (by the name before "."), and the ops of which its `supports` says so. Of the
    compilers in `targets` the first that takes an op gets it. Every operand that is no constant gets a begin, every
    result in use an end. Ops on constants alone are left to constant folding. Ops that are annotated already stay so:
    one run for `a` and one for `b` is a run for `a,b`. Ops in the bodies of control flow are annotated there.

    Without `targets`, each function is offered to the compiler that its attribute `compiler` names, which it loses.
    """

    name: ClassVar[str] = "annotate-target"
    aliases = ("AnnotateExternalCompiler",)
    invalidates = ()
    why = "marks what external compilers take"
    targets: Names = ()
    numerics: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compilers = Compilers(op, self.name, self.numerics)
        for function in functions(op):
            chosen = compilers.of(targets(self.targets, function, self.name))
            ask(op, [compiler.name for compiler in chosen])
            function.attributes.pop(COMPILER, None)
            for block in list(blocks(function)):
                annotate(block, chosen)


def annotate(block: Block, compilers: Sequence[Compiler]) -> None:
    """Annotate the ops of a block."""
    for op in list(block.ops):
        if eligible(op) and used(op) and variables(op) and not annotated(op):
            compiler = choose(op, compilers)
            if compiler is not None:
                surround(op, StringAttr(compiler.name))


def annotated(op: Operation) -> bool:
    """Whether the op is in a compiler's region already."""
    return any(isinstance(value.owner, byoc.CompilerBeginOp) for value in op.operands) or any(
        isinstance(use.operation, byoc.CompilerEndOp) for result in op.results for use in result.uses
    )


def choose(op: Operation, compilers: Sequence[Compiler]) -> Compiler | None:
    """The first compiler that takes the op; the reasons of the others stay with it."""
    for compiler in compilers:
        if isinstance(op, byoc.CompositeOp):
            if op.composite.data.partition(".")[0] == compiler.name:
                return compiler
            continue
        answer = compiler.supports(op)
        if answer is True:
            return compiler
        if answer is not False:
            refuse(op, compiler.name, answer.reason)
    return None


def surround(op: Operation, compiler: StringAttr) -> None:
    """A begin for every operand that is no constant, an end for every result in use."""
    block = op.parent
    assert block is not None
    constants = [value for value in op.operands if value not in variables(op)]
    operands: list[SSAValue] = []
    for value in op.operands:
        if value in constants:
            operands.append(value)
            continue
        begin = byoc.CompilerBeginOp.make([value], {"compiler": compiler}, op)
        block.insert_op_before(begin, op)
        operands.append(begin.result)
    op.operands = operands
    for result in op.results:
        if not result.uses.get_length():
            continue
        end = byoc.CompilerEndOp.create(
            operands=[result], result_types=[result.type], properties={"compiler": compiler}, location=op.location
        )
        block.insert_op_after(end, op)
        end.result.name_hint = result.name_hint
        result.replace_uses_with_if(end.result, lambda use, end=end: use.operation is not end)


AnnotateExternalCompiler = AnnotateTarget
"""The name that the discussion which founded the project gave it."""
