"""`tune`: draw random schedules, and random variants of the fastest known ones; measure them in other processes against
the schedules that the search starts from; and record the faster ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from os import PathLike, fspath
from random import Random
from statistics import mean, median
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute

from relay.arguments import positive
from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.compile.records import Record, Records
from relay.compile.workers import kernels_apart
from relay.errors import InvalidArgument, Unsupported
from relay.exploration.measuring import results_of
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling.affine import is_parallel
from relay.lowering.scheduling.decide import BEST, Chooser, Decisions, decide
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.record import ATTRIBUTE, Given, Value, dictionaries, write
from relay.lowering.scheduling.records import attribute_of, processor_of, signature_of
from relay.lowering.scheduling.registry import RECORDS
from relay.lowering.scheduling.strategy import Scheduled, Unit
from relay.lowering.shaped import buffer_of
from relay.module import IRModule
from relay.passes import Pass
from relay.runtime.profile import Call
from relay.target import CpuTarget, cpu_of, resolve

T = TypeVar("T", bound=Value)
GROUP = 8
"""The number of drawn schedules of each kernel that one process measures, interleaved with the schedule that the search
starts from."""
WAVES = 3
"""The number of groups in which the trials are drawn; each group after the first varies the fastest schedules found so
far."""
CANDIDATES = 4
"""The number of schedules drawn for each build of a kernel; only the one with the shortest estimated time is built."""
TIE = 0.01
"""The relative difference in time that two builds of the same code may have."""
KEPT = 0.7
"""The probability with which a decision of a known schedule is kept when the schedule is varied."""


def chosen(random: Random, possible: Sequence[T]) -> T:
    """A random element of `possible`. If it is a `Tuples`, the sequence of all tuples of numbers from given ranges,
    each number is drawn separately, since the sequence may be longer than `len` can return."""
    if isinstance(possible, Tuples):
        return cast(T, tuple(map(random.choice, possible.ranges)))
    return random.choice(possible)


class DrawnPicks(Picks):
    """Decides a schedule's parameters at random: with probability one half any possible value, else the best one."""

    def __init__(self, where: str, given: Given, random: Random):
        super().__init__(where, given)
        self.random = random

    def __call__(self, name: str, possible: Sequence[T], best: T) -> T:
        if name not in self.given and self.random.random() < 0.5:
            best = chosen(self.random, possible)
        return super().__call__(name, possible, best)

    def part(self, where: str, given: Given) -> Picks:
        return DrawnPicks(where, given, self.random)


class DrawnStrategies(Chooser):
    """Chooses at random among the scheduling strategies that apply to a kernel, and their parameters (`DrawnPicks`)."""

    def __init__(self, random: Random):
        self.random = random

    def picks(self, where: str, given: Given) -> Picks:
        return DrawnPicks(where, given, self.random)

    def unit(self, units: Sequence[Unit]) -> Unit:
        return self.random.choice(units)


