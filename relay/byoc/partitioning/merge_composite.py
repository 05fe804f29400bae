"""The pass `merge-composite`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation

from relay.byoc.compiler import Compiler, Refusal
from relay.byoc.partitioning import bodies
from relay.byoc.partitioning.refusals import ask, refuse
from relay.byoc.partitioning.scope import Compilers, Names, blocks, eligible, functions, targets, used
from relay.byoc.patterns import Entry, Match
from relay.byoc.patterns.names import short
from relay.dialects import byoc
from relay.passes import Pass


@dataclass(frozen=True)
class MergeComposite(Pass):
    """Make each subgraph that an external compiler's pattern table matches one op.

    `%y = qnn.requantize (nn.bias_add (qnn.conv2d %x, constant), constant)` becomes
    `%y = byoc.composite "x.conv2d" from "qnn.conv2d_nn.bias_add_qnn.requantize_"(%x)`. Entries are tried in the order
    of the table, each on the whole function before the next, from the results backwards; of several compilers the
    first comes first. Constants that the pattern asked for are copied inside. A match is refused where something
    outside needs what is inside, or where the entry's check says so; the op then keeps the reason.

    `compiler` names the compilers; without it, each function is offered to the one that its attribute `compiler`
    names. `numerics=strict` refuses entries whose integers are not those of the ops' formulas.
    """

    name: ClassVar[str] = "merge-composite"
    invalidates = ()
    why = "shows each external compiler the subgraphs it takes as one"
    compiler: Names = ()
    numerics: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compilers = Compilers(op, self.name, self.numerics)
        for function in functions(op):
            for compiler in compilers.of(targets(self.compiler, function, self.name)):
                ask(op, [compiler.name])
                for block in list(blocks(function)):
                    Matcher(block, compiler).run()


class Matcher:
    """Finds what one compiler's entries match in a block."""

    def __init__(self, block: Block, compiler: Compiler):
        self.compiler, self.entries = compiler, compiler.patterns()
        self.block = block
        self.order = {op: i for i, op in enumerate(block.ops)}
        self.refused: dict[Operation, str] = {}

    def run(self) -> None:
        for entry in self.entries:
            self.entry(entry)
        for op, reason in self.refused.items():
            if op.parent is self.block:
                refuse(op, self.compiler.name, reason)

    def entry(self, entry: Entry) -> None:
        """Make composites of all that an entry matches."""
        for op in reversed(list(self.block.ops)):
            if op.parent is not self.block or isinstance(op, byoc.Body) or not eligible(op) or not used(op):
                continue
            found = entry.match(op, self.order)
            if isinstance(found, Match):
                self.merge(entry, found)
            elif isinstance(found, Refusal):
                self.refused.setdefault(op, found.reason)

    def merge(self, entry: Entry, match: Match) -> None:
        """The match becomes one op, where its last op is."""
        following = match.root.next_op
        assert following is not None
        properties = {
            "composite": StringAttr(f"{self.compiler.name}.{entry.name}"),
            "partitioned_from_pattern": StringAttr(names_of(match.ops)),
        }
        made = bodies.composite(match.ops, match.constants, properties)
        self.block.insert_op_before(made, following)
        self.order[made] = self.order[match.root]
        for op in match.ops:
            del self.order[op]
        for constant in match.constants:
            if not used(constant) and constant.parent is not None:
                constant.detach()
                constant.erase()


def names_of(ops: Sequence[Operation]) -> str:
    """The ops' names, each followed by "_"."""
    return "".join(f"{short(op.name)}_" for op in ops)
