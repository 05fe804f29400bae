"""The reasons why compilers refuse ops, stored on the ops until the module is partitioned.

An op that a compiler refused for a stated reason has the attribute `byoc.refused = {COMPILER = "reason"}`; its function
lists the compilers that were consulted, `byoc.targets = ["a", "b"]`.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from relay.byoc.partitioning.scope import used, variables
from relay.dialects import byoc

REFUSED = "byoc.refused"
TARGETS = "byoc.targets"


def refuse(op: Operation, compiler: str, reason: str) -> None:
    """Record the reason why a compiler does not take the op."""
    told = reasons(op) | {compiler: reason}
    op.attributes[REFUSED] = DictionaryAttr({name: StringAttr(why) for name, why in told.items()})


def reasons(op: Operation) -> dict[str, str]:
    """The recorded reasons why compilers refused the op, by compiler."""
    attr = op.attributes.get(REFUSED)
    if not isinstance(attr, DictionaryAttr):
        return {}
    return {name: why.data for name, why in attr.data.items() if isinstance(why, StringAttr)}


def presumed(op: Operation) -> str:
    """The likely reason why a compiler that stated none did not take the op."""
    holder = op.parent_op()
    if isinstance(holder, byoc.CompositeOp):
        return f"{holder.composite.data} matches it, but was not annotated"
    if not variables(op):
        return "is computed from constants alone"
    if not used(op):
        return "nothing uses its result"
    return "no pattern matches it, and it is not taken alone"


def forget(op: Operation) -> None:
    """Remove the reasons why compilers refused it (`byoc.refused`) from the op and from the ops inside it."""
    for inner in op.walk():
        inner.attributes.pop(REFUSED, None)


def asked(function: FuncOp) -> list[str]:
    """The compilers that were consulted for the function."""
    attr = function.attributes.get(TARGETS)
    return [name.data for name in attr.data if isinstance(name, StringAttr)] if isa(attr, ArrayAttr[Attribute]) else []


def ask(function: FuncOp, names: Iterable[str]) -> None:
    """Add the names of external compilers to the function's attribute `byoc.targets`, which lists those that were
    consulted about its ops."""
    every = dict.fromkeys([*asked(function), *names])
    if every:
        function.attributes[TARGETS] = ArrayAttr([StringAttr(name) for name in every])
