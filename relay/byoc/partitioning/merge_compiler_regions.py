"""The pass `merge-compiler-regions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.byoc.partitioning.grouping import Grouping
from relay.byoc.partitioning.scope import blocks, functions
from relay.passes import Pass


@dataclass(frozen=True)
class MergeCompilerRegions(Pass):
    """Make `byoc.region`s of what is annotated, as large as they can be.

    Two regions of one compiler become one where one uses a result of the other, unless a way leads from the one to
    the other through something else (an op of the host, a region): the merged region would then wait for itself.
    Regions are maximal in this sense: no two of one compiler that an edge connects can be merged. Edges are taken in
    program order, again and again until none is left, so the result is the same on every machine and in every run.
    Constants are copied into the regions that use them. Regions stay within their block of control flow.
    """

    name: ClassVar[str] = "merge-compiler-regions"
    invalidates = ()
    why = "merges the regions of external compilers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for block in list(blocks(function)):
                grouping = Grouping(block)
                grouping.merge(grouping.edges)
                grouping.emit()
