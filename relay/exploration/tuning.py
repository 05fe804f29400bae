"""`tune`: schedules drawn by chance and measured against the default in another process; records of the faster ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context
from os import PathLike, fspath
from random import Random
from statistics import median
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType

from relay.arguments import positive
from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.compile.records import Record, Records
from relay.errors import InvalidArgument, Unsupported
from relay.exploration.measuring import results_of
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling.decide import Chooser, decide
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import ATTRIBUTE, Given, Value, write
from relay.lowering.scheduling.records import processor_of, signature_of
from relay.lowering.scheduling.strategy import Scheduled, Unit
from relay.lowering.shaped import buffer_of
from relay.module import IRModule
from relay.passes import Pass
from relay.target import CpuTarget, cpu_of, resolve

T = TypeVar("T", bound=Value)
GROUP = 8
"""Schedules that one process measures, in turn with the default."""


class DrawnPicks(Picks):
    """Takes any decision that is possible, half of the time the best."""

    def __init__(self, where: str, given: Given, random: Random):
        super().__init__(where, given)
        self.random = random

    def __call__(self, name: str, possible: Sequence[T], best: T) -> T:
        if name not in self.given and self.random.random() < 0.5:
            best = possible[self.random.randrange(len(possible))]
        return super().__call__(name, possible, best)

    def part(self, where: str, given: Given) -> Picks:
        return DrawnPicks(where, given, self.random)


class DrawnStrategies(Chooser):
    """Takes any strategy that applies."""

    def __init__(self, random: Random):
        self.random = random

    def picks(self, where: str, given: Given) -> Picks:
        return DrawnPicks(where, given, self.random)

    def unit(self, units: Sequence[Unit]) -> Unit:
        return self.random.choice(units)


@dataclass(frozen=True)
class DrawSchedules(Pass):
    """Give every kernel a legal schedule by chance (`seed`), or none, and note what each kernel is."""

    name = "draw-schedules"
    seed: int | None = 0
    sums: bool = True
    """Whether kernels that sum floats have a schedule drawn, too: others add in another order."""
    signatures: dict[str, str] = field(default_factory=dict[str, str], compare=False)
    schedules: dict[str, str] = field(default_factory=dict[str, str], compare=False)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        random, calls = Random(self.seed), CallGraph(op.walk())
        target = cpu_of(op, self.name)
        for function in scheduled(op):
            given, name = GivenConstants(function.body.block, calls.of(function)), function.sym_name.data
            self.signatures[name] = signature_of(function, given)
            if self.seed is not None and (self.sums or not sums_floats(function)):
                write(function, decide(function, given, target, chooser=DrawnStrategies(random)).schedules)
                self.schedules[name] = str(function.attributes[ATTRIBUTE])


def scheduled(module: ModuleOp) -> list[FuncOp]:
    """The functions with operations to schedule."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    return [function for function in functions if any(isinstance(op, Scheduled) for op in function.walk())]


def sums_floats(function: FuncOp) -> bool:
    """Whether an operation reduces to floats."""
    return any(
        isinstance(buffer_of(op.outputs[0]).element_type, AnyFloat)
        and any(kind.data is IteratorType.REDUCTION for kind in op.iterator_types)
        for op in function.walk()
        if isinstance(op, linalg.GenericOp)
    )


@dataclass(frozen=True)
class Kernel:
    """A kernel with one schedule: seconds of a run, one number for each round."""

    signature: str
    schedule: str
    seconds: tuple[float, ...]

    def beats(self, other: Kernel) -> bool:
        """Whether its slowest round is faster than the other's fastest: less than that is a tie."""
        return max(self.seconds) < min(other.seconds)


@dataclass(frozen=True)
class Job:
    """What a process measures: the default, then each of the others, in turn."""

    model: str | bytes
    is_text: bool
    target: str
    draws: tuple[DrawSchedules, ...]
    records: Records | None
    rounds: int
    seconds: float


