"""Instruments that find faults: verification, a limit for bisection, and a reproducer of a crash."""

from __future__ import annotations

from os import PathLike

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from relay.arguments import instance
from relay.arguments import path as checked_path
from relay.errors import Malformed
from relay.module import IRModule
from relay.passes.info import PassInfo
from relay.passes.instruments import PassInstrument

REPRODUCER = "// relay-opt -p "
"""How the first line of a reproducer begins; the pipeline follows."""


class VerifyEach(PassInstrument):
    """Verify the module before the first pass, and after each. Raises Malformed that names the pass."""

    def __init__(self) -> None:
        self._checked = False

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if not self._checked:
            self._verify(mod, "before the first pass")
            self._checked = True

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._verify(mod, f"after pass {info.name}")

    def _verify(self, mod: IRModule, when: str) -> None:
        try:
            mod.op.verify()
        except VerifyException as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise Malformed(when, f"the module is not valid: {lines[-1] if lines else 'no reason given'}") from error


class BisectLimit(PassInstrument):
    """Run only the first `limit` passes that correctness can do without (-1: all), and say which ran.

    Passes of level 0 that establish a property always run and are not counted; nested pipelines neither.
    """

    def __init__(self, limit: int):
        self.limit = instance(limit, int, "BisectLimit", "give a number of passes, or -1 for all")
        self.log: list[str] = []
        """One line for each counted pass: `BISECT: running pass (3) simplify`."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        if info.mandatory or not isinstance(info.step, ModulePass):
            return True
        number = len(self.log) + 1
        runs = self.limit < 0 or number <= self.limit
        self.log.append(f"BISECT: {'' if runs else 'NOT '}running pass ({number}) {info.name}")
        return runs


class CrashReproducer(PassInstrument):
    """When a pass fails, write the IR before it, weights in full, and the pass as a pipeline into one file.

    `relay-opt FILE` runs it again. A pass that a decorator made is not known to `relay-opt`.
    """

    def __init__(self, path: str | PathLike[str]):
        self.path = checked_path(path, "CrashReproducer")
        self.written = False
        self._before: list[ModuleOp] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before.append(mod.op.clone())

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before.pop()

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        before = self._before.pop()
        if isinstance(info.step, ModulePass):
            said = " ".join(f"{type(error).__name__}: {error}".split())
            text = IRModule(before).to_text(weights=True, locations=True)
            self.path.write_text(f"{REPRODUCER}'{info.step}'\n// {said}\n{text}")
            self.written = True


def pipeline_of(text: str) -> str | None:
    """The pipeline that a reproducer's first line names; None if the text is no reproducer."""
    first = text.partition("\n")[0].strip()
    return first.removeprefix(REPRODUCER).strip("'") if first.startswith(REPRODUCER) else None
