"""Transposed convolution, and products of two matrices that are both computed at run time."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, i32
from xdsl.irdl import irdl_op_definition, prop_def

from relay.dialects.qnn.nn import QnnProductOp
from relay.dialects.relay.convolution import ConvTransposeBase
from relay.dialects.relay.matmul import TRUE, MatmulBase


@irdl_op_definition
class Conv2dTransposeOp(QnnProductOp, ConvTransposeBase):
    """Transposed convolution of `data - input_zero_point` with `kernel - kernel_zero_point` over H and W, in i32
    (wrapping) or i64; see `relay.nn.conv2d_transpose`. The result has scale `input_scale * kernel_scale`."""

    name = "qnn.conv2d_transpose"


@irdl_op_definition
class BatchMatmulOp(MatmulBase):
    """`(a - input_zero_point) @ (b - kernel_zero_point)` of stacks of quantized matrices, in i32 (wrapping) or i64; see
    `relay.nn.batch_matmul`. The result has scale `input_scale * kernel_scale`. By default b is [..., n, k]."""

    name = "qnn.batch_matmul"
    transpose_b = prop_def(BoolAttr, default_value=TRUE)
    input_scale = prop_def(FloatAttr)
    input_zero_point = prop_def(IntegerAttr)
    kernel_scale = prop_def(FloatAttr)
    kernel_zero_point = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))
