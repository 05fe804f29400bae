"""Where an op comes from, in words: the start of every error about it."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.dialects.source import words

__all__ = ["place", "words"]


def place(op: Operation) -> str:
    """`<source location>: <op> in @<function>`, the location left out where it is unknown."""
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    inside = f"{op.name} in @{function.sym_name.data}" if function is not None else op.name
    source = words(op.location)
    return f"{source}: {inside}" if source else inside
