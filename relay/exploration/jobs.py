"""Alternatives tried here, in turn, or elsewhere: as jobs that any `concurrent.futures.Executor` can send."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from time import perf_counter

from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.exploration.choices import Choice
from relay.exploration.measuring import Inputs, Measure, results_of, value_of
from relay.exploration.trials import Value
from relay.module import IRModule
from relay.runtime import Executable

GROUP = 16
"""How many executables are held at once where alternatives are tried in turn."""


@dataclass(frozen=True)
class Task:
    """What is done with every alternative. Pickles if the measure does."""

    measure: Measure
    rounds: int
    inputs: Inputs | None
    results: bool
    """Whether the results of a run are wanted."""


@dataclass
class Outcome:
    """What came of one."""

    values: list[Value] = field(default_factory=list[Value])
    seconds: float = 0.0
    error: str | None = None
    results: list[Array] | None = None


@dataclass(frozen=True)
class Job:
    """One alternative, and all that a process elsewhere needs for it."""

    text: str
    """The module, weights in full."""
    choice: Choice
    task: Task


def said(error: BaseException) -> str:
    """An error as a line of the record."""
    return str(error) if isinstance(error, RelayError) else f"{type(error).__name__}: {error}".rstrip(": ")


def work(job: Job) -> Outcome:
    """Do a job, in whatever process this is. Whatever an alternative raises is its outcome."""
    outcome = Outcome()
    start = perf_counter()
    try:
        executable = job.choice.build(IRModule.parse(job.text))
        if job.task.results:
            outcome.results = results_of(executable, job.task.inputs)
        outcome.values = [value_of(job.task.measure, executable) for _ in range(job.task.rounds)]
    except Exception as error:
        outcome.error = said(error)
    outcome.seconds = perf_counter() - start
    return outcome


def work_pickled(data: bytes) -> Outcome:
    """Do a job that this process got as bytes."""
    job: object = pickle.loads(data)
    assert isinstance(job, Job)
    return work(job)


def submit(executor: Executor, job: Job) -> Future[Outcome]:
    """Hand the job over. For a pool of processes it is pickled here: a pool that meets what it cannot pickle may
    hang. Raises RelayError where that fails; executors that pickle more than Python does get the job as it is."""
    if not isinstance(executor, ProcessPoolExecutor):
        return executor.submit(work, job)
    try:
        data = pickle.dumps(job)
    except Exception as error:
        hint = "passes and measures that are sent must be of an importable module"
        raise RelayError("executor", f"the choice cannot be pickled: {error}", hint) from error
    return executor.submit(work_pickled, data)


def elsewhere(
    executor: Executor, mod: IRModule, choices: Sequence[Choice], task: Task
) -> Iterator[tuple[Choice, Outcome]]:
    """The outcomes as they come. What was not begun is cancelled when the caller stops."""
    text = mod.to_text(weights=True, locations=True)
    futures: dict[Future[Outcome], Choice] = {}
    try:
        for choice in choices:
            try:
                futures[submit(executor, Job(text, choice, task))] = choice
            except Exception as error:
                yield choice, Outcome(error=said(error))
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except (Exception, CancelledError) as error:
                yield futures[future], Outcome(error=f"the executor failed: {said(error)}")
    finally:
        for future in futures:
            future.cancel()


def here(mod: IRModule, choices: Sequence[Choice], task: Task) -> Iterator[tuple[Choice, Outcome]]:
    """Build a group, then measure it in rounds, each alternative once a round, so that a busy machine slows all."""
    for first in range(0, len(choices), GROUP):
        group = choices[first : first + GROUP]
        outcomes = [Outcome() for _ in group]
        built = [build(mod, choice, task, outcome) for choice, outcome in zip(group, outcomes, strict=True)]
        for _ in range(task.rounds):
            for executable, outcome in zip(built, outcomes, strict=True):
                if executable is not None and outcome.error is None:
                    measure(executable, task.measure, outcome)
        yield from zip(group, outcomes, strict=True)


def build(mod: IRModule, choice: Choice, task: Task, outcome: Outcome) -> Executable | None:
    """The executable, whose results go into the outcome; None, and the error there, if that fails."""
    start = perf_counter()
    try:
        executable = choice.build(mod)
        if task.results:
            outcome.results = results_of(executable, task.inputs)
        return executable
    except Exception as error:
        outcome.error = said(error)
        return None
    finally:
        outcome.seconds += perf_counter() - start


def measure(executable: Executable, by: Measure, outcome: Outcome) -> None:
    """One more measurement."""
    start = perf_counter()
    try:
        outcome.values.append(value_of(by, executable))
    except Exception as error:
        outcome.error = said(error)
    outcome.seconds += perf_counter() - start
