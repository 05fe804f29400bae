"""What a pipeline would run, and why, told without a module."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.passes import ModulePass

from relay.passes.context import PassContext
from relay.passes.info import DescribedPass, PassGroup, PassInfo, info_of, why_of
from relay.passes.requirements import Requirements


@dataclass(frozen=True)
class Planned:
    """One pass that would run, or would not."""

    step: ModulePass
    runs: bool
    why: str

    @property
    def name(self) -> str:
        """The pass's canonical name."""
        return self.step.name


def plan(pipeline: PassGroup, ctx: PassContext) -> list[Planned]:
    """The passes of a pipeline under a context, in order, with what they require."""
    return Planner(pipeline, ctx).planned


class Planner:
    """Walks the items as the runner does, but runs nothing."""

    def __init__(self, pipeline: PassGroup, ctx: PassContext):
        self.ctx = ctx
        self.planned: list[Planned] = []
        self.requirements = Requirements(ctx, _cannot_look)
        self.requirements.satisfy(pipeline.info, self.required)
        for item in pipeline.members:
            self.item(item)

    def item(self, item: ModulePass | PassGroup) -> None:
        """Plan a pass or a nested pipeline."""
        if isinstance(item, ModulePass):
            info = info_of(item)
            reason = self._refusal(info)
            if reason:
                self.planned.append(Planned(item, False, reason))
                return
            self.requirements.satisfy(info, self.required)
            forced = info.name in self.ctx.required_pass and info.opt_level > self.ctx.opt_level
            self.add(item, "in required_pass" if forced else why_of(item))
            return
        reason = self._refusal(item.info)
        if reason:
            self.planned.extend(Planned(step, False, f"group {item.name}: {reason}") for step in item)
            return
        self.requirements.satisfy(item.info, self.required)
        for inner in item.members:
            self.item(inner)

    def _refusal(self, info: PassInfo) -> str:
        if self.ctx.enabled(info):
            return ""
        return "disabled" if info.name in self.ctx.disabled_pass else f"from opt_level {info.opt_level}"

    def required(self, step: ModulePass, needed_by: str) -> None:
        """Plan a pass that another needs."""
        self.add(step, f"required by {needed_by}, unless the module is so already")

    def add(self, step: ModulePass, why: str) -> None:
        """Note a pass that runs."""
        self.planned.append(Planned(step, True, why))
        self.requirements.ran(info_of(step))


def _cannot_look(cls: type[DescribedPass]) -> bool:
    return False
