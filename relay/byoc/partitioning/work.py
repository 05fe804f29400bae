"""How much an op has to compute: what makes a region worth a compiler's while."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.op import shape

COMPUTE = (relay.Conv2dBase, relay.DenseBase, relay.Pool2dOp, qnn.LstmOp, qnn.SvdfOp)
"""Convolutions, products with matrices, pooling, recurrent layers."""


def computes(op: Operation) -> bool:
    """Whether the op is one of `COMPUTE`."""
    return isinstance(op, COMPUTE)


def multiplications(op: Operation) -> int:
    """Multiply-accumulates of a convolution or product; 0 of anything else, unknown sizes counted as 1."""
    if isinstance(op, relay.Conv2dBase):
        channels = max(shape(op.result)[3], 1)
        return size(op.result) * size(op.kernel) // channels
    if isinstance(op, relay.DenseBase):
        return size(op.result) * max(shape(op.kernel)[1], 1)
    return 0


def size(value: SSAValue) -> int:
    """Number of elements, unknown sizes counted as 1."""
    return prod(max(d, 1) for d in shape(value))
