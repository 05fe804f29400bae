"""Checks of the answers of plug-ins: an exception that they raise, or an invalid answer, becomes one error that names
the plug-in."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import isnan
from typing import cast

from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.errors import RelayError, Unsupported

AUTHORS = "tell the compiler's authors"


@contextmanager
def asked(name: str, what: str, ops: Sequence[Operation] = ()) -> Generator[None]:
    """Return a context for a question to the compiler `name` about `ops`; `what` names the question in messages, such
    as the called method. A RelayError that is raised inside gets the compiler's name, any other exception becomes
    Unsupported. Unsupported is also raised if `ops` have changed at the end."""
    before = [facts(op) for op in ops]
    try:
        yield
    except RelayError as error:
        blame(error, name)
        raise
    except Exception as error:
        raise Unsupported(f"compiler {name}", f"{what} failed: {type(error).__name__}: {error}", AUTHORS) from error
    if before != [facts(op) for op in ops]:
        hint = f"it only answers; passes of before_annotation may change the module; {AUTHORS}"
        raise Unsupported(f"compiler {name}", f"{what} changed the module", hint)


def facts(op: Operation) -> object:
    """Return what a compiler must leave unchanged of an op about which it is asked: its block, operands, properties and
    attributes, and the number of uses of each result, to be compared before and after the call."""
    users = [result.uses.get_length() for result in op.results]
    return op.parent, tuple(op.operands), users, dict(op.properties), dict(op.attributes)


def blame(error: RelayError, name: str) -> None:
    """Add the name of the compiler to the error's `where`, unless it already contains that name."""
    compiler = f"compiler {name}"
    if compiler not in error.where:
        error.where = f"{compiler}, {error.where}"


def verdict(name: str, what: str, answer: object) -> bool | Refusal:
    """Return the answer of a compiler's method, which must be True, False or a Refusal. Raises Unsupported for any
    other answer, and names the compiler (`name`) and the method that was called (`what`)."""
    if isinstance(answer, bool | Refusal):
        return answer
    raise Unsupported(f"compiler {name}", f"{what} gave {answer!r}", f"it gives True, False or a Refusal; {AUTHORS}")


def estimate(name: str, answer: object) -> float | None:
    """The answer, if it is a number of microseconds or None. Raises Unsupported otherwise."""
    if answer is None:
        return None
    if isinstance(answer, int | float) and not isinstance(answer, bool) and not isnan(answer) and answer >= 0:
        return float(answer)
    raise Unsupported(f"compiler {name}", f"cost gave {answer!r}", f"it gives microseconds or None; {AUTHORS}")


def parts(name: str, ops: Sequence[Operation], answer: object) -> list[list[Operation]] | Refusal:
    """Return the answer of a compiler's method that splits a region, which must be a Refusal, or lists of `ops` with
    each op in at most one list. Raises Unsupported for any other answer, and names the compiler (`name`)."""
    if isinstance(answer, Refusal):
        return answer
    found = [list(part) for part in cast(Sequence[Sequence[Operation]], answer)]
    named = [op for part in found for op in part]
    if len(set(named)) < len(named) or not set(named) <= set(ops):
        raise Unsupported(f"compiler {name}", "regions gave an op twice, or one that it was not shown", AUTHORS)
    return found


def codes(name: str, answer: object) -> int | None:
    """The answer, if it is a number of quantization steps or None. Raises Unsupported otherwise."""
    if answer is None or (isinstance(answer, int) and not isinstance(answer, bool) and answer >= 0):
        return answer
    raise Unsupported(f"compiler {name}", f"off_by gave {answer!r}", f"it gives a number of codes or None; {AUTHORS}")
