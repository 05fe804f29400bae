"""Build a model in several ways and measure the builds: `explore`, `tune`, `compare`, and the search for the pass that
changes a model's results. This package may import `quantize`, `compile` and the packages below them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from os import PathLike

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, RelayError
from relay.exploration import jobs
from relay.exploration.choices import Choice, Choices, Edit, Written, read
from relay.exploration.measuring import Inputs, Latency, Measure, results_of
from relay.exploration.trials import Log, Trial
from relay.frontend import import_model
from relay.module import IRModule
from relay.passes.info import as_module
from relay.runtime import Executable
from relay.tables import aligned
from relay.target import Target
from relay.transforms.equality import difference
from relay.universe import shown_in_notebook

__all__ = ["Choice", "Choices", "Edit", "Exploration", "Latency", "Trial", "Written", "explore"]

ROUNDS = 9
"""How many times the latency of each alternative is measured; a user's own `measure` is called once unless `rounds` is
given."""


@dataclass(frozen=True)
class Exploration(Mapping[str, Trial]):
    """The result of `explore`: the trial of every alternative by name, in the order of `choices`, and the best
    trial."""

    trials: Mapping[str, Trial]
    best: Trial
    """The trial with the smallest median, or the smallest first number where `measure` returns tuples; the first of
    equal trials."""
    module: IRModule
    choices: Mapping[str, Choice]

    def __getitem__(self, name: str) -> Trial:
        return self.trials[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def build(self, name: str | None = None) -> Executable:
        """Build the executable of the alternative `name` (of the best one by default) again, with the current context's
        instruments."""
        return self.choices[self.best.name if name is None else name].build(self.module)

    @property
    def front(self) -> list[Trial]:
        """The Pareto front: trials such that no other trial is at least as small in every number and smaller in one."""
        measured = [trial for trial in self.trials.values() if trial.medians]
        return [trial for trial in measured if not any(other.dominates(trial) for other in measured)]

    @property
    def ties(self) -> list[Trial]:
        """Trials other than the best one whose measurements overlap with those of the best one (`Trial.ties`)."""
        return [t for t in self.trials.values() if t.medians and t is not self.best and t.ties(self.best)]

    def table(self) -> list[list[str]]:
        """Return a heading row and a row of cells for each trial: a mark (`*` best or on the front, `~` a tie); for
        each measured number its median, the excess over the best trial's, and the range of the middle half; then the
        seconds that the trial took, the choice's name, and its error."""
        front = self.front if len(self.best.medians) > 1 else [self.best]
        ties, heads = self.ties, list[str]()
        for number in range(len(self.best.medians)):
            heads += [f"value {number}" if len(self.best.medians) > 1 else "value", "more", "middle half"]
        rows = [["", *heads, "seconds", "choice", "error"]]
        for trial in self.trials.values():
            cells: list[str] = []
            for value, best, (low, high) in zip(trial.medians, self.best.medians, trial.spread, strict=False):
                more = f"{value / best - 1:+.1%}" if best else ""
                cells += [f"{value:.6g}", more, f"{low:.4g} .. {high:.4g}" if low != high else ""]
            mark = "*" if trial in front else "~" if trial in ties else ""
            cells = cells or ["failed", *[""] * (len(heads) - 1)]
            rows.append([mark, *cells, f"{trial.seconds:.2f} s", trial.name, trial.error or ""])
        return rows

    def _repr_html_(self) -> str:
        return shown_in_notebook(self)

    def to_html(self) -> str:
        """The table (`table`) as a complete HTML page."""
        style = "body{font:14px system-ui,sans-serif;margin:2em}td,th{padding:2px 12px;text-align:left}"
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Exploration</title><style>{style}</style>'
        return f"{head}<h1>Exploration of {len(self)} choices</h1>{self._repr_html_()}</html>"

    def __str__(self) -> str:
        """The rows of `table`, one for each trial, as aligned text without the heading; a row ends with the choice's
        name, followed by the error if the trial failed."""
        rows = [[*row[:-2], f"{row[-2]}: {row[-1]}" if row[-1] else row[-2]] for row in self.table()[1:]]
        return "\n".join(aligned(rows, range(len(rows[0]) - 1)))


