"""Records of a pipeline run: every pass with its time, and the module after each pass that changed it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay.compile.pipeline import default_pipeline, optimize
from relay.errors import RelayError
from relay.module import IRModule
from relay.passes import PassContext, PassInfo, PassInstrument, Pipeline
from relay.passes.checking import VerifyEach
from relay.passes.info import as_module, info_of
from relay.passes.timing import PassTimingInstrument
from relay.target import resolve, spelled
from relay.transforms.attach_target import AttachTarget
from relay.universe import shown_in_notebook
from relay.viewer.snapshot import Snapshot, take

EVERY = 4
"""An optimization level at which every pass of a pipeline runs."""

Status = Literal["ran", "skipped", "failed"]


@dataclass(frozen=True)
class Step:
    """A pass that ran or was skipped: one of the pipeline, or one that another pass required."""

    name: str
    text: str
    """The pass as written in a pipeline, with options."""
    status: Status
    place: int | None
    """The index of the pass in the pipeline; None if another pass required it."""
    why: str = ""
    """Why a pass was skipped, or ran without being in the pipeline; the error of a failed pass; else ""."""
    seconds: float = 0.0
    before: int = 0
    after: int = 0
    """The indices, among the record's snapshots, of the module before and after the pass; equal if it changed
    nothing."""


@dataclass
class Record:
    """The history of a pipeline run on a module: its passes and the modules between them."""

    name: str
    pipeline: str
    target: str
    opt_level: int | None
    verify: bool
    steps: list[Step] = field(default_factory=list[Step])
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    """The module before the first pass, then after each pass that changed it."""
    heat: Mapping[str, float] = field(default_factory=dict[str, float])
    """The shares of a run's time by name of kernel or operator, from `Profile.heat`."""
    error: str = ""
    """Why the run ended early; "" if it did not."""

    @property
    def seconds(self) -> float:
        """The seconds of all passes together."""
        return sum(step.seconds for step in self.steps)

    def _repr_html_(self) -> str:
        return shown_in_notebook(self)


Explain = Callable[[BaseException, str], str]
"""A function that describes an error; its second argument is what was being done: "" or `pass NAME`."""


def explained(error: BaseException, doing: str) -> str:
    """The text of an error; for exceptions other than RelayError, it begins with `doing` (such as `pass NAME`) and the
    name of the exception's class."""
    if isinstance(error, RelayError):
        return str(error)
    return f"{f'{doing}: ' if doing else ''}{type(error).__name__}: {error}"


class Speller:
    """Converts passes to text as in a pipeline. The pass `attach-target` is written without its target if that is
    `target`, the one for which the recorded module is built."""

    def __init__(self, target: str):
        self.default = AttachTarget(spelled(resolve(target)))

    def __call__(self, step: ModulePass) -> str:
        return str(AttachTarget() if step == self.default else step)


def default_text(target: str, opt_level: int | None) -> str:
    """The text of the pipeline that `build` runs for a target and level."""
    return ",".join(map(Speller(target), default_pipeline(target, opt_level)))


class Stopped(RelayError):
    """Raised when the user stops a run between two passes."""


class Recorder(PassInstrument):
    """An instrument that takes a snapshot after each pass. It precedes a `PassTimingInstrument` in the list of
    instruments, so that snapshots do not count as time of passes."""

    def __init__(self, record: Record, pipeline: Sequence[ModulePass], spell: Callable[[ModulePass], str]):
        self.record = record
        self.pipeline = list(pipeline)
        self.spell = spell
        self.timing = PassTimingInstrument()
        self.doing = ""
        """The name of the pass that is running."""
        self.stop = threading.Event()
        self._next = 0
        self._open: list[PassInfo] = []
        self._entry = self.timing.root

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self._outermost(info):
            if self.stop.is_set():
                raise Stopped(f"before {info.name}", "stopped")
            self.doing = info.name
            if not self.record.snapshots:
                self.record.snapshots.append(take(mod))
        self._open.append(info)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._open.pop()
        if self._outermost(info):
            self._step(mod, info, "ran")

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        self._open.pop()
        if self._outermost(info):
            self._step(mod, info, "failed")

    def _outermost(self, info: PassInfo) -> bool:
        """Whether `info` belongs to a module pass that does not run inside another one."""
        return isinstance(info.step, ModulePass) and not any(isinstance(i.step, ModulePass) for i in self._open)

    def _step(self, mod: IRModule, info: PassInfo, status: Status) -> None:
        assert isinstance(info.step, ModulePass)
        before = len(self.record.snapshots) - 1
        try:
            snapshot = take(mod)
        except Exception:
            if status == "ran":
                raise
        else:
            if snapshot.text != self.record.snapshots[-1].text:
                self.record.snapshots.append(snapshot)
        place = next((n for n in range(self._next, len(self.pipeline)) if self.pipeline[n] is info.step), None)
        if place is not None:
            self._next = place + 1
        self.record.steps.append(
            Step(
                name=info.name,
                text=self.spell(info.step),
                status=status,
                place=place,
                why="" if place is not None else "another pass needs it",
                seconds=self._seconds(),
                before=before,
                after=len(self.record.snapshots) - 1,
            )
        )

    def _seconds(self) -> float:
        """The seconds of the pass that has just ended; 0 if it failed before its time was taken."""
        entry = self.timing.root
        for _ in range(len(self._open) + 1):
            entry = entry.inner[-1] if entry.inner else self._entry
        if entry is self._entry:
            return 0.0
        self._entry = entry
        return entry.total


