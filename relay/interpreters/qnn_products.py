"""Numpy implementation of quantized transposed convolution and matrix product: that of the `relay` op of the same name,
with the same zero points."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array
from relay.interpreters.convolution import conv_transpose
from relay.interpreters.matmul import batch_matmul
from relay.interpreters.meaning import Meanings


def unscaled(op: Operation) -> dict[str, Attribute | None]:
    """The op's properties except its scales: those that the `relay` op of the same name has, too."""
    return {name: attr for name, attr in op.properties.items() if not name.endswith("_scale")}


def conv2d_transpose(op: qnn.Conv2dTransposeOp, data: Array, kernel: Array) -> Array:
    plain = relay.Conv2dTransposeOp.make(op.operands, unscaled(op))
    result = conv_transpose(plain, data, kernel)
    plain.erase()
    return result


def product(op: qnn.BatchMatmulOp, a: Array, b: Array) -> Array:
    plain = relay.BatchMatmulOp.make(op.operands, unscaled(op))
    result = batch_matmul(plain, a, b)
    plain.erase()
    return result


MEANINGS: Meanings = {qnn.Conv2dTransposeOp: conv2d_transpose, qnn.BatchMatmulOp: product}