def explore(
    mod: IRModule | ModuleOp | str | PathLike[str] | bytes,
    choices: Choices,
    *,
    measure: Measure | None = None,
    executor: Executor | None = None,
    target: str | Target = "llvm",
    inputs: Inputs | None = None,
    rounds: int | None = None,
    check: bool = False,
    tolerance: float = 1e-5,
    log: str | PathLike[str] | None = None,
) -> Exploration:
    """Build a module (or a model file) in every way that `choices` names, measure each build, and return all
    measurements and the best.

    A choice is a pipeline, its text, a function that gets the default pipeline and returns another, or a dict with some
    of `pipeline`, `target`, `opt_level`, `required_pass`, `disabled_pass`, `config`, and keys of the config
    (`"fold-constant.max_bytes": 1024`). What a choice leaves out is taken from the current `PassContext`. If every
    value of `choices` is a list, the values are the axes of a grid: `{"opt_level": [1, 2], "pipeline": [None, edit]}`.

    `measure(executable)` returns a number, of which a smaller one is better, or a tuple of such numbers (for example
    error, latency and bytes; `Exploration.front` then is the Pareto front). It is called `rounds` times, and the median
    counts. By default it measures the latency in seconds on `inputs` (a sequence, or a mapping by name; random arrays
    if none are given). Choices whose measurements overlap are ties (`Exploration.ties`). Without `executor`, everything
    runs in this process, in rounds that interleave up to 16 choices. With an executor (of processes, threads, or a
    cluster: Dask's `client.get_executor()`), each choice is a job of its own; use one worker per machine to measure
    latency. For processes, `measure` must be a function of an importable module, and so must passes that are not
    registered by a name.

    With `check`, the results of each choice for `inputs` are compared with the first choice's: integers must be equal,
    floats within `tolerance` times the largest magnitude; a choice whose results differ counts as failed. A choice that
    fails is recorded with its error. `log` names a JSON file that is written as choices finish and read at the start: a
    choice recorded there is not run again unless it failed, or `check` is set and it was not checked.

    Raises InvalidArgument for an invalid choice and for a log of another module, RelayError if no choice could be
    measured.
    """
    module = as_module(mod) if isinstance(mod, IRModule | ModuleOp) else import_model(mod, {})
    known = {choice.name: choice for choice in read(choices, target)}
    by = Latency(inputs) if measure is None else measure
    count = (ROUNDS if measure is None else 1) if rounds is None else rounds
    if isinstance(count, bool) or count < 1:
        raise InvalidArgument(f"rounds={rounds!r}", "is no number of rounds", "give 1 or more")
    task = jobs.Task(by, count, inputs, check)
    record = Log.at(log, _subject(module, inputs, by)) if log is not None else None
    done = {} if record is None else _finished(record, known, check)
    todo = [choice for choice in known.values() if choice.name not in done]
    wanted = _reference(next(iter(known.values())), module, inputs) if check and todo else None
    outcomes = jobs.here(module, todo, task) if executor is None else jobs.elsewhere(executor, module, todo, task)
    for choice, outcome in outcomes:
        trial = Trial(choice.name, choice.describe(), tuple(outcome.values), outcome.seconds, outcome.error)
        if wanted is not None and outcome.error is None:
            trial = _checked(trial, outcome.results or [], wanted, tolerance)
        done[choice.name] = trial
        if record is not None:
            record.write(done)
    trials = {name: done[name] for name in known}
    return Exploration(trials, _best(trials), module.clone(), known)


def _subject(mod: IRModule, inputs: Inputs | None, measure: Measure) -> dict[str, str]:
    """What a log's trials are valid for: digests of the module and the inputs, and the name of the measure. The
    module's text contains hashes of large weights instead of their values."""
    by: object = getattr(measure, "__qualname__", type(measure).__qualname__)
    return {"module": _digest(str(mod).encode()), "inputs": _digest_of(inputs), "measure": str(by)}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _digest_of(inputs: Inputs | None) -> str:
    if inputs is None:
        return "random"
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    parts = [f"{key} {array.dtype} {array.shape} {_digest(array.tobytes())}" for key, array in named]
    return _digest("\n".join(parts).encode())


def _finished(log: Log, known: Mapping[str, Choice], check: bool) -> dict[str, Trial]:
    """Return the trials of the log, by name, that need not be run again: those of choices in `known` that did not fail,
    and whose results were checked if `check`; and those of choices that are not in `known`, which the log keeps. Raises
    InvalidArgument if a name in the log belongs to another choice than in `known`."""
    found: dict[str, Trial] = {}
    for name, trial in log.read().items():
        if name in known and trial.options != known[name].describe():
            hint = "give it another name, or remove the log to start anew"
            raise InvalidArgument(f"log {log.path}", f"has another choice named '{name}': {dict(trial.options)}", hint)
        if name not in known or trial.error is None and (trial.checked or not check):
            found[name] = trial
    return found


def _reference(first: Choice, mod: IRModule, inputs: Inputs | None) -> list[Array]:
    """Build and run the first choice, and return its results, with which those of every other choice are compared."""
    try:
        return [np.asarray(result) for result in results_of(first.build(mod), inputs)]
    except RelayError as error:
        where = f"choices['{first.name}']"
        raise RelayError(where, f"is what the others are compared with, and failed: {error}") from error


def _checked(trial: Trial, results: list[Array], wanted: list[Array], tolerance: float) -> Trial:
    different = difference(results, wanted, tolerance)
    if different is not None:
        return trial.failed(f"its results are not those of the first choice: {different}")
    return Trial(trial.name, trial.options, trial.values, trial.seconds, None, True)


def _best(trials: Mapping[str, Trial]) -> Trial:
    measured = [trial for trial in trials.values() if trial.medians]
    if not measured:
        errors = "; ".join(f"{trial.name}: {trial.error}" for trial in trials.values())
        raise RelayError("explore", f"none of {len(trials)} choices could be built and measured", errors)
    if len({len(trial.medians) for trial in measured}) > 1:
        raise InvalidArgument("measure", "returned tuples of other lengths", "return as many numbers for every choice")
    return min(measured, key=lambda trial: trial.medians)
