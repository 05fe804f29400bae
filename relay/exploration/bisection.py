"""Find the pass of a pipeline that changes what a module computes, and the operator of the source model that is
affected.

Modules before loop kernels exist are run by the interpreter, later ones are compiled and run. All results that ops and
kernels of `@main` pass to each other are compared, so that a fault is also found where a later op hides it (for example
a softmax that saturates).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay import signature
from relay.arguments import every
from relay.compile.assemble import Planned, assemble, backend_of
from relay.compile.claims import Claims
from relay.compile.manifest import Signature
from relay.compile.pipeline import default_pipeline
from relay.compile.workers import Compilation, emit_apart
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, RelayError
from relay.exploration.intermediates import Pair, Point, matched, observed, opened
from relay.interpreters import run as interpret
from relay.lowering.bufferize import Bufferize
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.module import IRModule
from relay.passes import PassInfo, PassInstrument, Pipeline
from relay.passes.context import PassContext, activated
from relay.passes.info import as_module, info_of
from relay.passes.requirements import providers_of
from relay.passes.runner import Runner
from relay.target import ATTRIBUTE, resolve
from relay.transforms.equality import Mismatch, difference, mismatch
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize

PLAIN = (
    Legalize(),
    FuseOps(),
    RelayToLinalg(),
    ExpandApplyScale(literal=True),
    Bufferize(),
    Schedule(),
    PlanMemory(),
)
"""The passes from `relay` ops to loops, with as few optimizations as possible. `find_culprit` lowers each module with
those of them that it still needs, so that it can be compiled and run."""
COMPILED = 1e-4
"""The tolerance for floats when compiled code is compared with the interpreter, relative to the largest magnitude."""
Run = Callable[[IRModule, Sequence[Array]], Sequence[Array]]
"""A function that runs a module's `@main` on inputs and returns its results."""


@dataclass(frozen=True)
class Finding:
    """The result of `find_culprit`: the first pass of a pipeline that changes what a module computes, and which values
    it changes."""

    culprit: ModulePass | None
    """The first pass after which the results differ; None if there is none."""
    position: int
    """The number of passes before `culprit`."""
    before: IRModule | None
    """The module before `culprit` ran."""
    checked: tuple[str, ...]
    """The passes after which all results were equal."""
    unchecked: tuple[str, ...]
    """The passes that were not checked: those from the first one after which the module could not be run."""
    reason: str = ""
    """The reason why the module after the first pass in `unchecked` could not be compared: it could not be run, or its
    compiled code does not agree with the interpreter. "" if all passes were checked."""
    operators: tuple[str, ...] = ()
    """The operators of the source model, such as `operator 3 ADD 'x' (model.tflite:3:0)`, that are computed by the
    first op or kernel inside `@main` whose result differs after `culprit`. Empty if no value inside `@main` was seen to
    differ."""
    kernel: str = ""
    """The op or kernel whose result differs first, as it is called in the module before `culprit`: `@conv2d_0`."""
    mismatch: str = ""
    """A text: how many elements of the first differing result differ, by how much, and the first of them."""

    @property
    def equal(self) -> bool:
        """Whether every pass was checked and none of them changes the results."""
        return self.culprit is None and not self.unchecked

    def __str__(self) -> str:
        if self.culprit is not None:
            where = " with ".join(self.operators) or "an op of unknown source"
            first = f"; first {where}, {self.kernel}: {self.mismatch}" if self.kernel else ""
            first = first or (f": {self.mismatch}" if self.mismatch else "")
            return f"pass {self.position + 1}, {short(self.culprit)}, changes the numbers{first}"
        rest = f"; not checked: {', '.join(self.unchecked)}" if self.unchecked else ""
        rest += f" ({self.reason})" if self.reason else ""
        return f"the numbers stay equal after {', '.join(self.checked) or 'no pass'}{rest}"


def short(step: ModulePass) -> str:
    """Return the pass as text, with only the options that differ from both its defaults and the default pipeline's."""
    spec = step.pipeline_pass_spec()
    others = [other.pipeline_pass_spec().parameters for other in default_pipeline() if other.name == step.name]
    usual = {name: value for given in others for name, value in given.items()}
    return str(replace(spec, parameters={k: v for k, v in spec.parameters.items() if v != usual.get(k)}))


