"""The pass `merge-compiler-regions`: forms regions of annotated ops."""

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
    """Merge annotated ops into `byoc.region`s that are as large as possible.

    Two regions of one compiler are merged if one uses a result of the other, unless there is also a path between them
    through something else (an op of the host, another region), because the merged region would then depend on itself.
    Regions are maximal in this sense. Edges are processed in program order until none can be merged, so the result is
    deterministic. Constants are copied into the regions that use them. Regions stay within one block of control flow.
    Each region is presented to its compiler, which may refuse it, leave ops out of it, or split it
    (`Compiler.regions`).
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
    """Ask each region's compiler (`Compiler.regions`) to accept, split, reduce or refuse it. Regions in `shown`, for
    which it has answered before, are skipped. `parts` maps each annotated op to the number of its part, as only ops of
    one part may be merged: the ops of a split region get new numbers, ops that are left out are removed. Returns
    whether any region was split, reduced or refused."""
    changed = False
    for ops in grouping.regions():
        name = grouping.labels[ops[0]].data
        if frozenset(ops) in shown or name not in registry.names():
            continue
        with asked(name, "regions", ops):
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
