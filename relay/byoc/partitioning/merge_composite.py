"""The pass `merge-composite`: matches the pattern tables of external compilers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.byoc.partitioning import records
from relay.byoc.partitioning.matching import find, merge
from relay.byoc.partitioning.offers import Compilers, Names, targets
from relay.byoc.partitioning.refusals import ask
from relay.byoc.partitioning.scope import blocks, functions
from relay.passes import Pass


@dataclass(frozen=True)
class MergeComposite(Pass):
    """Replace each subgraph that matches a compiler's pattern table by one op, a composite.

    `%y = qnn.requantize (nn.bias_add (qnn.conv2d %x, constant), constant)` becomes `%y = byoc.composite "x.conv2d" from
    "qnn.conv2d_nn.bias_add_qnn.requantize_"(%x)`. Entries are tried in the order of the table, each on the whole block
    before the next, from the results backwards. Constants that the pattern matched are copied into the composite. A
    match is refused if an op outside uses an inner result, or if the entry's check refuses it; its ops then keep the
    reason.

    `compiler` names the compilers, which are tried in this order; without it, each function is offered to the compiler
    that its attribute `compiler` names. `exact=true` refuses entries whose integers do not equal those of the ops'
    formulas.
    """

    name: ClassVar[str] = "merge-composite"
    invalidates = ()
    why = "makes each subgraph that a compiler's pattern matches one op"
    compiler: Names = ()
    exact: bool | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compilers = Compilers(op, self.name, self.exact)
        records.restore(op)
        for function in functions(op):
            offers = compilers.of(targets(self.compiler, function, self.name))
            ask(function, [offer.compiler.name for offer in offers])
            for block in list(blocks(function)):
                for offer in offers:
                    merge(block, find(block, offer), offer.compiler.name)
