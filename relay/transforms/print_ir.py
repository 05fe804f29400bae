"""`print-ir`: prints the module at a point of the pipeline."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.module import IRModule
from relay.passes import Pass


@dataclass(frozen=True)
class PrintIR(Pass):
    """Print the module on standard error, under a header, and change nothing. The `header` is printed as a
    comment; if it is empty, none is. Weights over 1 KiB are printed by name, or in full with `show_meta_data`."""

    name: ClassVar[str] = "print-ir"
    invalidates = ()
    preserves = ("use-counts", "liveness", "shapes")
    header: str = ""
    show_meta_data: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        head = f"// {' '.join(self.header.split())}\n" if self.header else ""
        print(head + IRModule(op).to_text(weights=self.show_meta_data), end="", file=sys.stderr)
