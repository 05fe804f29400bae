"""The pass `annotate-external-compiler`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.byoc.guard import asked
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.offers import Compilers, targets
from relay.byoc.partitioning.scope import functions
from relay.passes import Pipeline
from relay.passes.runner import Runner


@dataclass(frozen=True)
class AnnotateExternalCompiler(AnnotateTarget):
    """Annotate all that external compilers take: their own passes, `merge-composite` and `annotate-target` in one.

    The compilers' `before_annotation` runs first, then for each in turn what its patterns match becomes composites and
    is annotated with the single ops that it takes; the next gets what is left. With `choose=cost` all are asked at
    once. Takes the options of `annotate-target`; `merge-compiler-regions` and `partition-graph` make functions of what
    is annotated.
    """

    name: ClassVar[str] = "annotate-external-compiler"
    aliases = ()
    why = "marks all ops that external compilers take"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compilers = Compilers(op, self.name, self.exact)
        names = dict.fromkeys(name for f in functions(op) for name in targets(self.targets, f, self.name))
        for offer in compilers.of(tuple(names)):
            with asked(offer.compiler.name, "before_annotation"):
                passes = Pipeline(list(offer.compiler.before_annotation())).items
            Runner(op, ctx).run(passes, explicit=True)
        named = (self.targets,) if isinstance(self.targets, str) else tuple(self.targets)
        for turn in [named] if self.choose == "cost" or not named else [(name,) for name in named]:
            MergeComposite(turn, self.exact, self.choose).apply(ctx, op)
            AnnotateTarget(turn, self.exact, self.choose).apply(ctx, op)
