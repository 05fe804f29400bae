"""The pass `prune-regions`: returns regions to the host that are not worth a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.byoc.partitioning import bodies, records
from relay.byoc.partitioning.offers import Compilers
from relay.byoc.partitioning.refusals import refuse
from relay.byoc.partitioning.scope import blocks, functions, opened
from relay.byoc.partitioning.work import computes
from relay.dialects import byoc
from relay.errors import InvalidArgument
from relay.passes import Pass


@dataclass(frozen=True)
class PruneRegions(Pass):
    """Give back to the host the regions that are not worth a call, and record why.

    The composites of these regions are dissolved. A region is given back if it

    - has fewer than `min_ops` ops, counting the ops inside composites;
    - has no convolution, product, pooling or recurrent layer, unless `compute=false`;
    - has an infinite `Compiler.cost`.

    `targets` names the compilers whose regions are examined; by default all.
    """

    name: ClassVar[str] = "prune-regions"
    invalidates = ()
    why = "returns regions to the host that are too small to be worth a call"
    min_ops: int = 1
    compute: bool = True
    targets: tuple[str, ...] | str = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.min_ops < 0:
            raise InvalidArgument(self.name, "min_ops is not negative")
        records.restore(op)
        compilers = Compilers(op, self.name)
        chosen = (self.targets,) if isinstance(self.targets, str) else self.targets
        for function in functions(op):
            for block in list(blocks(function)):
                for region in [inner for inner in block.ops if isinstance(inner, byoc.RegionOp)]:
                    if chosen and region.compiler.data not in chosen:
                        continue
                    ops = opened([region])
                    reason = self.reason(ops, compilers, region.compiler.data)
                    if reason is not None:
                        for each in ops:
                            refuse(each, region.compiler.data, reason)
                        release(region)

    def reason(self, ops: Sequence[Operation], compilers: Compilers, name: str) -> str | None:
        """The reason why a region of these ops is not worth a call; None if it is."""
        if len(ops) < self.min_ops:
            return f"a region of {len(ops)} ops is smaller than min_ops = {self.min_ops}"
        if self.compute and not any(map(computes, ops)):
            return "a region without convolution, product, pooling or recurrent layer is not worth leaving the host"
        cost = compilers.of([name])[0].cost_of(ops)
        return "its cost says that the region is not worth it" if cost is not None and isinf(cost) else None


def release(region: byoc.RegionOp) -> None:
    """Replace a region by its ops, and its composites by theirs."""
    bodies.inline_all(region.body.block, byoc.CompositeOp)
    bodies.inline(region)