class Snapshots(PassInstrument):
    """An instrument that keeps a clone of the module before each pass. Clones share the weights."""

    def __init__(self) -> None:
        self.steps: list[ModulePass] = []
        self.modules: list[IRModule] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if isinstance(info.step, ModulePass):
            self.steps.append(info.step)
            self.modules.append(mod.clone())


def find_culprit(
    mod: IRModule | ModuleOp,
    pipeline: Pipeline | Sequence[ModulePass] | str,
    inputs: Sequence[Array],
    *,
    run: Run = interpret,
    tolerance: float = 0.0,
) -> Finding:
    """Find the first pass of the pipeline that changes what `@main` computes for `inputs`, and the first operator of
    the source model, in the order of execution, whose result differs after that pass.

    The pipeline runs once, and the module after each pass is run. Two things are compared: the results of `@main` with
    those of `mod` itself, and the results of ops and kernels inside `@main` that exist both before and after a pass.
    Integers must be equal, floats too unless `tolerance` (relative to the largest magnitude) allows a difference. `run`
    is the interpreter by default, which runs `relay`, `qnn` and `byoc` ops. Where a pass changes the meaning of a value
    inside `@main` (it moves a scale into the next op, for example), the ops after the value are run on other numbers,
    before and after the pass, to tell this from a wrong result.

    From the first module that `run` cannot run, modules are compiled. `@main` of the module before it is changed to
    return the results of all its kernels, and the remaining passes of the pipeline run on that module. The module
    after each of them is lowered to machine code by a fixed sequence of passes with as few optimizations as possible
    (rescales by the form `literal`, no CPU features), whatever passes follow in the pipeline, and run on this machine.
    A pass of the pipeline that also belongs to this fixed sequence is therefore found only if one of its optimizations
    is wrong. If no fault is found, the same is repeated with the unchanged `@main`. Native code that a wrong pass has
    produced may crash the process. Raises RelayError where `mod` itself cannot be run.
    """
    module = as_module(mod)
    chosen = Pipeline.of(pipeline)
    every(inputs, "inputs", "give a list of arrays")
    if not 0 <= tolerance < inf:
        raise InvalidArgument("tolerance", f"is {tolerance}", "give a number of at least 0")
    wanted = run(module, inputs)
    snapshots = Snapshots()
    ctx = PassContext.current()
    with activated(ctx.with_instruments([*ctx.instruments, snapshots])):
        last = chosen(module)
    return Search([*snapshots.modules, last], snapshots.steps, inputs, run, tolerance, wanted).finding()


def first(numbers: range, bad: Callable[[int], bool]) -> int:
    """The first number for which `bad` holds, found by bisection; the end of the range if there is none. Assumes that
    `bad` holds for all numbers after the first one."""
    low, high = numbers.start, numbers.stop
    if low < high and not bad(high - 1):
        return high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bad(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True)
class Observation:
    """A module, the values inside `@main` that were observed (`points`), and the `results` of `@main`, which include
    them."""

    module: IRModule
    points: Sequence[Point]
    results: Sequence[Array]


