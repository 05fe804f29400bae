"""The pass `remove-unused-functions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from relay.errors import InvalidArgument
from relay.passes import Pass
from relay.transforms.inlining import calls


@dataclass(frozen=True)
class RemoveUnusedFunctions(Pass):
    """Remove functions that are not reachable by calls from those that `entry` names. Raises InvalidArgument if an
    entry does not exist."""

    name: ClassVar[str] = "remove-unused-functions"
    opt_level = 1
    invalidates = ()
    why = "removes functions that are not called"
    entry: tuple[str, ...] | str = ("main",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, FuncOp)}
        todo = [self.entry] if isinstance(self.entry, str) else list(self.entry)
        for name in todo:
            if name not in functions:
                known = ", ".join(functions) or "none"
                raise InvalidArgument(f"pass {self.name}", f"there is no function {name}", f"the module has {known}")
        used = set[str]()
        while todo:
            name = todo.pop()
            if name in functions and name not in used:
                used.add(name)
                todo += [call.callee.string_value() for call in calls(functions[name])]
        for name, function in functions.items():
            if name not in used:
                Rewriter.erase_op(function)
