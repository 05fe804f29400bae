"""The alternatives that `explore` builds. A user may write each as a pipeline, its text, a pass, a function that edits
the pipeline, or a mapping of options; all are converted to `Choice`, which can be compared and sent to other
processes."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from itertools import product
from typing import cast

from xdsl.passes import ModulePass

from relay.arguments import is_mapping, mapping
from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.errors import InvalidArgument, RelayError
from relay.module import IRModule
from relay.passes import PassContext, Pipeline, registry
from relay.passes.build_config import BuildConfig
from relay.passes.context import activated
from relay.runtime import Executable
from relay.target import CpuTarget, GpuTarget, Target, resolve
from relay.transforms.attach_target import AttachTarget

Edit = Callable[[Pipeline], Pipeline]
"""A function that gets the default pipeline of all optimization levels and returns the one to run: `lambda p:
p.remove("simplify")`."""
Written = str | Pipeline | ModulePass | Edit | Mapping[str, object]
"""One way to build a model as `explore` takes it: a pipeline, its text, a pass, a function that edits the pipeline, or
a mapping with some of the keys `KEYS`."""
Choices = Mapping[str, Written | Sequence[object]]
"""Alternatives by name, or the axes of a grid: an option's name to the list of its values."""

KEYS = ("pipeline", "target", "opt_level", "required_pass", "disabled_pass", "config")
"""The keys that an alternative given as a mapping may have, besides keys of a `PassContext`'s config."""


@dataclass(frozen=True)
class Choice:
    """One way to build a model: the arguments of `relay.build`, and the options of the `PassContext` in which it runs.
    `pipeline` is None for the default pipeline."""

    name: str
    target: str | Target
    pipeline: str | Pipeline | None = None
    opt_level: int = 2
    required_pass: tuple[str, ...] = ()
    disabled_pass: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict[str, object])

    def describe(self) -> dict[str, object]:
        """The choice as a JSON object; equal choices give equal objects."""
        found: dict[str, object] = {"opt_level": self.opt_level}
        if self.pipeline is not None:
            found["pipeline"] = str(self.pipeline)
        if isinstance(self.pipeline, Pipeline) and (objects := _objects(self.pipeline)):
            found["objects"] = {name: _digest(value) for name, value in objects.items()}
        if isinstance(self.target, CpuTarget):
            found["target"] = f"{self.target.triple} {self.target.cpu} {self.target.feature_string}"
        elif self.target != "llvm":
            found["target"] = self.target
        for key in ("required_pass", "disabled_pass"):
            if value := getattr(self, key):
                found[key] = list(value)
        if self.config:
            found["config"] = {key: repr(value) for key, value in sorted(self.config.items())}
        return found

    def context(self) -> PassContext:
        """The `PassContext` in which the choice is built, with the instruments of the current context."""
        made = PassContext(self.opt_level, self.required_pass, self.disabled_pass, config=self.config)
        return made.with_instruments(PassContext.current().instruments)

    def build(self, mod: IRModule) -> Executable:
        """Build the module as this choice says. Raises RelayError."""
        with activated(self.context()):
            return build(mod, self.target, pipeline=self.pipeline)


def read(choices: Mapping[str, object], target: str | Target) -> list[Choice]:
    """Read the argument `choices` of `explore`: a mapping of names to alternatives or, if every value is a list, of
    option names to the values of a grid.

    Raises InvalidArgument, which names the alternative, for an invalid one.
    """
    if not mapping(choices, "choices", "{'default': {}}"):
        raise InvalidArgument("choices", "is empty", "name at least one: {'default': {}}")
    return [_choice(name, written, target) for name, written in _named(choices)]


