"""Which pass of a pipeline changes what a module computes, told by the interpreter, and below it by running code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay import signature
from relay.arguments import every
from relay.compile.assemble import Signature, assemble
from relay.compile.pipeline import CODE_GENERATION
from relay.compile.workers import Compilation
from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.interpreters import run as interpret
from relay.lowering.bufferize import Bufferize
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.module import IRModule
from relay.passes import PassInfo, PassInstrument, Pipeline
from relay.passes.base import as_module
from relay.passes.context import PassContext, activated
from relay.passes.requirements import providers_of
from relay.passes.runner import Runner
from relay.target import resolve
from relay.transforms.equality import difference
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
"""The way down with as little choice as there is."""
COMPILED = 1e-4
"""How far floats of compiled code may be from the interpreter's, relative to the largest magnitude."""
Run = Callable[[IRModule, Sequence[Array]], Sequence[Array]]
"""Runs a module's `main`."""


@dataclass(frozen=True)
class Finding:
    """What a search has found."""

    culprit: ModulePass | None
    """The first pass after which the numbers differ; None if there is none."""
    position: int
    """How many passes ran before it."""
    before: IRModule | None
    """The module that the culprit was given."""
    checked: tuple[str, ...]
    """The passes after which the numbers were compared and equal."""
    unchecked: tuple[str, ...]
    """The passes from the first whose output could not be run."""
    reason: str = ""
    """Why that could not be run."""

    def __str__(self) -> str:
        if self.culprit is not None:
            return f"pass {self.position + 1}, {self.culprit}, changes the numbers"
        rest = f"; not checked: {', '.join(self.unchecked)}" if self.unchecked else ""
        rest += f" ({self.reason})" if self.reason else ""
        return f"the numbers stay equal after {', '.join(self.checked) or 'no pass'}{rest}"


class Snapshots(PassInstrument):
    """Keeps the module before each pass and the last; a clone shares the weights."""

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
    """The first pass of the pipeline that changes what `@main` returns for these inputs.

    The pipeline runs once; the modules between the passes are run by bisection. Integers must be equal, floats too
    unless `tolerance` (relative to the largest magnitude) allows a difference. `run` is the interpreter, which knows
    `relay`, `qnn` and `byoc` ops. A module below them is lowered the rest of the way with as little choice as there is
    (literal rescaling, no feature of the CPU), compiled and run here, whatever the pipeline's other passes would do; so
    a pass that is itself part of that way is found where its choices are wrong. Native code that a wrong pass has made
    may crash the process. Raises RelayError where the module itself cannot be run.
    """
    module = as_module(mod)
    chosen = Pipeline.of(pipeline)
    every(inputs, "inputs", "give a list of arrays")
    wanted = run(module, inputs)
    snapshots = Snapshots()
    ctx = PassContext.current()
    with activated(ctx.with_instruments([*ctx.instruments, snapshots])):
        last = chosen(module)
    modules, steps = [*snapshots.modules, last], snapshots.steps
    names = tuple(step.name for step in steps)

    def found(wrong: int) -> Finding:
        return Finding(steps[wrong - 1], wrong - 1, modules[wrong - 1], names[: wrong - 1], names[wrong:])

    runnable = first(range(len(modules)), lambda n: not _runs(modules[n], inputs, run))
    wrong = first(range(runnable), lambda n: difference(run(modules[n], inputs), wanted, tolerance) is not None)
    if wrong < runnable:
        return found(wrong)
    lowered = Lowered(modules, signature.read(module["main"]), inputs, tolerance)
    reason = lowered.start(runnable - 1, wanted) if runnable < len(modules) else ""
    bad = runnable if reason else first(range(runnable, len(modules)), lowered.bad)
    if not reason and bad < len(modules):
        if lowered.differs(bad):
            return found(bad)
        reason = lowered.reasons[bad]
    return Finding(None, len(steps), None, names[: bad - 1], names[bad - 1 :], reason)


def first(numbers: range, bad: Callable[[int], bool]) -> int:
    """The first number that is bad, by bisection, or the end; all after a bad one are taken to be bad."""
    low, high = numbers.start, numbers.stop
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bad(middle) else (middle + 1, high)
    return low


def _runs(mod: IRModule, inputs: Sequence[Array], run: Run) -> bool:
    try:
        run(mod, inputs)
    except RelayError:
        return False
    return True


@dataclass
class Lowered:
    """Modules below `relay` ops, each lowered to the end, compiled, run, and compared with one that is right."""

    modules: Sequence[IRModule]
    described: Signature
    inputs: Sequence[Array]
    tolerance: float
    right: Sequence[Array] = ()
    reasons: dict[int, str] = field(default_factory=dict[int, str])
    """Why the results of a module are not known."""
    different: dict[int, bool] = field(default_factory=dict[int, bool])

    def start(self, number: int, wanted: Sequence[Array]) -> str:
        """Take the results of a module, compiled, for right; or say why that cannot be done."""
        try:
            self.right = self.results(number)
        except RelayError as error:
            return str(error)
        said = difference(self.right, wanted, max(self.tolerance, COMPILED))
        return "" if said is None else f"code for what all of them are right after gives other numbers: {said}"

    def bad(self, number: int) -> bool:
        """Whether the results of a module differ, or are not known."""
        return self.differs(number) or number in self.reasons

    def differs(self, number: int) -> bool:
        """Whether the results of a module are known to differ."""
        if number not in self.different:
            self.different[number] = False
            try:
                self.different[number] = difference(self.results(number), self.right, self.tolerance) is not None
            except RelayError as error:
                self.reasons[number] = str(error)
        return self.different[number]

    def results(self, number: int) -> list[Array]:
        """What the module computes. Raises RelayError where it cannot be lowered or compiled."""
        machine, module = resolve("llvm"), self.modules[number].clone()
        with activated(PassContext(0)):
            Runner(module.op, providers=providers_of(PLAIN)).reach("code generation", CODE_GENERATION)
        with Compilation(machine, 1) as code:
            executable = assemble(module, code, self.described)
        results = executable.run(*self.inputs)
        return [] if results is None else [*results] if isinstance(results, tuple) else [results]
