"""Where an op comes from, in words: the start of every error about it."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, NameLoc, UnknownLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa


def place(op: Operation) -> str:
    """`<source location>: <op> in @<function>`, the location left out where it is unknown."""
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    inside = f"{op.name} in @{function.sym_name.data}" if function is not None else op.name
    source = words(op.location)
    return f"{source}: {inside}" if source else inside


def words(location: Attribute) -> str:
    """A location without MLIR's punctuation: `name (file:line:column)`."""
    match location:
        case UnknownLoc():
            return ""
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}:{location.column.data}"
        case NameLoc():
            inner = words(location.location)
            return f"{location.desc.data} ({inner})" if inner else location.desc.data
        case FusedLoc():
            parts = location.locations
            return ", ".join(filter(None, map(words, parts))) if isa(parts, ArrayAttr[Attribute]) else ""
        case _:
            return ""