def _named(choices: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    lists = [key for key, value in choices.items() if isinstance(value, list | tuple)]
    if not lists:
        yield from choices.items()
        return
    if len(lists) < len(choices):
        other = next(key for key in choices if key not in lists)
        hint = "give every key of a grid a list; a list of passes is Pipeline([...])"
        raise InvalidArgument("choices", f"'{lists[0]}' is a list of values of a grid, '{other}' is not", hint)
    axes = cast(Mapping[str, Sequence[object]], choices)
    for key, values in axes.items():
        if not values:
            raise InvalidArgument(f"choices['{key}']", "is a list without values")
    for point in product(*axes.values()):
        options = dict(zip(axes, point, strict=True))
        yield ", ".join(f"{key}={_short(value)}" for key, value in options.items()), options


def _short(value: object) -> str:
    """A short text of an option's value, used in the name of a grid's point."""
    match value:
        case CpuTarget() | GpuTarget():
            return f"{value.cpu}[{len(value.features)}]"
        case Pipeline():
            return f"'{value}'"
        case _:
            name: object = getattr(value, "__name__", None)
            return name if isinstance(name, str) else repr(value)


def _choice(name: str, written: object, target: str | Target) -> Choice:
    where = f"choices['{name}']"
    try:
        given = written if is_mapping(written) else {"pipeline": written}
        for key in given:
            if key not in KEYS and "." not in key:
                raise InvalidArgument(where, f"has the unknown key '{key}'", f"known are {', '.join(KEYS)} and configs")
        base = PassContext.current()
        chosen = _target(given.get("target", target), where)
        config: dict[str, object] = {**base.config, **_mapping(given.get("config", {}), where)}
        config |= {key: value for key, value in given.items() if key not in KEYS}
        ctx = PassContext(
            cast(int, given.get("opt_level", base.opt_level)),
            [*base.required_pass, *_names(given, "required_pass", where)],
            [*base.disabled_pass, *_names(given, "disabled_pass", where)],
            config=config,
        )
        pipeline = _pipeline(given.get("pipeline"), chosen, where)
    except RelayError as error:
        if error.where.startswith(where):
            raise
        raise InvalidArgument(f"{where}: {error.where}", error.what, error.hint) from error
    required, disabled = tuple(ctx.required_pass), tuple(ctx.disabled_pass)
    return Choice(name, chosen, pipeline, ctx.opt_level, required, disabled, ctx.config)


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(where, f"its config is {value!r}", "write {'fold-constant.max_bytes': 1024}")
    return cast(Mapping[str, object], value)


def _names(given: Mapping[str, object], key: str, where: str) -> list[str]:
    value = given.get(key, ())
    if not isinstance(value, list | tuple):
        raise InvalidArgument(where, f"its {key} is {value!r}", f"write {key}=['cse']")
    return [str(name) for name in cast(Sequence[object], value)]


def _target(value: object, where: str) -> str | Target:
    if not isinstance(value, str | Target):
        raise InvalidArgument(where, f"its target is {value!r}", 'write "llvm", or a CpuTarget')
    resolve(value)
    return value


def _pipeline(written: object, target: str | Target, where: str) -> str | Pipeline | None:
    """Return the pipeline that a choice gives as a pipeline, text, a pass, or a function which edits the default one.
    The result is text if every pass can be parsed from it, so that it can be sent to other processes, else a Pipeline;
    None for the default pipeline."""
    match written:
        case None if isinstance(PassContext.current(), BuildConfig):
            pipeline = _default(target)
        case None:
            return None
        case str():
            return str(Pipeline.parse(written))
        case Pipeline():
            pipeline = written
        case ModulePass():
            pipeline = Pipeline([written])
        case _ if callable(written):
            edited: object = written(_default(target))
            if not isinstance(edited, Pipeline):
                raise InvalidArgument(where, f"returned {edited!r}", "return the pipeline that is to run")
            pipeline = edited
        case _:
            raise InvalidArgument(
                where, f"{written!r} is no choice", "give a Pipeline, its text, a function of it, or a dict of options"
            )
    return _sendable(pipeline)


def _default(target: str | Target) -> Pipeline:
    """The default pipeline with the passes of every optimization level; passes above a choice's level are skipped when
    it runs. The pipeline is edited as in the current context if that is a `BuildConfig`. Its `attach-target` pass names
    no target: `build` fills it in, on the machine where it runs."""
    every = copy(PassContext.current())
    every.opt_level, every.required_pass, every.disabled_pass = 4, [], []
    with activated(every):
        steps = list(default_pipeline(target))
        return Pipeline([AttachTarget() if isinstance(step, AttachTarget) else step for step in steps])


def _sendable(pipeline: Pipeline) -> str | Pipeline:
    """Return the pipeline as text if the text gives an equal pipeline in every process; else return it unchanged."""
    made, grouped = registry.MADE.values(), any(isinstance(item, Pipeline) for item in pipeline.items)
    if grouped or any(type(step) in made for step in pipeline):
        return pipeline
    if _objects(pipeline):
        return pipeline
    try:
        text = str(pipeline)
        return text if Pipeline.parse(text) == pipeline else pipeline
    except RelayError:
        return pipeline


def _objects(pipeline: Pipeline) -> dict[str, object]:
    """The values of those pass options that do not appear in a pipeline's text and are ignored when two passes are
    compared, such as the samples of `quantize.calibration`; by `pass.option`. Options at their default are left out."""
    return {
        f"{step.name}.{each.name}": value
        for step in pipeline
        for each in fields(step)
        if not each.compare and (value := getattr(step, each.name)) is not each.default
    }


def _digest(value: object) -> str:
    """A hash that identifies an object in a log; the name of its type if Python cannot pickle it."""
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()[:16]
    except Exception:
        return type(value).__name__
