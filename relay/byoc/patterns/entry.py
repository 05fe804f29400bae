"""`Entry`: a row of a compiler's pattern table, and how it is matched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from relay.byoc.patterns.match import Match, Refusal
from relay.byoc.patterns.names import short
from relay.byoc.patterns.nodes import Pattern
from relay.byoc.patterns.state import State
from relay.errors import RelayError, Unsupported

Check = Callable[[Match], bool | Refusal]


@dataclass(frozen=True)
class Entry:
    """A named pattern; its matches become `byoc.composite "COMPILER.NAME"`.

    `check` decides whether the compiler takes a match; a `Refusal` gives the reason why not. `exact` overrides the
    compiler's `exact` for this entry: whether integers equal those of the ops' formulas, bit for bit.
    """

    name: str
    pattern: Pattern
    check: Check | None = None
    exact: bool | None = None

    def match(self, op: Operation, order: Mapping[Operation, int]) -> Match | Refusal | None:
        """The first match that ends in this op and that the check accepts; or the reason why the first match was
        refused; or None if nothing matches. `order` maps the ops of the block to their positions."""
        roots = self.pattern.roots()
        if roots is not None and op.name not in roots:
            return None
        refusal: Refusal | None = None
        for state in self._states(op):
            found = complete(op, state, order)
            if isinstance(found, Match):
                taken = self.check is None or self.answer(self.check, found)
                if taken is True:
                    return found
                found = taken if isinstance(taken, Refusal) else Refusal("its check says no")
            if refusal is None:
                refusal = Refusal(f"{self.name}: {found.reason}", tuple(state.take(op).ops))
        return refusal

    def answer(self, check: Check, found: Match) -> bool | Refusal:
        """Call the check. Raises Unsupported if it raises an exception, or returns neither a bool nor a Refusal."""
        try:
            answer = cast(object, check(found))
        except RelayError:
            raise
        except Exception as error:
            what = f"its check failed: {type(error).__name__}: {error}"
            raise Unsupported(f"pattern {self.name}", what, "tell the compiler's authors") from error
        if isinstance(answer, bool | Refusal):
            return answer
        hint = "it gives True, False or a Refusal; tell the compiler's authors"
        raise Unsupported(f"pattern {self.name}", f"its check gave {answer!r}", hint)

    def _states(self, op: Operation) -> Iterator[State]:
        for result in op.results:
            yield from self.pattern.match(result, State())


def complete(root: Operation, state: State, order: Mapping[Operation, int]) -> Match | Refusal:
    """The match of a pattern whose result `root` computes, from the finished search `state`. A Refusal if an op outside
    of the match uses a result of an op other than `root`, or if an op is not in `order`, since another match has taken
    it or it is in another block."""
    ops = state.take(root).ops
    for op in ops:
        if op not in order:
            return Refusal(f"{short(op.name)} is {'taken already' if op.parent is root.parent else 'in another block'}")
    for op in ops:
        for result in op.results if op is not root else ():
            outside = next((use.operation for use in result.uses if use.operation not in ops), None)
            if outside is not None:
                use = "returned" if outside.has_trait(IsTerminator) else f"used by {short(outside.name)}"
                return Refusal(f"the result of {short(op.name)} is also {use}")
    inner = tuple(sorted(ops, key=order.__getitem__))
    inputs: dict[SSAValue, None] = {}
    for op in inner:
        for value in op.operands:
            if not (isinstance(value, OpResult) and (value.owner in ops or value.owner in state.constants)):
                inputs[value] = None
    return Match(root, inner, tuple(state.constants), tuple(inputs), state.names)
