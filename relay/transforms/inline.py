"""The pass `inline`: replaces calls by the bodies of the called functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from relay.errors import Unsupported
from relay.passes import Pass
from relay.transforms.inlining import calls, inline
from relay.transforms.location import place

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
        functions = {
            f.sym_name.data: f
            for f in op.body.block.ops
            if isinstance(f, FuncOp) and f.body.blocks and "compiler" not in f.attributes
        }
        chosen = {name for name, f in functions.items() if self.every or MARK in f.attributes}
        done = set[str]()
        inlined = dict[str, None]()

        def flatten(name: str, above: tuple[str, ...]) -> None:
            if name in done:
                return
            for call in calls(functions[name]):
                callee = call.callee.string_value()
                if callee not in functions:
                    continue
                if callee in (*above, name):
                    if callee in chosen:
                        raise Unsupported(place(call), f"@{callee} calls itself", "there are no loops by calls")
                    continue
                flatten(callee, (*above, name))
                if callee in chosen:
                    inline(call, functions[callee])
                    inlined[callee] = None
            done.add(name)

        for name in functions:
            flatten(name, ())
        for name in inlined:
            function = functions[name]
            if function.sym_visibility is not None and function.sym_visibility.data != "public":
                function.detach()
                function.erase()
