"""Checks of a pipeline: verification, a limit for bisection, and a reproducer of a crash."""

from __future__ import annotations

from operator import attrgetter, is_
from os import PathLike

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from relay.arguments import instance
from relay.arguments import path as checked_path
from relay.dialects.source import early, why_invalid, words
from relay.errors import Malformed
from relay.module import IRModule
from relay.passes.info import FOREIGN, PassInfo
from relay.passes.instruments import PassInstrument

REPRODUCER = "// relay-opt -p "
"""The start of the first line of a reproducer; the pipeline follows it."""


ENTRY_OF_LOWERING = "linalg"
"""The property that a module below the `relay` dialect has. From there on, element types differ from the model's:
integers are signless."""


def verify(mod: IRModule, when: str) -> None:
    """Raise Malformed unless every op verifies (types, and ranges of quantization parameters) and every value is
    defined before it is used."""
    if (wrong := why_invalid(mod.op)) is not None:
        raise Malformed(when, f"the module is not valid: {wrong}") from VerifyException(wrong)
    for op, number in early(mod.op, set(), set()):
        place = words(op.location)
        wrong = f"operand #{number} of {op.name}{place and f' ({place})'} is used before it is defined"
        raise Malformed(when, f"the module is not valid: {wrong}")


class Verifier:
    """Verifies a module while a pipeline runs: before it is lowered below the `relay` dialect, and after each pass that
    changed something and is not vetted (`is_vetted`), such as a user's own pass."""

    def __init__(self, mod: IRModule, wanted: bool):
        self.mod, self.wanted = mod, wanted
        self.seen: list[object] | None = None

    def before(self, step: ModulePass, info: PassInfo) -> None:
        """Called before each pass: verifies the module if the pass starts the lowering below the `relay` dialect, and
        records the module's contents if they will have to be compared after the pass."""
        if self.wanted and ENTRY_OF_LOWERING in info.establishes:
            verify(self.mod, f"before pass {info.name}")
        if not self.wanted or is_vetted(step):
            self.seen = None
        elif self.seen is None:
            self.seen = contents(self.mod.op)

    def after(self, info: PassInfo) -> None:
        """Called after each pass; raises Malformed if a pass that is neither relay's nor one of xDSL's that `FOREIGN`
        lists has left an invalid module."""
        if self.seen is None:
            return
        now = contents(self.mod.op)
        if len(now) != len(self.seen) or not all(map(is_, now, self.seen)):
            verify(self.mod, f"after pass {info.name}")
        self.seen = now


_PARTS = attrgetter("_operands", "properties", "attributes", "results", "regions", "_next_op")
_TYPE = attrgetter("_type")


def contents(op: Operation) -> list[object]:
    """All objects of which an op and its nested ops consist. Two such lists hold identical objects if and only if
    nothing was changed in between; comparing them takes a hundredth of the time of a verification."""
    found: list[object] = [*op.properties.values(), *op.attributes.values()]
    append = found.append
    for region in op.regions:
        for block in region.blocks:
            found += (block, *block.args, *map(_TYPE, block.args))
            inner = block.first_op
            while inner is not None:
                operands, properties, attributes, results, regions, following = _PARTS(inner)
                append(inner)
                append(operands)
                if properties:
                    found += properties.values()
                if attributes:
                    found += attributes.values()
                if results:
                    found += map(_TYPE, results)
                if regions:
                    found += contents(inner)
                inner = following
    return found


def is_vetted(step: ModulePass) -> bool:
    """Whether the result of a pass is taken as valid without a check: the pass is one of relay's, or one of xDSL's that
    `FOREIGN` lists."""
    package = type(step).__module__.partition(".")[0]
    return package == "relay" or package == "xdsl" and step.name in FOREIGN


class VerifyEach(PassInstrument):
    """Verify the module before the first pass and after each pass. Raises Malformed, naming the pass."""

    def __init__(self) -> None:
        self._checked = False

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if not self._checked:
            verify(mod, "before the first pass")
            self._checked = True

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        verify(mod, f"after pass {info.name}")


class BisectLimit(PassInstrument):
    """Run only the first `limit` optional passes (-1: all), and log which ran.

    Passes of level 0 that establish a property always run and are not counted; nested pipelines are not counted,
    either.
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

    `relay-opt FILE` runs it again. `relay-opt` cannot run a pass that a decorator made.
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
    """The pipeline text in the first line of a reproducer; None if the text is not a reproducer."""
    first = text.partition("\n")[0].strip()
    return first.removeprefix(REPRODUCER).strip("'") if first.startswith(REPRODUCER) else None
