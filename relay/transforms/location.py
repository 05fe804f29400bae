"""The location of an op in words; every error message about an op starts with it."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc, NameLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.dialects.source import words

__all__ = ["function_of", "node_of", "place", "words"]


def function_of(op: Operation) -> FuncOp | None:
    """The innermost function around the op, or the op itself if it is a function."""
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    return function


def place(op: Operation) -> str:
    """`<source location>: <op> in @<function>`, the location left out where it is unknown."""
    function = function_of(op)
    inside = f"{op.name} in @{function.sym_name.data}" if function is not None else op.name
    source = words(op.location)
    return f"{source}: {inside}" if source else inside


def node_of(op: Operation) -> int:
    """The index of the operator in its model file, or the line in its text; -1 if unknown."""
    location = op.location.location if isinstance(op.location, NameLoc) else op.location
    return location.line.data if isinstance(location, FileLineColLoc) else -1
