"""Products of two stacks of matrices that are both computed at run time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import rank, shape, tensor
from relay.errors import Unsupported
from relay.lowering.linalg.contraction import products, zero_point
from relay.lowering.linalg.emitter import Emitter, axes
from relay.transforms.location import place


def batch_matmul(e: Emitter, op: relay.BatchMatmulOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over (batch, m, n, k); each operand is read as it is stored."""
    if rank(op.tensor_a) != 3 or shape(op.tensor_a)[0] != shape(op.tensor_b)[0]:
        raise Unsupported(place(op), "broadcasts its leading axes", "run legalize first")
    sources = tensor(op.tensor_a).element_type, tensor(op.tensor_b).element_type
    body = products(sources, (zero_point(op.input_zero_point), zero_point(op.kernel_zero_point)))
    a = axes(4, 0, 3, 1) if op.transpose_a.value.data else axes(4, 0, 1, 3)
    b = axes(4, 0, 2, 3) if op.transpose_b.value.data else axes(4, 0, 3, 2)
    start = e.filled(shape(op.result), op.out_dtype, 0)
    return e.generic([(operands[0], a), (operands[1], b)], [(start, axes(4, 0, 1, 2))], 1, body)