@dataclass(frozen=True)
class DrawSchedules(Pass):
    """Give every kernel without a schedule a random legal one (by `seed`) that differs from the default; without a
    seed, give none. The signature of each kernel is recorded in `signatures`.

    Every second schedule that is drawn is a variant of the schedule in `known` for the kernel's signature, or of the
    default schedule if there is none. `per_cycle` maps a strategy to its measured seconds per estimated cycle.
    """

    name = "draw-schedules"
    seed: int | None = 0
    sums: bool = True
    """Whether schedules of kernels that sum floats may change the order of additions."""
    candidates: int = CANDIDATES
    known: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    per_cycle: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)
    signatures: dict[str, str] = field(default_factory=dict[str, str], compare=False)
    schedules: dict[str, str] = field(default_factory=dict[str, str], compare=False)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        random, calls = Random(self.seed), CallGraph(op.walk())
        alike, unchanged = dict[str, Attribute](), set[str]()
        target = cpu_of(op, self.name)
        for function in scheduled(op):
            given, name = GivenConstants(function.body.block, calls.of(function)), function.sym_name.data
            self.signatures[name] = signature_of(function, given)
            if self.seed is None or ATTRIBUTE in function.attributes or self.signatures[name] in unchanged:
                continue
            # kernels of the same signature get the same schedule
            if (same := alike.get(self.signatures[name])) is not None:
                function.attributes[ATTRIBUTE] = same
                try:
                    decide(function, given, target)
                    self.schedules[name] = str(same)
                    continue
                except InvalidArgument:  # this kernel's constants do not allow the schedule
                    del function.attributes[ATTRIBUTE]
            ordered, default = not self.sums and sums_floats(function), None
            if (known := self.known.get(self.signatures[name])) is None:
                default = decide(function, given, target)
                write(function, default.schedules)
                known = str(function.attributes.pop(ATTRIBUTE))
            every = [
                drawn(function, given, target, random, known if ordered or number % 2 == 0 else None, ordered=ordered)
                for number in range(self.candidates)
            ]
            every = [each for each in every if default is None or not alike_but_for_reasons(each, default)]
            if not every:  # only the default was drawn
                unchanged.add(self.signatures[name])
                continue
            write(function, min(every, key=self.estimate).schedules)
            self.schedules[name] = str(alike.setdefault(self.signatures[name], function.attributes[ATTRIBUTE]))

    def estimate(self, found: Decisions) -> float:
        """The estimated seconds of a kernel: the sum, over the schedules of its operations, of the cost model's cycles
        times the seconds per cycle that were measured for the schedule's strategy (the median of all for a strategy
        without measurements; 1 if there are none)."""
        usual = median(self.per_cycle.values()) if self.per_cycle else 1.0
        return sum(each.cycles * self.per_cycle.get(each.strategy, usual) for each in found.schedules)


def alike_but_for_reasons(one: Decisions, other: Decisions) -> bool:
    """Whether two `Decisions` about a kernel have equal schedules, apart from the texts that explain them."""
    return [replace(each, why="") for each in one.schedules] == [replace(each, why="") for each in other.schedules]


def drawn(
    function: FuncOp, given: GivenConstants, target: CpuTarget, random: Random, known: str | None, *, ordered: bool
) -> Decisions:
    """Draw the decisions of a kernel's schedule at random. If `known` (a schedule as text) is given, most of its
    decisions are kept where possible. If `ordered`, only decisions of `known` that do not affect the order of float
    additions are drawn again; without a `known` schedule that fits, the result is the default schedule."""
    chooser = DrawnStrategies(random)
    if known is not None:
        function.attributes[ATTRIBUTE] = varied(attribute_of(known), random, ordered=ordered)
        try:
            return decide(function, given, target, chooser=chooser)
        except InvalidArgument:
            pass  # the kept decisions do not fit the drawn ones
        finally:
            del function.attributes[ATTRIBUTE]
    return decide(function, given, target, chooser=BEST if ordered else chooser)


def varied(schedule: DictionaryAttr, random: Random, *, ordered: bool) -> DictionaryAttr:
    """A copy of the schedule without some decisions, chosen at random, which are to be drawn again. If `ordered`, only
    decisions that do not affect the order of additions are left out."""

    kept = KEPT / 2 if ordered else KEPT  # only few decisions may be removed then, so more of them are

    def part(attr: DictionaryAttr) -> DictionaryAttr:
        strategy = attr.data.get("strategy")
        record = RECORDS.get(strategy.data) if isinstance(strategy, StringAttr) else None
        stay = {"strategy", "op"} if not ordered else attr.data.keys() - (record.keeps_order if record else ())
        return DictionaryAttr({k: v for k, v in attr.data.items() if k in stay or random.random() < kept})

    if "ops" not in schedule.data:
        return part(schedule)
    return DictionaryAttr({"ops": ArrayAttr([part(each) for each in dictionaries(schedule, "a record")])})


def fitted(measured: Iterable[tuple[str, float]]) -> dict[str, float]:
    """For each strategy, the median of measured seconds per estimated cycle. `measured` has pairs of a schedule (as
    text) and its seconds; a schedule counts for the strategy to which most of its estimated cycles belong."""
    found: dict[str, list[float]] = {}
    for text, seconds in measured:
        cycles: dict[str, int] = {}
        for each in dictionaries(attribute_of(text), "a record"):
            strategy, estimate = each.data.get("strategy"), each.data.get("cycles")
            if isinstance(strategy, StringAttr) and isinstance(estimate, IntegerAttr):
                cycles[strategy.data] = cycles.get(strategy.data, 0) + estimate.value.data
        if total := sum(cycles.values()):
            found.setdefault(max(cycles, key=lambda each: cycles[each]), []).append(seconds / total)
    return {strategy: median(every) for strategy, every in found.items()}


