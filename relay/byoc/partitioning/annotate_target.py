"""The pass `annotate-target`: marks ops for external compilers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from relay.byoc.compiler import Refusal
from relay.byoc.partitioning import records
from relay.byoc.partitioning.offers import Compilers, Names, Offer, targets
from relay.byoc.partitioning.refusals import ask, reasons, refuse
from relay.byoc.partitioning.scope import (
    COMPILER,
    annotated,
    blocks,
    eligible,
    functions,
    offered,
    used,
    variables,
)
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.passes import Pass


@dataclass(frozen=True)
class AnnotateTarget(Pass):
    """Put `byoc.compiler_begin` and `byoc.compiler_end` around ops for external compilers.

    A compiler takes its own composites (recognized by the name before "."), and the ops that its `supports` accepts.
    Every operand that is no constant gets a begin, every used result an end. Ops on constants alone are left to
    constant folding. Ops that are already annotated stay so: running the pass for `a` and then for `b` equals running
    it for `a,b`. Ops in the bodies of control flow are annotated there.

    Of the compilers in `targets` the first that takes an op gets it. Without `targets`, each function is offered to the
    compiler that its attribute `compiler` names; the attribute is removed. `exact=true` refuses compilers and
    composites whose integers do not equal those of the ops' formulas.
    """

    name: ClassVar[str] = "annotate-target"
    invalidates = ()
    why = "marks ops that external compilers take"
    targets: Names = ()
    exact: bool | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compilers = Compilers(op, self.name, self.exact)
        records.restore(op)
        for function in functions(op):
            offers = compilers.of(targets(self.targets, function, self.name))
            ask(function, [offer.compiler.name for offer in offers])
            function.attributes.pop(COMPILER, None)
            for block in list(blocks(function)):
                annotate(block, offers)


def annotate(block: Block, offers: Sequence[Offer]) -> None:
    """Annotate the ops of a block for the first compiler that takes each."""
    for op in list(block.ops):
        if eligible(op) and used(op) and variables(op) and not annotated(op):
            offer = choose(op, offers)
            if offer is not None:
                surround(op, StringAttr(offer.compiler.name))


def choose(op: Operation, offers: Sequence[Offer]) -> Offer | None:
    """The first compiler that takes the op, or None; the reasons of compilers that refuse it are recorded on the op."""
    for offer in offers:
        answer = offered(op, offer.compiler.name) and offer.takes(op)
        if answer:
            return offer
        if isinstance(answer, Refusal):
            name = offer.compiler.name
            told = reasons(op).get(name, answer.reason)  # of a match with this op
            refuse(op, name, told if answer.reason in told else f"{told}; {answer.reason}")
    return None


def surround(op: Operation, compiler: StringAttr) -> None:
    """Insert a begin for every operand that is no constant, and an end for every used result."""
    block = op.parent
    assert block is not None
    operands: list[SSAValue] = []
    for value in op.operands:
        if not isinstance(value.owner, ConstantOp):
            begin = byoc.CompilerBeginOp.make([value], {"compiler": compiler}, like=op)
            block.insert_op_before(begin, op)
            value = begin.result
        operands.append(value)
    op.operands = operands
    for result in op.results:
        if result.uses.get_length():
            end = byoc.CompilerEndOp.make([result], {"compiler": compiler}, like=op)
            block.insert_op_after(end, op)
            end.result.name_hint = result.name_hint
            result.replace_uses_with_if(end.result, lambda use, end=end: use.operation is not end)