@dataclass
class Search:
    """The search for the first wrong pass; `modules[i]` is the module before `steps[i]`, the last module the pipeline's
    result."""

    modules: Sequence[IRModule]
    steps: Sequence[ModulePass]
    inputs: Sequence[Array]
    run: Run
    tolerance: float
    wanted: Sequence[Array]

    def finding(self) -> Finding:
        """Run each module with the interpreter and compare it with the module before it, until the results differ. The
        first module that the interpreter cannot run, and all after it, are compiled and run instead."""
        last = self.observe(self.modules[0])
        for number in range(1, len(self.modules)):
            try:
                now = self.observe(self.modules[number])
            except RelayError:
                return self.below(number, last)
            if (fault := self.fault(number, last, now)) is not None:
                return fault
            last = now
        return self.equal(len(self.modules))

    def fault_of(self, wrong: int, said: str, point: Point | None = None) -> Finding:
        """A finding whose culprit is the pass before module number `wrong`. `said` describes the difference, and
        `point` is the value inside `@main` that differs; None if only results of `@main` differ."""
        names = tuple(step.name for step in self.steps)
        before = (self.modules[wrong - 1], names[: wrong - 1], names[wrong:])
        operators, kernel = ((), "") if point is None else (point.operators, point.op)
        return Finding(self.steps[wrong - 1], wrong - 1, *before, "", operators, kernel, said)

    def equal(self, end: int, reason: str = "") -> Finding:
        """A finding without culprit: the modules before number `end` are equal, and the others could not be compared
        for `reason`."""
        names = tuple(step.name for step in self.steps)
        return Finding(None, len(names), None, names[: end - 1], names[end - 1 :], reason)

    def observe(self, module: IRModule) -> Observation:
        """Run the module, and return the results of `@main` with the values of the ops inside it. For these values, a
        copy of the module that returns them is run; if that raises RelayError, only the results are returned."""
        try:
            more, points = observed(module)
            return Observation(module, points, self.run(more, self.inputs))
        except RelayError:
            return Observation(module, [], self.run(module, self.inputs))

    def fault(self, number: int, before: Observation, after: Observation) -> Finding | None:
        """Compare the observations of the module before number `number` and of that module; return a finding if the
        pass between the two changes the results, else None."""
        said = difference(after.results[: len(self.wanted)], self.wanted, self.tolerance)
        pairs = matched(before.points, after.points)
        wrong: dict[Pair, Mismatch] = {}
        for pair in pairs:
            found, wanted = (
                after.results[after.points[pair.after].output],
                before.results[before.points[pair.before].output],
            )
            if (different := mismatch(found, wanted, self.tolerance)) is not None:
                wrong[pair] = different
        if said is None and not self.proves(before, after, pairs, [*wrong]):
            return None
        if not wrong:
            return self.fault_of(number, said or "")
        pair, different = next(iter(wrong.items()))
        return self.fault_of(number, mismatch_text(different), before.points[pair.before])

    def proves(self, before: Observation, after: Observation, pairs: Sequence[Pair], wrong: Sequence[Pair]) -> bool:
        """Whether the values `wrong`, which differ after a pass, prove that the pass is wrong, instead of having
        another meaning after it. Both modules, before and after the pass, are run with the same random data in place of
        these values. If all compared results that depend on one of the replaced values agree in these runs, both
        modules use the value for the same purpose, and it should have been equal."""
        random, given = np.random.default_rng(0), list[Array]()
        for pair in wrong:
            both = [o.results[o.points[n].output] for o, n in ((before, pair.before), (after, pair.after))]
            given.append(
                random.permuted(np.concatenate([a.reshape(-1) for a in both]))[: both[0].size].reshape(both[0].shape)
            )
        a, old, reached = opened(before.module, [pair.before for pair in wrong])
        b, new, reached_after = opened(after.module, [pair.after for pair in wrong])
        try:
            found, wanted = self.run(b, [*self.inputs, *given]), self.run(a, [*self.inputs, *given])
        except RelayError:
            return False
        outputs = [(old[pair.before].output, new[pair.after].output) for pair in pairs]
        outputs += [(number, number) for number in range(len(self.wanted))]
        agree, differ = set[int](), set[int]()
        for one, other in outputs:
            same = mismatch(found[other], wanted[one], max(self.tolerance, COMPILED)) is None
            (agree if same else differ).update(reached[one] | reached_after[other])
        return bool(agree - differ)

    def below(self, number: int, last: Observation) -> Finding:
        """Find the wrong pass among those after module `number - 1`, by compiling the modules and comparing their
        results, since `run` cannot execute module `number`. `last`: the observation of module `number - 1`."""
        watched, where = self.watched(number, last)
        if watched is not None and watched.culprit is not None:
            return watched
        lowered = Lowered(self.modules, signature.read(self.modules[0]["main"]), self.inputs, self.tolerance)
        if reason := lowered.start(number - 1, self.wanted):
            return self.equal(number, f"{reason}{where}")
        bad = first(range(number, len(self.modules)), lowered.bad)
        if bad < len(self.modules) and (said := lowered.differs(bad)) is not None:
            return self.fault_of(bad, said)
        return self.equal(bad, lowered.reasons.get(bad, ""))

    def watched(self, number: int, last: Observation) -> tuple[Finding | None, str]:
        """Search the passes from module `number - 1` on for the first wrong one, by the results of all kernels. `last`:
        the observation of module `number - 1`. A copy of this module returns the results of all kernels from `@main`;
        the passes are repeated on the copy, and the modules after them are compiled and run. Returns the finding and
        "". If no pass is found to be wrong, returns None and a text: the name of the first kernel whose result
        differs from the interpreter's although none of these passes has run yet, or "" if all results agree."""
        more, points = observed(last.module)
        try:
            modules = replayed(more, self.steps[number - 1 :])
        except RelayError:
            return None, ""
        if any(len(module["main"].function_type.outputs) not in (0, len(last.results)) for module in modules):
            return None, ""
        lowered = Lowered(modules, signature.read(more["main"]), self.inputs, self.tolerance)
        if lowered.start(0, last.results):
            point = _first(points, lowered.right, last.results, max(self.tolerance, COMPILED))
            return None, "" if point is None else f"; first in {point[0]}: {point[1]}"
        bad = first(range(1, len(modules)), lowered.bad)
        if bad < len(modules) and lowered.differs(bad) is not None:
            point = _first(points, lowered.found[bad], lowered.right, self.tolerance)
            if point is not None:
                return self.fault_of(number - 1 + bad, mismatch_text(point[1]), point[0]), ""
        return None, ""


