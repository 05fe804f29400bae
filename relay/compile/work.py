"""The multiply-accumulates of operators and kernels, shown by profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import AnyFloat, bf16
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc.partitioning.work import multiplications
from relay.dialects.op import tensor
from relay.module import IRModule
from relay.transforms.location import words

Work = Mapping[str, tuple[int, str]]
"""A mapping from a kernel's name, or an operator's location in the source model, to its multiply-accumulates and their
kind: `int8`, `bfloat16` or `float32`."""


def work_of(module: IRModule, key: Callable[[Operation], str] = lambda op: words(op.location)) -> Work:
    """Count the multiply-accumulates of a module's operators, by default by their locations."""
    found: dict[str, tuple[int, str]] = {}
    for op in module.op.walk():
        if macs := multiplications(op):
            type = tensor(op.operands[1]).element_type
            kind = "bfloat16" if type == bf16 else "float32" if isinstance(type, AnyFloat) else "int8"
            found[key(op)] = (found.get(key(op), (0, kind))[0] + macs, kind)
    return found


def function_name(op: Operation) -> str:
    """The name of the function that contains an op; "" outside of functions."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return "" if parent is None else parent.sym_name.data
