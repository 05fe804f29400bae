"""xDSL's `linalg` with named ops that it lacks, or whose custom form it prints differently from upstream: these are
printed in the generic form, with their regions."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseIntElementsAttr, TensorType
from xdsl.dialects.linalg import Linalg, ops
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)

from relay.dialects.extended import extended


class NamedOp(IRDLOperation):
    """A named op: the region combines elements of `inputs` with the accumulator, an element of `outputs`."""

    inputs = var_operand_def(Attribute)
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


class WindowOp(NamedOp):
    """An op on windows of NHWC images: a convolution or a pooling."""

    strides = prop_def(DenseIntElementsAttr)
    dilations = prop_def(DenseIntElementsAttr)


class MatmulOp(ops.MatmulOp):
    """xDSL's op, printed in the generic form: the custom form leaves out `indexing_maps`, which say that a matrix is
    transposed."""

    print = Operation.print


@irdl_op_definition
class BatchMatmulOp(NamedOp):
    """`out[b, i, j] += lhs[b, i, k] * rhs[b, k, j]`; `indexing_maps` may say that `rhs` is transposed."""

    name = "linalg.batch_matmul"
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])


@irdl_op_definition
class QuantizedMatmulOp(NamedOp):
    """A product of matrices of quantized values; inputs 2 and 3 are the zero points. No matrix is transposed."""

    name = "linalg.quantized_matmul"


@irdl_op_definition
class QuantizedBatchMatmulOp(NamedOp):
    """`linalg.quantized_matmul` for each matrix of a batch."""

    name = "linalg.quantized_batch_matmul"


@irdl_op_definition
class Conv2DNhwcFhwcQOp(WindowOp):
    """A convolution of quantized values; inputs 2 and 3 are the zero points of the image and of the kernel."""

    name = "linalg.conv_2d_nhwc_fhwc_q"


@irdl_op_definition
class DepthwiseConv2DNhwcHwcOp(WindowOp):
    """A depthwise convolution: `out[n, y, x, c] += image[n, s*y + t*i, s*x + t*j, c] * kernel[i, j, c]`."""

    name = "linalg.depthwise_conv_2d_nhwc_hwc"


@irdl_op_definition
class DepthwiseConv2DNhwcHwcQOp(WindowOp):
    """A depthwise convolution of quantized values; inputs 2 and 3 are the zero points of image and kernel."""

    name = "linalg.depthwise_conv_2d_nhwc_hwc_q"


@irdl_op_definition
class PoolingNhwcMaxOp(WindowOp):
    """The maximum of each window; the shape of the second input is the window's."""

    name = "linalg.pooling_nhwc_max"


@irdl_op_definition
class PoolingNhwcMaxUnsignedOp(WindowOp):
    """The maximum of each window, of unsigned integers."""

    name = "linalg.pooling_nhwc_max_unsigned"


@irdl_op_definition
class PoolingNhwcSumOp(WindowOp):
    """The sum of each window."""

    name = "linalg.pooling_nhwc_sum"


NamedLinalg = extended(
    Linalg,
    [
        MatmulOp,
        BatchMatmulOp,
        QuantizedMatmulOp,
        QuantizedBatchMatmulOp,
        Conv2DNhwcFhwcQOp,
        DepthwiseConv2DNhwcHwcOp,
        DepthwiseConv2DNhwcHwcQOp,
        PoolingNhwcMaxOp,
        PoolingNhwcMaxUnsignedOp,
        PoolingNhwcSumOp,
    ],
)
