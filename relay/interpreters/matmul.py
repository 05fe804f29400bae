"""The formulas of matrix products in numpy."""

from __future__ import annotations

import numpy as np

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.element_types import wider_dtype
from relay.interpreters.meaning import Meanings, number
from relay.interpreters.nn import centred, matrix_product


def batch_matmul(op: relay.MatmulOp | relay.BatchMatmulOp | qnn.BatchMatmulOp, a: Array, b: Array) -> Array:
    """An exact product for each pair of matrices, whose leading axes broadcast."""
    a, b = centred(a, number(op.input_zero_point)), centred(b, number(op.kernel_zero_point))
    a = a.swapaxes(-1, -2) if op.transpose_a.value.data else a
    b = b if op.transpose_b.value.data else b.swapaxes(-1, -2)
    out = wider_dtype(dtype_of(op.out_dtype))
    leading = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*leading, a.shape[-2], b.shape[-2]), out)
    left, right = np.broadcast_to(a, (*leading, *a.shape[-2:])), np.broadcast_to(b, (*leading, *b.shape[-2:]))
    for place in np.ndindex(*leading):
        result[place] = matrix_product(left[place], right[place], out)
    return result


MEANINGS: Meanings = {relay.MatmulOp: batch_matmul, relay.BatchMatmulOp: batch_matmul}
