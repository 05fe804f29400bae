"""Why ops stay with the host, kept in the IR: by op until the module is partitioned, then on the module.

An op that a compiler was asked for and that it refused for a reason worth telling has the attribute
`byoc.refused = {COMPILER = "reason"}`; the module lists the compilers asked, `byoc.targets = ["a", "b"]`.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

REFUSED = "byoc.refused"
TARGETS = "byoc.targets"


def refuse(op: Operation, compiler: str, reason: str) -> None:
    """Keep why a compiler does not take the op."""
    op.attributes[REFUSED] = DictionaryAttr(
        {name: StringAttr(why) for name, why in (reasons(op) | {compiler: reason}).items()}
    )


def reasons(op: Operation) -> dict[str, str]:
    """Why compilers refused the op, by compiler."""
    attr = op.attributes.get(REFUSED)
    if not isinstance(attr, DictionaryAttr):
        return {}
    return {name: why.data for name, why in attr.data.items() if isinstance(why, StringAttr)}


def asked(module: ModuleOp) -> list[str]:
    """The compilers that were asked."""
    attr = module.attributes.get(TARGETS)
    return [name.data for name in attr.data if isinstance(name, StringAttr)] if isa(attr, ArrayAttr[Attribute]) else []


def ask(module: ModuleOp, names: Iterable[str]) -> None:
    """Keep which compilers were asked, besides those that were before."""
    every = dict.fromkeys([*asked(module), *names])
    if every:
        module.attributes[TARGETS] = ArrayAttr([StringAttr(name) for name in every])
