"""The multiply-accumulates of a source model's operators: counted at import, shown by profiles."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import AnyFloat, bf16

from relay.byoc.partitioning.work import multiplications
from relay.dialects.op import tensor
from relay.module import IRModule
from relay.transforms.location import words

Work = Mapping[str, tuple[int, str]]
"""A mapping from an operator's location in the source model to its multiply-accumulates and their kind: `int8`,
`bfloat16` or `float32`."""


def work_of(module: IRModule) -> Work:
    """Count the multiply-accumulates of the operators of a module as it was imported."""
    found: dict[str, tuple[int, str]] = {}
    for op in module.op.walk():
        if macs := multiplications(op):
            type = tensor(op.operands[1]).element_type
            kind = "bfloat16" if type == bf16 else "float32" if isinstance(type, AnyFloat) else "int8"
            source = words(op.location)
            found[source] = (found.get(source, (0, kind))[0] + macs, kind)
    return found
