"""xDSL's `linalg` with named ops that it lacks, or prints otherwise than upstream reads them; these are printed in the
generic form, with their regions."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseIntElementsAttr, TensorType
from xdsl.dialects.linalg import Linalg, ops
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)


class NamedOp(IRDLOperation):
    """What a loop nest of this name computes: `inputs` combined by the region and added to `outputs`."""

    inputs = var_operand_def(Attribute)
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


class WindowOp(NamedOp):
    """Sums, or largest numbers, of what windows of images hold."""

    strides = prop_def(DenseIntElementsAttr)
    dilations = prop_def(DenseIntElementsAttr)


class MatmulOp(ops.MatmulOp):
    """xDSL's, printed in the generic form: its custom one leaves out the maps that say that a matrix is transposed."""

    print = Operation.print


@irdl_op_definition
class BatchMatmulOp(NamedOp):
    """`out[b, i, j] += lhs[b, i, k] * rhs[b, k, j]`; with `indexing_maps`, of transposed matrices."""

    name = "linalg.batch_matmul"
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])


@irdl_op_definition
class Conv2DNhwcFhwcQOp(WindowOp):
    """A convolution of codes, less a zero point of the image and one of the kernel: two more inputs."""

    name = "linalg.conv_2d_nhwc_fhwc_q"


@irdl_op_definition
class DepthwiseConv2DNhwcHwcOp(WindowOp):
    """A convolution of each channel: `out[n, y, x, c] += image[n, s*y + t*i, s*x + t*j, c] * kernel[i, j, c]`."""

    name = "linalg.depthwise_conv_2d_nhwc_hwc"


@irdl_op_definition
class DepthwiseConv2DNhwcHwcQOp(WindowOp):
    """A convolution of each channel of codes by itself, less zero points: two more inputs."""

    name = "linalg.depthwise_conv_2d_nhwc_hwc_q"


@irdl_op_definition
class PoolingNhwcMaxOp(WindowOp):
    """The largest number of each window; the second input gives its size."""

    name = "linalg.pooling_nhwc_max"


@irdl_op_definition
class PoolingNhwcMaxUnsignedOp(WindowOp):
    """The largest number without sign of each window."""

    name = "linalg.pooling_nhwc_max_unsigned"


@irdl_op_definition
class PoolingNhwcSumOp(WindowOp):
    """The sum of each window."""

    name = "linalg.pooling_nhwc_sum"


NAMED: tuple[type[Operation], ...] = (
    MatmulOp,
    BatchMatmulOp,
    Conv2DNhwcFhwcQOp,
    DepthwiseConv2DNhwcHwcOp,
    DepthwiseConv2DNhwcHwcQOp,
    PoolingNhwcMaxOp,
    PoolingNhwcMaxUnsignedOp,
    PoolingNhwcSumOp,
)
_NAMES = {op.name for op in NAMED}

NamedLinalg = Dialect(
    "linalg", [*(op for op in Linalg.operations if op.name not in _NAMES), *NAMED], [*Linalg.attributes]
)
