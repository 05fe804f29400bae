"""The amount of computation of an op, from which partitioning decides whether a region is worthwhile."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.op import is_tensor, shape

COMPUTE = (relay.Conv2dBase, relay.DenseBase, relay.Pool2dOp, qnn.LstmOp, qnn.SvdfOp)
"""Convolutions, matrix products, pooling and recurrent layers, which make a region worth offloading."""


def computes(op: Operation) -> bool:
    """Whether the op is one of those that make a region worth offloading: a convolution, a matrix product, pooling or a
    recurrent layer."""
    return isinstance(op, COMPUTE)


def multiplications(op: Operation) -> int:
    """The number of multiply-accumulates of a convolution, product or attention; 0 for other ops. Unknown sizes count
    as 1."""
    match op:
        case relay.Conv2dBase():
            letters = dict(zip(op.kernel_layout.data, shape(op.kernel), strict=True))
            outputs = letters["O"] * letters["I"] if op.depthwise else letters["O"]
            return size(op.result) * size(op.kernel) // max(outputs, 1)
        case relay.ConvBase():
            return size(op.result) * size(op.kernel) // max(op.sizes()[1]["O"], 1)
        case relay.ConvTransposeBase():
            return size(op.data) * size(op.kernel) // max(op.sizes()[1]["I"], 1)
        case relay.DenseBase():
            return size(op.result) * max(shape(op.kernel)[1], 1)
        case relay.MatmulBase():
            return size(op.result) * max(op.matrices()[0][1], 1)
        case relay.AttentionOp():
            return prod(max(d, 1) for d in op.scores()) * (max(shape(op.key)[3], 1) + max(shape(op.value)[3], 1))
        case _:
            return 0


def size(value: SSAValue) -> int:
    """The number of elements of a tensor, where unknown sizes count as 1; 1 for a scalar of control flow."""
    return prod(max(d, 1) for d in shape(value)) if is_tensor(value.type) else 1
