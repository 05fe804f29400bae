"""The multiply-accumulates of kernels, shown by profiles."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import AnyFloat, bf16

from relay.byoc.partitioning.work import multiplications
from relay.dialects.op import tensor
from relay.module import IRModule

Work = Mapping[str, tuple[int, str]]
"""A mapping from a kernel's name to its multiply-accumulates and their kind: `int8`, `bfloat16` or `float32`."""


def work_of(module: IRModule) -> Work:
    """Count the multiply-accumulates of a module's functions by their names."""
    found: dict[str, tuple[int, str]] = {}
    for name, function in module.functions.items():
        for op in function.walk():
            if macs := multiplications(op):
                type = tensor(op.operands[1]).element_type
                kind = "bfloat16" if type == bf16 else "float32" if isinstance(type, AnyFloat) else "int8"
                found[name] = (found.get(name, (0, kind))[0] + macs, kind)
    return found
