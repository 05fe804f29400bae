"""Build and measure alternatives: in this process, interleaved, or as jobs for any `concurrent.futures.Executor`."""

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
"""How many executables are kept at once when alternatives are measured in this process."""


@dataclass(frozen=True)
class Task:
    """How each alternative, one way to build a model, is measured: `measure` is called `rounds` times on its
    executable. A task can be pickled if its `measure` can."""

    measure: Measure
    rounds: int
    inputs: Inputs | None
    results: bool
    """Whether the results of one run are recorded, to be compared."""


@dataclass
class Outcome:
    """The measured values of one alternative, the seconds it took, its error, and its results if the task wants
    them."""

    values: list[Value] = field(default_factory=list[Value])
    seconds: float = 0.0
    error: str | None = None
    results: list[Array] | None = None


@dataclass(frozen=True)
class Job:
    """A way to build a model, with everything that another process needs to build it and to measure the result."""

    text: str
    """The module's text, with all weights written in full."""
    choice: Choice
    task: Task


def error_text(error: BaseException) -> str:
    """The text of an error as it is recorded; the class's name is added to errors that are no RelayError."""
    return str(error) if isinstance(error, RelayError) else f"{type(error).__name__}: {error}".rstrip(": ")


def work(job: Job) -> Outcome:
    """Build and measure a job's alternative in the current process. Every exception becomes the outcome's error."""
    try:
        module = IRModule.parse(job.text)
    except Exception as error:
        return Outcome(error=error_text(error))
    ((_, outcome),) = here(module, [job.choice], job.task)
    return outcome


def work_pickled(data: bytes) -> Outcome:
    """Do a job (`work`) that is given as pickled bytes."""
    job: object = pickle.loads(data)
    assert isinstance(job, Job)
    return work(job)


def submit(executor: Executor, job: Job) -> Future[Outcome]:
    """Submit the job to the executor. For a process pool it is pickled here first, since such a pool may hang on what
    it cannot pickle: RelayError is raised instead. Other executors get the job as an object, as they may pickle more
    than Python can."""
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
    """Run every choice as a job of `executor`, and yield outcomes as they finish. Jobs that have not begun are
    cancelled when the caller stops iterating."""
    text = mod.to_text(weights=True, locations=True)
    futures: dict[Future[Outcome], Choice] = {}
    try:
        for choice in choices:
            try:
                futures[submit(executor, Job(text, choice, task))] = choice
            except Exception as error:
                yield choice, Outcome(error=error_text(error))
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except (Exception, CancelledError) as error:
                yield futures[future], Outcome(error=f"the executor failed: {error_text(error)}")
    finally:
        for future in futures:
            future.cancel()


def here(mod: IRModule, choices: Sequence[Choice], task: Task) -> Iterator[tuple[Choice, Outcome]]:
    """Build and measure the choices in this process, `GROUP` at a time: build the group, then measure each of its
    executables once per round, so that other load on the machine slows all of them alike. Yields each choice with its
    outcome when its group is finished."""
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
    """Build the module as `choice` says, and record the executable's results if the task wants them. Returns None, with
    the error in `outcome`, if that fails."""
    start = perf_counter()
    try:
        executable = choice.build(mod)
        if task.results:
            outcome.results = results_of(executable, task.inputs)
        return executable
    except Exception as error:
        outcome.error = error_text(error)
        return None
    finally:
        outcome.seconds += perf_counter() - start


def measure(executable: Executable, by: Measure, outcome: Outcome) -> None:
    """Measure the executable once more, and add the value or the error to `outcome`."""
    start = perf_counter()
    try:
        outcome.values.append(value_of(by, executable))
    except Exception as error:
        outcome.error = error_text(error)
    outcome.seconds += perf_counter() - start
