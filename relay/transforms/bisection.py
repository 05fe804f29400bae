"""Which pass of a pipeline changes what a module computes, told by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.interpreters import run as interpret
from relay.module import IRModule
from relay.passes import PassInfo, PassInstrument, Pipeline
from relay.passes.base import as_module
from relay.passes.context import PassContext, activated
from relay.transforms.equality import difference

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

    def __str__(self) -> str:
        if self.culprit is not None:
            return f"pass {self.position + 1}, {self.culprit}, changes the numbers"
        rest = f"; not checked: {', '.join(self.unchecked)}" if self.unchecked else ""
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
    pipeline: Pipeline,
    inputs: Sequence[Array],
    *,
    run: Run = interpret,
    tolerance: float = 0.0,
) -> Finding:
    """The first pass of the pipeline that changes what `@main` returns for these inputs.

    The pipeline runs once; the modules between the passes are run by bisection. Integers must be equal, floats too
    unless `tolerance` (relative to the largest magnitude) allows a difference. `run` is the interpreter, which knows
    `relay`, `qnn` and `byoc` ops: passes below them are reported as not checked. Raises RelayError where the module
    itself cannot be run.
    """
    wanted = run(as_module(mod), inputs)
    snapshots = Snapshots()
    ctx = PassContext.current()
    with activated(ctx.with_instruments([*ctx.instruments, snapshots])):
        last = pipeline(as_module(mod))
    modules, steps = [*snapshots.modules, last], snapshots.steps
    runnable = _first(len(modules), lambda n: not _runs(modules[n], inputs, run))
    wrong = _first(runnable, lambda n: difference(run(modules[n], inputs), wanted, tolerance) is not None)
    names = tuple(step.name for step in steps)
    if wrong < runnable:
        return Finding(steps[wrong - 1], wrong - 1, modules[wrong - 1], names[: wrong - 1], names[wrong:])
    return Finding(None, len(steps), None, names[: runnable - 1], names[runnable - 1 :])


def _first(count: int, bad: Callable[[int], bool]) -> int:
    """The first number below `count` that is bad, by bisection; all after a bad one are taken to be bad."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bad(middle) else (middle + 1, high)
    return low


def _runs(mod: IRModule, inputs: Sequence[Array], run: Run) -> bool:
    try:
        run(mod, inputs)
    except Unsupported:
        return False
    return True
