"""`print-choices`: prints each kernel's schedule, and how many of its channels are rescaled in each form."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from relay.passes import Pass
from relay.tables import aligned

SILENT = ("", "false", "0", "none")
"""The values of decisions that are not printed."""


@dataclass(frozen=True)
class PrintChoices(Pass):
    """Print the forms chosen for rescales and the schedules of kernels, and change nothing. The output goes to standard
    error, under `header`: how many channels are rescaled in each form (`relay.rescale`, by `expand-apply-scale`), and
    the schedule of each kernel with the reason (`relay.schedule`, by `schedule` and `parallelize`), one line for each
    operation with a decision. Kernels without decisions are left out; choices of passes that have not run yet are
    empty."""

    name: ClassVar[str] = "print-choices"
    invalidates = ()
    preserves = ("use-counts", "liveness", "shapes")
    header: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [function for function in op.walk() if isinstance(function, FuncOp)]
        rows = [("kernel", "rescaled channels", "schedule")]
        for function in kernels:
            forms = said(function.attributes.get("relay.rescale"))
            lines = schedule_lines(function.attributes.get("relay.schedule"))
            if forms or lines:
                rows.append((f"@{function.sym_name.data}", forms, lines[0] if lines else ""))
                rows += [("", "", line) for line in lines[1:]]
        rows.append(("all", said(op.attributes.get("relay.rescale")), ""))
        if self.header:
            print(f"// {' '.join(self.header.split())}", file=sys.stderr)
        print(*aligned(rows), sep="\n", file=sys.stderr)


def schedule_lines(attr: Attribute | None) -> list[str]:
    """The decisions about a kernel: one line for each of its operations, and one for the loops divided among
    threads."""
    if not isinstance(attr, DictionaryAttr):
        return [attr.data] if isinstance(attr, StringAttr) else []
    single: list[Attribute] = [attr] if "strategy" in attr.data else []
    ops, threads = attr.data.get("ops"), attr.data.get("threads")
    each = ops.data if isa(ops, ArrayAttr[Attribute]) else single
    lines = [decisions(one) for one in each if isinstance(one, DictionaryAttr)]
    if isa(threads, ArrayAttr[DictionaryAttr]) and threads.data:
        turns = [text(loop.data["turns"]) for loop in threads if "turns" in loop.data]
        lines.append(f"threads share loops of {' and '.join(turns)} turns")
    return lines


def decisions(attr: DictionaryAttr) -> str:
    """`strategy: why; decision value, ...`, without decisions that are false, 0, none or empty."""
    general = ("strategy", "op", "cycles", "why", "threads")
    told = {name: text(value) for name, value in attr.data.items() if name not in general}
    parts = [name if value == "true" else f"{name} {value}" for name, value in told.items() if value not in SILENT]
    named = [text(attr.data[name]) for name in ("strategy", "why") if name in attr.data]
    return "; ".join(part for part in (": ".join(named), ", ".join(parts)) if part)


def text(value: Attribute) -> str:
    """The value of a decision as short text."""
    if isinstance(value, StringAttr):
        return value.data
    if isa(value, IntegerAttr[IntegerType]):
        return ("false", "true")[value.value.data != 0] if value.type == i1 else str(value.value.data)
    if isinstance(value, DictionaryAttr):
        return decisions(value)
    if isa(value, DenseArrayBase[IntegerType]):
        return "x".join(map(str, value.get_values()))
    return f"[{', '.join(map(text, value.data))}]" if isa(value, ArrayAttr[Attribute]) else str(value)


def said(attr: Attribute | None) -> str:
    """The nonzero counts of a dictionary attribute, as `count name, ...`."""
    if not isinstance(attr, DictionaryAttr):
        return ""
    counts = {name: number.value.data for name, number in attr.data.items() if isinstance(number, IntegerAttr)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