class Recording:
    """A pipeline run to be recorded. `run` is called once, in any thread; `recorder.stop` ends it before the next pass.

    `pipeline` is a pipeline or its text (by default the one that `build` runs for the target and level). Without
    `opt_level` every pass of the pipeline runs. `verify` verifies the module after each pass. Raises RelayError for a
    bad pipeline.
    """

    def __init__(
        self,
        mod: IRModule,
        pipeline: Pipeline | str | None = None,
        *,
        target: str = "llvm",
        opt_level: int | None = None,
        verify: bool = False,
        name: str = "module",
        explain: Explain = explained,
        heat: Mapping[str, float] | None = None,
    ):
        self.mod, self.explain = mod, explain
        spell = Speller(target)
        chosen = default_pipeline(target, opt_level) if pipeline is None else pipeline
        self.pipeline = Pipeline.parse(chosen) if isinstance(chosen, str) else chosen
        self.record = Record(name, ",".join(map(spell, self.pipeline)), target, opt_level, verify, heat=heat or {})
        self.recorder = Recorder(self.record, self.pipeline.passes, spell)
        checks = [VerifyEach()] if verify else []
        instruments = [self.recorder, *checks, self.recorder.timing]
        self.context = PassContext(EVERY if opt_level is None else opt_level, instruments=instruments)

    def run(self) -> Record:
        """Run the pipeline and return its record. An error of a pass ends the run and is part of the record."""
        record = self.record
        try:
            with self.context:
                optimize(self.mod, record.target, pipeline=self.pipeline)
        except Exception as error:
            last = record.steps[-1] if record.steps else None
            if last is None or last.status != "failed":
                record.error = self.explain(error, "")
            else:
                record.error = self.explain(error, f"pass {last.name}")
                record.steps[-1] = replace(last, why=record.error)
        if not record.snapshots:
            record.snapshots.append(take(self.mod))
        record.steps = list(self._with_skipped(record.steps))
        return record

    def _with_skipped(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Yield the steps, with the pipeline's passes that did not run inserted at their positions."""
        place, snapshot = 0, 0
        for step in steps:
            if step.place is not None:
                yield from (self._skipped(n, step.before) for n in range(place, step.place))
                place = step.place + 1
            yield step
            snapshot = step.after
        yield from (self._skipped(n, snapshot) for n in range(place, len(self.recorder.pipeline)))

    def _skipped(self, place: int, snapshot: int) -> Step:
        step = self.recorder.pipeline[place]
        info = info_of(step)
        why = "the run ended before" if self.context.enabled(info) else f"runs from opt_level {info.opt_level}"
        text = self.recorder.spell(step)
        return Step(info.name, text, "skipped", place, why, before=snapshot, after=snapshot)


def record(
    mod: IRModule | ModuleOp,
    pipeline: Pipeline | str | None = None,
    *,
    target: str = "llvm",
    opt_level: int | None = None,
    verify: bool = False,
    name: str = "module",
    heat: Mapping[str, float] | None = None,
) -> Record:
    """Run a pipeline on a copy of a module, and return a record of what every pass did; the arguments are those of
    `Recording`. A notebook shows the record as a page. `heat` is `executable.profile().heat`, and colours the graph by
    run time.

    Raises RelayError for a bad pipeline; an error of a pass is part of the record.
    """
    recording = Recording(
        as_module(mod), pipeline, target=target, opt_level=opt_level, verify=verify, name=name, heat=heat
    )
    return recording.run()
