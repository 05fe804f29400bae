"""The pass `annotate-external-compiler`: chooses the ops of external compilers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.byoc.guard import asked
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.offers import Compilers, targets
from relay.byoc.partitioning.planning import plan
from relay.byoc.partitioning.scope import functions
from relay.errors import InvalidArgument
from relay.passes import Pipeline
from relay.passes.runner import Runner
from relay.universe import prices


@dataclass(frozen=True)
class AnnotateExternalCompiler(AnnotateTarget):
    """Choose and annotate the ops for external compilers, merging composites first.

    Each compiler's own passes (`before_annotation`) run first. Then, for each compiler in turn, `merge-composite` makes
    composites of the matches of its patterns, and `annotate-target` annotates these and the single ops that it takes;
    the next compiler is offered the remaining ops. `targets` and `exact` are those of `annotate-target`.
    `merge-compiler-regions` and `partition-graph` turn annotated ops into functions.

    With `choose=cost` compilers and host compete by total cost: the regions of the cheapest plan are formed at once,
    and the module's attribute `byoc.plan` has the costs of this plan, of the host alone and of each compiler alone.
    Costs are times in microseconds: of a region, what `Compiler.cost` returns; of an op on the host, an estimate from
    its schedule. A region of unknown cost stays on the host. `choose=measured` instead builds and runs each region,
    with its compiler and on the host, and caches the times for later builds.
    """

    name: ClassVar[str] = "annotate-external-compiler"
    aliases = ()
    why = "marks all ops that external compilers take"
    choose: str = "order"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.choose not in ("order", "cost", "measured"):
            raise InvalidArgument(self.name, f"choose is '{self.choose}'", "it is 'order', 'cost' or 'measured'")
        compilers = Compilers(op, self.name, self.exact)
        names = tuple(dict.fromkeys(name for f in functions(op) for name in targets(self.targets, f, self.name)))
        for offer in compilers.of(names):
            with asked(offer.compiler.name, "before_annotation"):
                passes = Pipeline(list(offer.compiler.before_annotation())).items
            Runner(op, ctx).run(passes, explicit=True)

        def annotate(module: ModuleOp, given: Sequence[str]) -> None:
            for turn in [(name,) for name in given] if self.targets else [()]:
                MergeComposite(turn, self.exact).apply(ctx, module)
                AnnotateTarget(turn, self.exact).apply(ctx, module)
            if self.choose != "order":
                MergeCompilerRegions().apply(ctx, module)

        if self.choose == "order" or not names:
            annotate(op, names)
        else:
            plan(op, names, compilers, prices(self.choose), annotate)
