"""The multiply-accumulates of operators and kernels, shown by profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import AnyFloat, bf16
from xdsl.ir import Operation

from relay.byoc.partitioning.work import multiplications
from relay.dialects.op import tensor
from relay.module import IRModule
from relay.transforms.location import words

Work = Mapping[str, tuple[int, str]]
"""A mapping from a kernel's name, or an operator's location in the source model, to its multiply-accumulates and their
kind: `int8`, `bfloat16` or `float32`."""


def work_of(module: IRModule) -> Work:
    """Count the multiply-accumulates of a module's operators by their locations."""
    return _sums((words(op.location), op) for op in module.op.walk())


def work_of_kernels(module: IRModule) -> Work:
    """Count the multiply-accumulates of a module's functions by their names."""
    return _sums((name, op) for name, function in module.functions.items() for op in function.walk())


def _sums(ops: Iterable[tuple[str, Operation]]) -> Work:
    """Add the multiply-accumulates of ops that have the same key."""
    found: dict[str, tuple[int, str]] = {}
    for key, op in ops:
        if macs := multiplications(op):
            type = tensor(op.operands[1]).element_type
            kind = "bfloat16" if type == bf16 else "float32" if isinstance(type, AnyFloat) else "int8"
            found[key] = (found.get(key, (0, kind))[0] + macs, kind)
    return found