def mismatch_text(different: Mismatch) -> str:
    """Return a text: how many elements differ, where, and the largest difference."""
    return f"{different}; at most by {different.largest:.6g}"


def _first(
    points: Sequence[Point], found: Sequence[Array], wanted: Sequence[Array], tolerance: float
) -> tuple[Point, Mismatch] | None:
    """The first of `points`, values inside `@main` in the order of execution, whose array in `found` differs from the
    one in `wanted`, with a description of the difference; None if all agree within the tolerance."""
    for point in points if len(found) == len(wanted) else ():
        if (different := mismatch(found[point.output], wanted[point.output], tolerance)) is not None:
            return point, different
    return None


def replayed(module: IRModule, steps: Sequence[ModulePass]) -> list[IRModule]:
    """Return the module, followed by the module after each of these passes. Passes that they require do not run."""
    modules = [module]
    with activated(PassContext.current().with_instruments([])):
        runner = Runner(module.op.clone())
        for step in steps:
            runner.apply(step, info_of(step))
            modules.append(runner.mod.clone())
    return modules


@dataclass
class Lowered:
    """Modules that no longer consist of `relay` ops: each is lowered to the end, compiled, run, and compared with the
    results of a module known to be right."""

    modules: Sequence[IRModule]
    described: Signature
    inputs: Sequence[Array]
    tolerance: float
    right: Sequence[Array] = ()
    reasons: dict[int, str] = field(default_factory=dict[int, str])
    """By module number, the reason why its results are unknown."""
    found: dict[int, Sequence[Array]] = field(default_factory=dict[int, Sequence[Array]])
    """By module number, the results of the modules that were run."""

    def start(self, number: int, wanted: Sequence[Array]) -> str:
        """Compile and run module `number`, with whose results those of later modules will be compared. Returns "" if
        they agree with `wanted`, the interpreter's results; else the reason why they cannot be used."""
        try:
            self.right = self.results(number)
        except RelayError as error:
            return str(error)
        said = difference(self.right, wanted, max(self.tolerance, COMPILED))
        return "" if said is None else f"code for what all of them are right after gives other numbers: {said}"

    def bad(self, number: int) -> bool:
        """Whether the results of a module differ from the right ones, or are unknown."""
        return self.differs(number) is not None or number in self.reasons

    def differs(self, number: int) -> str | None:
        """A text that describes how the results of module `number` differ from the right ones; None if they agree, or
        if the module's results are unknown."""
        if number not in self.found and number not in self.reasons:
            try:
                self.found[number] = self.results(number)
            except RelayError as error:
                self.reasons[number] = str(error)
        return difference(self.found[number], self.right, self.tolerance) if number in self.found else None

    def results(self, number: int) -> list[Array]:
        """Lower, compile and run module `number`, and return its results. Raises RelayError if the module cannot be
        lowered or compiled."""
        machine, module = resolve("llvm"), self.modules[number].clone()
        module.op.attributes.pop(ATTRIBUTE, None)
        with activated(PassContext(0)):
            Runner(module.op, providers=providers_of(PLAIN)).reach("code generation", backend_of(machine).needed)
        with Compilation(machine, 1, emit_apart) as code:
            executable = assemble(Planned(module, code, self.described, Claims()))
        results = executable.run(*self.inputs)
        return [] if results is None else [*results] if isinstance(results, tuple) else [results]
