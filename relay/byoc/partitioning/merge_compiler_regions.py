"""The pass `merge-compiler-regions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.byoc import registry
from relay.byoc.compiler import Refusal
from relay.byoc.guard import asked
from relay.byoc.guard import parts as parts_of
from relay.byoc.partitioning.grouping import Grouping
from relay.byoc.partitioning.offers import Compilers
from relay.byoc.partitioning.refusals import refuse
from relay.byoc.partitioning.scope import blocks, functions
from relay.passes import Pass


@dataclass(frozen=True)
class MergeCompilerRegions(Pass):
    """Make `byoc.region`s of what is annotated, as large as they can be.

    Two regions of one compiler become one where one uses a result of the other, unless a way leads from the one to
    the other through something else (an op of the host, a region): the merged region would then wait for itself.
    Regions are maximal in this sense: no two of one compiler that an edge connects can be merged. Edges are taken in
    program order, again and again until none is left, so the result is the same on every machine and in every run.
    Constants are copied into the regions that use them. Regions stay within their block of control flow. A compiler is
    shown each region whole, and may refuse it, leave ops out of it, or split it (`Compiler.regions`).
    """

    name: ClassVar[str] = "merge-compiler-regions"
    invalidates = ()
    why = "merges the regions of external compilers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compilers = Compilers(op, self.name)
        for function in functions(op):
            for block in list(blocks(function)):
                grouping = Grouping(block)
                grouping.merge(grouping.edges)
                parts = {each: 0 for each in grouping.labels}
                shown: set[frozenset[Operation]] = set()
                while cut(grouping, compilers, parts, shown):
                    grouping = Grouping(block, parts)
                    grouping.merge(grouping.edges)
                grouping.emit()


def cut(
    grouping: Grouping, compilers: Compilers, parts: dict[Operation, int], shown: set[frozenset[Operation]]
) -> bool:
    """Show each region that was not shown yet to its compiler; whether one is to be cut, as `parts` then says."""
    changed = False
    for ops in grouping.regions():
        name = grouping.labels[ops[0]].data
        if frozenset(ops) in shown or name not in registry.names():
            continue
        with asked(name, "regions"):
            answer = parts_of(name, ops, compilers.of([name])[0].compiler.regions(ops))
        found = [] if isinstance(answer, Refusal) else answer
        shown.update(map(frozenset, (ops, *found)))
        if len(found) == 1 and len(found[0]) == len(ops):
            continue
        changed = True
        why = answer.reason if isinstance(answer, Refusal) else "its compiler leaves it out of the region"
        for op in ops:
            del parts[op]
        for part in found:
            number = 1 + max(parts.values(), default=0)
            parts.update(dict.fromkeys(part, number))
        for op in ops:
            if op not in parts:
                refuse(op, name, why)
    return changed