def measured(job: Job) -> list[dict[str, Kernel]]:
    """The kernels of each build by name, the default's first; none where a build's results are not the default's."""
    model = IRModule.parse(job.model) if job.is_text and isinstance(job.model, str) else job.model
    draws = [DrawSchedules(None), *job.draws]
    executables = [
        build(
            model,
            job.target,
            pipeline=default_pipeline(job.target).insert_before("schedule", draw),
            records=job.records if number else None,
        )
        for number, draw in enumerate(draws)
    ]
    wanted = [array.tobytes() for array in results_of(executables[0], None)]
    equal = [[array.tobytes() for array in results_of(each, None)] == wanted for each in executables]
    times: list[dict[str, list[float]]] = [{} for _ in executables]
    for _ in range(job.rounds):
        for executable, found in zip(executables, times, strict=True):
            once: dict[str, float] = {}
            for call in executable.profile(seconds=job.seconds).calls:
                once[call.kernel] = once.get(call.kernel, 0.0) + call.seconds
            for name, seconds in once.items():
                found.setdefault(name, []).append(seconds)
    return [
        {
            name: Kernel(signature, draw.schedules.get(name, ""), tuple(found[name]))
            for name, signature in draw.signatures.items()
            if same and name in found
        }
        for draw, found, same in zip(draws, times, equal, strict=True)
    ]


def tune(
    model: IRModule | str | PathLike[str] | bytes,
    target: str = "llvm",
    *,
    trials: int = 24,
    rounds: int = 5,
    seconds: float = 0.02,
    seed: int = 0,
    executor: Executor | None = None,
) -> Records:
    """Search for schedules of a model's kernels that are faster on this machine than what `relay.build` chooses.

    Each of `trials` builds gives every kernel a legal schedule drawn by chance (of `seed`). Builds and the default are
    measured in turn, kernel by kernel on one thread, `rounds` times for so many `seconds` each, in a process of their
    own (or by `executor`). A record is kept where the slowest round was faster than the default's fastest, twice: of
    several the fastest, and in a last build with all records. Kernels that sum floats are left as they are, since
    another schedule would add in another order, and no result differs in a bit from the default's.

    `relay.build(model, target, records=found)` uses them, `Records.save` and `load` keep them, `|` joins those of
    several models and machines. Raises InvalidArgument, and Unsupported where a process ends while it measures.
    """
    machine = resolve(target)
    if not isinstance(machine, CpuTarget):
        raise InvalidArgument("tune", f"the target {target} is no CPU", "only kernels of CPUs have records")
    for name, number, least in (("trials", trials, 1), ("rounds", rounds, 2)):
        if positive(number) < least:
            raise InvalidArgument("tune", f"{name} is {number}; it must be at least {least}")
    is_text = isinstance(model, IRModule)
    given = model.to_text(weights=True) if isinstance(model, IRModule) else model
    given = given if isinstance(given, bytes) else fspath(given)
    draws = [DrawSchedules(seed + number, sums=False) for number in range(trials)]
    groups = [tuple(draws[start : start + GROUP]) for start in range(0, trials, GROUP)]
    jobs = [Job(given, is_text, target, group, None, rounds, seconds) for group in groups]
    with ProcessPoolExecutor(1, get_context("spawn")) if executor is None else nullcontext(executor) as pool:
        try:
            records = faster([*pool.map(measured, jobs)], processor_of(machine))
            last = Job(given, is_text, target, (DrawSchedules(None),), records, rounds, seconds)
            default, chosen = pool.submit(measured, last).result()
        except BrokenExecutor as error:
            raise Unsupported("tune", "a process ended while it measured", "look at its messages") from error
    kept = {each.signature for name, each in chosen.items() if each.beats(default[name])}
    return Records(
        {cpu: {key: row for key, row in rows.items() if key in kept} for cpu, rows in records.kernels.items()}
    )


def faster(groups: Sequence[Sequence[Mapping[str, Kernel]]], processor: str) -> Records:
    """Of each kernel the schedule fastest relative to the default measured in turn with it, if it beats that."""
    best: dict[str, Record] = {}
    for default, *others in groups:
        for name, kernel in [item for other in others for item in other.items()]:
            before = default[name]
            if not kernel.schedule or not kernel.beats(before):
                continue
            row = Record(kernel.schedule, median(kernel.seconds), median(before.seconds))
            known = best.get(kernel.signature)
            if known is None or row.seconds / row.default_seconds < known.seconds / known.default_seconds:
                best[kernel.signature] = row
    return Records({processor: best})
