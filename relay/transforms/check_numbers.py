"""`PassContext(config={"relay.check_numbers": inputs})`: interprets the module with these inputs before and after each
pass, and raises an error if its results change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay import interpreters
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.module import IRModule
from relay.passes import PassInfo, PassInstrument
from relay.transforms.equality import difference

TOLERANCE = 1e-4
"""The allowed error of a float, relative to the largest magnitude of the result. Integers must be equal."""


class CheckNumbers(PassInstrument):
    """Runs `@main` on the given `inputs` by the interpreter before and after each pass, and raises an error if the pass
    changed an integer of the results, or a float by more than `TOLERANCE`. It stops checking when a pass changes the
    arguments of `@main`, or leaves ops that the interpreter cannot run: in a build `relay-to-linalg`."""

    def __init__(self, inputs: Sequence[Array] | Mapping[str, Array]):
        self.inputs = inputs
        self._known: tuple[object, tuple[Array, ...] | None] = (None, None)
        """The last checked module, and its results after the last pass on it."""
        self._before: list[tuple[Array, ...] | None] = []
        self._has_run = False

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self._known[0] is not mod.op:
            self._known = (mod.op, self._results(mod) if "main" in mod.functions else None)
        self._before.append(self._known[1])

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        before = self._before.pop()
        after = None if before is None else self._results(mod)
        if before is not None and after is not None and (wrong := difference(after, before, TOLERANCE)):
            hint = "one that is to change numbers runs outside of this context"
            raise Malformed(f"after pass {info.name}", f"the numbers are others: {wrong}", hint)
        self._known = (mod.op, after)

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        self._known = (None, None)
        del self._before[-1:]

    def _results(self, mod: IRModule) -> tuple[Array, ...] | None:
        """The results for the inputs; None if the interpreter cannot run `@main`, or if `@main` takes other arguments
        than in a module that ran before. Raises InvalidArgument if the inputs never fitted."""
        try:
            results = interpreters.run(mod, self.inputs)
        except Unsupported:
            return None
        except InvalidArgument:
            if self._has_run:
                return None
            raise
        self._has_run = True
        return results
