"""`print-choices`: how each kernel runs, and in which form it rescales, as a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from relay.passes import Pass


@dataclass(frozen=True)
class PrintChoices(Pass):
    """Print on standard error, under a header, how many channels rescale in which form (`relay.rescale`, by
    `expand-apply-scale`) and how each kernel runs, with the reason (`relay.schedule`, by `schedule`), and change
    nothing. Kernels about which nothing was chosen are left out; what passes that have not run yet would choose is
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
            schedule = said(function.attributes.get("relay.schedule"))
            if forms or schedule:
                rows.append((f"@{function.sym_name.data}", forms, schedule))
        rows.append(("all", said(op.attributes.get("relay.rescale")), ""))
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        if self.header:
            print(f"// {' '.join(self.header.split())}", file=sys.stderr)
        for row in rows:
            cells = [text.ljust(width) for text, width in zip(row, (*widths, 0), strict=True)]
            print("  ".join(cells).rstrip(), file=sys.stderr)


def said(attr: Attribute | None) -> str:
    """What an attribute says: text, or the numbers that are not 0, by name."""
    if isinstance(attr, StringAttr):
        return attr.data
    if not isinstance(attr, DictionaryAttr):
        return ""
    counts = {name: number.value.data for name, number in attr.data.items() if isinstance(number, IntegerAttr)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