def scheduled(module: ModuleOp) -> list[FuncOp]:
    """The module's functions that contain operations to schedule."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    return [function for function in functions if any(isinstance(op, Scheduled) for op in function.walk())]


def sums_floats(function: FuncOp) -> bool:
    """Whether a `linalg.generic` of the function reduces to floats."""
    return any(
        isinstance(buffer_of(op.outputs[0]).element_type, AnyFloat) and not is_parallel(op)
        for op in function.walk()
        if isinstance(op, linalg.GenericOp)
    )


@dataclass(frozen=True)
class Kernel:
    """The measurement of a kernel with one schedule: the seconds of a call, one number for each round."""

    signature: str
    schedule: str
    seconds: tuple[float, ...]

    def beats(self, other: Kernel) -> bool:
        """Whether at least two of its rounds are faster than all of the other's, by more than `TIE`. Fast rounds count,
        since another program on the same core may make any round a third slower."""
        return sorted(self.seconds)[1] < (1 - TIE) * min(other.seconds)


@dataclass(frozen=True)
class Job:
    """The work of one process: build the model several times, and measure all builds in turn. The first build has the
    schedules that the search starts from (the default ones, or those of the records `start`). Each of the others has
    those drawn by an element of `draws`; kernels for which it draws none get theirs from `records`."""

    model: str | bytes
    is_text: bool
    target: str
    draws: tuple[DrawSchedules, ...]
    start: Records | None
    records: Records | None
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Measured:
    """The result of a job: the processor that ran the builds, and for each build its kernels by name. The first build
    is that of the schedules that the search starts from."""

    processor: str
    builds: Sequence[Mapping[str, Kernel]]


def seconds_of(calls: Sequence[Call]) -> dict[str, float]:
    """Return the mean seconds of a call by the name of its kernel; of each call, the least measured time counts."""
    found: dict[str, list[float]] = {}
    for call in calls:
        found.setdefault(call.kernel, []).append(call.least_seconds)
    return {name: mean(times) for name, times in found.items()}


def measured(job: Job) -> Measured:
    """Build and measure a job's builds. A build whose results differ from those of the first one has no kernels in the
    returned `Measured`."""
    machine = resolve(job.target)
    if not isinstance(machine, CpuTarget):
        raise InvalidArgument("tune", f"the target {job.target} is no CPU", "only kernels of CPUs have records")
    model = IRModule.parse(job.model) if job.is_text and isinstance(job.model, str) else job.model
    draws = [DrawSchedules(None), *job.draws]
    with kernels_apart():
        executables = [
            build(
                model,
                job.target,
                pipeline=default_pipeline(job.target).insert_before("schedule", draw),
                records=job.records if number else job.start,
            )
            for number, draw in enumerate(draws)
        ]
    wanted = [array.tobytes() for array in results_of(executables[0], None)]
    equal = [[array.tobytes() for array in results_of(each, None)] == wanted for each in executables]
    times: list[dict[str, list[float]]] = [{} for _ in executables]
    for _ in range(job.rounds):
        for executable, found in zip(executables, times, strict=True):
            for name, seconds in seconds_of(executable.profile(seconds=job.seconds).calls).items():
                found.setdefault(name, []).append(seconds)
    builds = [
        {
            name: Kernel(signature, draw.schedules.get(name, ""), tuple(found[name]))
            for name, signature in draw.signatures.items()
            if same and name in found
        }
        for draw, found, same in zip(draws, times, equal, strict=True)
    ]
    return Measured(processor_of(machine), builds)


def tune(
    model: IRModule | str | PathLike[str] | bytes,
    target: str = "llvm",
    *,
    trials: int = 24,
    rounds: int = 5,
    seconds: float = 0.02,
    seed: int = 0,
    start: Records | None = None,
    executor: Executor | None = None,
) -> Records:
    """Search for schedules of a model's kernels that are faster on this machine than those that `relay.build` chooses.

    Each of `trials` builds gives every kernel a legal schedule. Several candidates are drawn (random ones, by `seed`,
    or variants of the fastest known one), and the build gets the candidate with the shortest estimated time; the cost
    model's estimates are corrected by the measurements so far. The builds and a reference build (with the default
    schedules, or those of the records `start`) are measured alternately, kernel by kernel on one thread, in `rounds`
    rounds of `seconds` each. A kernel's time is that of its fastest round, which other processes disturb least. The
    builds are measured in a process of their own, or by `executor`, whose workers may be on different machines.

    The fastest schedule of a kernel is recorded if at least two of its rounds are more than 1 % faster than every round
    of the reference build, both in its trial and in a last build with all records. The order of float additions is
    kept, and all results are bit-identical to those of the default schedules.

    `relay.build(model, target, records=found)` uses the records, `Records.save` and `load` keep them in a file, `|`
    joins those of several models and machines. Raises InvalidArgument, and Unsupported if a measuring process ends.
    """
    if not isinstance(resolve(target), CpuTarget):
        raise InvalidArgument("tune", f"the target {target} is no CPU", "only kernels of CPUs have records")
    for name, number, least in (("trials", trials, 1), ("rounds", rounds, 2)):
        if positive(number) < least:
            raise InvalidArgument("tune", f"{name} is {number}; it must be at least {least}")
    given = model.to_text(weights=True) if isinstance(model, IRModule) else model
    given = given if isinstance(given, bytes) else fspath(given)
    base = Job(given, isinstance(model, IRModule), target, (), start, None, rounds, seconds)
    done: list[Measured] = []
    known = rows_of(start or Records({}))
    size = max(GROUP, -(-trials // WAVES))
    with ProcessPoolExecutor(1, get_context("spawn")) if executor is None else nullcontext(executor) as pool:
        try:
            for first in range(0, trials, size):
                best = {**known, **rows_of(faster(done))}
                schedules = {signature: row.schedule for signature, row in best.items()}
                per_cycle = fitted([(row.schedule, row.seconds) for row in known.values()] + tried(done))
                draws = [
                    DrawSchedules(seed + number, sums=False, known=schedules, per_cycle=per_cycle)
                    for number in range(first, min(first + size, trials))
                ]
                groups = [tuple(draws[at : at + GROUP]) for at in range(0, len(draws), GROUP)]
                done += pool.map(measured, [replace(base, draws=group) for group in groups])
            records = faster(done)
            joined = records if start is None else start | records
            last = replace(base, draws=(DrawSchedules(None),), records=joined)
            before, after = pool.submit(measured, last).result().builds
        except BrokenExecutor as error:
            raise Unsupported("tune", "a process ended while it measured", "look at its messages") from error
    kept = {each.signature for name, each in after.items() if name in before and each.beats(before[name])}
    return Records(
        {cpu: {key: row for key, row in rows.items() if key in kept} for cpu, rows in records.kernels.items()}
    )


def rows_of(records: Records) -> dict[str, Record]:
    """The records of all processors in one mapping, by kernel signature."""
    return {signature: row for rows in records.kernels.values() for signature, row in rows.items()}


def tried(done: Sequence[Measured]) -> list[tuple[str, float]]:
    """The measurements of all schedules that the search drew, as pairs: the text of the schedule, and the seconds of a
    call of its kernel in the fastest round."""
    return [
        (kernel.schedule, min(kernel.seconds))
        for each in done
        for build in each.builds
        for kernel in build.values()
        if kernel.schedule
    ]


def faster(done: Sequence[Measured]) -> Records:
    """Records with one schedule for each processor and kernel: the schedule whose time, divided by that of the kernel's
    start schedule measured in the same process, is the least. Kernels without a schedule that beats the start
    (`Kernel.beats`) are left out."""
    best: dict[str, dict[str, Record]] = {each.processor: {} for each in done}
    for each in done:
        start, *others = each.builds
        rows = best[each.processor]
        for name, kernel in [item for other in others for item in other.items()]:
            before = start.get(name)
            if before is None or not kernel.schedule or not kernel.beats(before):
                continue
            row = Record(kernel.schedule, min(kernel.seconds), min(before.seconds))
            known = rows.get(kernel.signature)
            if known is None or row.seconds / row.default_seconds < known.seconds / known.default_seconds:
                rows[kernel.signature] = row
    return Records(best)
