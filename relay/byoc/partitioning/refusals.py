"""Why compilers do not take ops, kept with the ops until the module is partitioned.

An op that a compiler refused for a reason of its own has the attribute `byoc.refused = {COMPILER = "reason"}`; the
function lists the compilers asked, `byoc.targets = ["a", "b"]`.
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
    """Keep why a compiler does not take the op."""
    told = reasons(op) | {compiler: reason}
    op.attributes[REFUSED] = DictionaryAttr({name: StringAttr(why) for name, why in told.items()})


def reasons(op: Operation) -> dict[str, str]:
    """Why compilers refused the op, where they said so."""
    attr = op.attributes.get(REFUSED)
    if not isinstance(attr, DictionaryAttr):
        return {}
    return {name: why.data for name, why in attr.data.items() if isinstance(why, StringAttr)}


def presumed(op: Operation) -> str:
    """Why a compiler did not take the op, where it did not say so."""
    holder = op.parent_op()
    if isinstance(holder, byoc.CompositeOp):
        return f"{holder.composite.data} matches it, but was not annotated"
    if not variables(op):
        return "is computed from constants alone"
    if not used(op):
        return "nothing uses its result"
    return "no pattern matches it, and it is not taken alone"


def forget(op: Operation) -> None:
    """Drop the reasons that the op and the ops inside keep."""
    for inner in op.walk():
        inner.attributes.pop(REFUSED, None)


def asked(function: FuncOp) -> list[str]:
    """The compilers that were asked for the function."""
    attr = function.attributes.get(TARGETS)
    return [name.data for name in attr.data if isinstance(name, StringAttr)] if isa(attr, ArrayAttr[Attribute]) else []


def ask(function: FuncOp, names: Iterable[str]) -> None:
    """Keep which compilers are asked for the function, besides those that were before."""
    every = dict.fromkeys([*asked(function), *names])
    if every:
        function.attributes[TARGETS] = ArrayAttr([StringAttr(name) for name in every])
