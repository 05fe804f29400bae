"""`Pipeline`: passes in order, edited in place, callable as one pass. `Sequential` is the same class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, overload

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay.arguments import every, names, shown, text
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import registry
from relay.passes.context import PassContext
from relay.passes.info import (
    DescribedPass,
    M,
    PassGroup,
    PassInfo,
    as_module,
    check_level,
    check_step,
    info_of,
    names_of,
    why_of,
)
from relay.passes.requirements import Requirements


class Pipeline(PassGroup):
    """Passes in order; `pipeline(mod)` clones the module once and runs in place on the clone.

    Items are passes, texts of passes (`"legalize"`, `"fold-constant{max_bytes=8}"`), or pipelines; a nested one is a
    group with a name and level of its own. Iterating over a pipeline yields all passes, also those in nested groups;
    `len`, indices and slices count passes. A pass is named by its canonical name or an alias; where several match,
    `name#2` is the second. Each editing method returns the pipeline. Raises InvalidArgument for a name that is not in
    the pipeline, or matches several passes.
    """

    def __init__(
        self,
        passes: Sequence[ModulePass | Pipeline | str] = (),
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] = (),
    ):
        if isinstance(passes, str):
            raise InvalidArgument("pipeline", f"is the text {shown(passes)}", "Pipeline.parse reads one")
        self.items: list[ModulePass | Pipeline] = []
        for item in every(passes, "pipeline", "give a list of passes"):
            if isinstance(item, str):
                self.items.extend(registry.parse(item))
            elif isinstance(item, Pipeline):
                self.items.append(item)
            else:
                self.items.append(check_step(item))
        self.name = text(name, "pipeline, name")
        self.opt_level = check_level(opt_level, f"pipeline {name}")
        self.requires = tuple(names(required, "required"))

    @staticmethod
    def of(given: Pipeline | Sequence[ModulePass | Pipeline | str] | str) -> Pipeline:
        """The given pipeline, or the pipeline that a text or a list of passes describes."""
        if isinstance(given, str):
            return Pipeline.parse(given)
        return given if isinstance(given, Pipeline) else Pipeline(given)

    @staticmethod
    def parse(text: str) -> Pipeline:
        """Parse a pipeline in xDSL's syntax: `legalize,fold-constant{max_bytes=1024}`."""
        return Pipeline(registry.parse(text))

    def __str__(self) -> str:
        """The passes in xDSL's syntax, which `parse` and `relay-opt -p` accept. The passes of nested pipelines are
        written as if they were not nested."""
        return ",".join(map(str, self))

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        from relay.universe import shown_in_notebook

        return shown_in_notebook(self)

    @property
    def members(self) -> Sequence[ModulePass | Pipeline]:
        return self.items

    @property
    def passes(self) -> list[ModulePass]:
        """The passes, those of nested groups included."""
        return list(self)

    @property
    def info(self) -> PassInfo:
        """The `PassInfo` that instruments receive about this pipeline when it is nested."""
        return PassInfo(self.name, self.opt_level, self.requires, (), (), self)

    def __iter__(self) -> Iterator[ModulePass]:
        for item in self.items:
            if isinstance(item, Pipeline):
                yield from item
            else:
                yield item

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, where: int | str) -> ModulePass: ...
    @overload
    def __getitem__(self, where: slice) -> Pipeline: ...
    def __getitem__(self, where: int | str | slice) -> ModulePass | Pipeline:
        if isinstance(where, slice):
            return Pipeline(self.passes[where])
        position: object = self.index(where) if isinstance(where, str) else where
        if type(position) is not int or not -len(self) <= position < len(self):
            raise InvalidArgument("pipeline", f"has no position {shown(position)}", f"it has {len(self)} passes")
        return self.passes[position]

    def __contains__(self, step: object) -> bool:
        if isinstance(step, str):
            return any(_matches(item, step) for _, _, item in self._places())
        return any(item == step for item in self)

    def __eq__(self, other: object) -> bool:
        """Whether both pipelines have equal passes with equal options in the same order."""
        return isinstance(other, Pipeline) and self.passes == other.passes

    def __add__(self, other: Pipeline | Sequence[ModulePass | str] | str) -> Pipeline:
        return Pipeline([*self.items, *Pipeline.of(other).items])

    def copy(self) -> Pipeline:
        """A copy that can be edited without changing the original."""
        items = [item.copy() if isinstance(item, Pipeline) else item for item in self.items]
        return Pipeline(items, self.opt_level, self.name, self.requires)

    def index(self, name: str) -> int:
        """The index of the pass with this name, or of the first pass of the group with this name."""
        return self._find(name)[2]

    def insert_before(self, name: str, step: ModulePass | Pipeline | str) -> Self:
        """Run a pass, a pipeline, or the passes of a text before the pass `name`."""
        owner, number, _ = self._find(name)
        owner.items[number:number] = self._steps(step)
        return self

    def insert_after(self, name: str, step: ModulePass | Pipeline | str) -> Self:
        """Run a pass, a pipeline, or a text's passes after the pass named."""
        owner, number, _ = self._find(name)
        owner.items[number + 1 : number + 1] = self._steps(step)
        return self

    run_before = insert_before
    run_after = insert_after

    def append(self, step: ModulePass | Pipeline | str) -> Self:
        """Append a pass, a pipeline, or the passes that a pipeline text such as `a,b{x=1}` names; return this
        pipeline."""
        self.items.extend(self._steps(step))
        return self

    def remove(self, name: str) -> Self:
        """Remove the pass, or the group, with this name."""
        owner, number, _ = self._find(name)
        del owner.items[number]
        return self

    def replace(self, name: str, step: ModulePass | Pipeline | str) -> Self:
        """Replace the named pass, or group of passes, by a pass, a pipeline, or the passes that a text such as
        `"pass-a,pass-b"` names; return this pipeline."""
        owner, number, _ = self._find(name)
        owner.items[number : number + 1] = self._steps(step)
        return self

    def _places(self) -> Iterator[tuple[Pipeline, int, ModulePass | Pipeline]]:
        """Iterate over all items as (pipeline that holds it, index there, item); a group comes before its own items."""
        for number, item in enumerate(self.items):
            yield self, number, item
            if isinstance(item, Pipeline):
                yield from item._places()

    def _find(self, name: str) -> tuple[Pipeline, int, int]:
        """The pipeline and index of the only item with this name, and the number of passes before it."""
        wanted, sharp, ordinal = text(name, "pipeline", "passes are told by their names").partition("#")
        found: list[tuple[Pipeline, int, int]] = []
        position = 0
        for owner, number, item in self._places():
            if _matches(item, wanted):
                found.append((owner, number, position))
            position += isinstance(item, ModulePass)
        if not found:
            have = ", ".join(step.name for step in self) or "no passes"
            canonical = registry.canonical(wanted)
            raise InvalidArgument("pipeline", f"has no pass '{canonical}'", f"it has {have}")
        if sharp:
            if not ordinal.isdecimal() or not 1 <= int(ordinal) <= len(found):
                raise InvalidArgument("pipeline", f"has {len(found)} of '{wanted}', no '{name}'", "count from #1")
            return found[int(ordinal) - 1]
        if len(found) > 1:
            where = ", ".join(str(position) for _, _, position in found)
            raise InvalidArgument(
                "pipeline",
                f"'{name}' matches the passes at positions {where}",
                f"write {name}#1 to {name}#{len(found)}",
            )
        return found[0]

    def plan(self, ctx: PassContext | None = None) -> list[Planned]:
        """The passes that would run under the context (default: the current one), with the reasons, including passes
        that others require. Requests on a module (`IRModule.request_pass`) are not included."""
        return plan(self, ctx or PassContext.current())

    def apply(self, mod: IRModule | ModuleOp, ctx: Context | None = None) -> None:
        """Run the pipeline on the module, in place."""
        from relay.passes.runner import Runner

        Runner(as_module(mod).op, ctx).run(self)

    def __call__(self, mod: M, ctx: PassContext | None = None) -> M:
        """Run on a clone, under `ctx` (default: the current context)."""
        from relay.passes.runner import call

        return call(self, mod, ctx)

    def _steps(self, step: ModulePass | Pipeline | str) -> list[ModulePass | Pipeline]:
        """The items to insert for a pass, a pipeline or a text."""
        if isinstance(step, str):
            return [*registry.parse(step)]
        if not isinstance(step, Pipeline):
            check_step(step)
            return [step]
        inner = [step, *(item for _, _, item in step._places())]
        for group in (self, *(item for _, _, item in self._places() if isinstance(item, Pipeline))):
            if any(item is group for item in inner):
                raise InvalidArgument(f"pipeline {group.name}", "would hold itself", "put a copy() in")
        return [step]


Sequential = Pipeline
"""Another name of the class, after `Sequential` in TVM's Relay."""


def _matches(item: ModulePass | Pipeline, name: str) -> bool:
    return name in (names_of(type(item)) if isinstance(item, ModulePass) else (item.name,))


@dataclass(frozen=True)
class Planned:
    """A pass of a pipeline, whether it would run, and why."""

    step: ModulePass
    runs: bool
    why: str

    @property
    def name(self) -> str:
        """The pass's canonical name."""
        return self.step.name


def plan(pipeline: PassGroup, ctx: PassContext) -> list[Planned]:
    """Each pass of a pipeline, whether it would run under a context, and why, in order, including passes that others
    require."""
    return Planner(pipeline, ctx).planned


class Planner:
    """Walks through the items of a pipeline as the runner does, without running them."""

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
        """Add to the plan a pass that the pass `needed_by` requires."""
        self.add(step, f"required by {needed_by}, unless the module is so already")

    def add(self, step: ModulePass, why: str) -> None:
        """Add to the plan a pass that would run, with the reason `why`."""
        self.planned.append(Planned(step, True, why))
        self.requirements.ran(info_of(step))


def _cannot_look(cls: type[DescribedPass]) -> bool:
    return False
