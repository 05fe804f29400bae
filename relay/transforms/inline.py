"""The pass `inline`: replaces calls by the bodies of the called functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes import Pass
from relay.transforms.inlining import inline_calls

MARK = "inline"
"""The attribute that marks a function for this pass."""


@dataclass(frozen=True)
class Inline(Pass):
    """Replace calls of functions marked `inline` by the bodies of the functions.

    With `every`, calls of all functions are replaced, except those without a body and those of an external compiler.
    Marked private functions are removed. Raises Unsupported for recursive functions, and for one with several blocks.
    """

    name: ClassVar[str] = "inline"
    aliases = ("InlineGlobals",)
    opt_level = 1
    invalidates = ("kernels",)
    why = "inlines calls"
    every: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op, lambda function: self.every or MARK in function.attributes)
