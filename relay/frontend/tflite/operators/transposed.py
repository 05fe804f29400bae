"""Imports TRANSPOSE_CONV, CONV_3D and CONV_3D_TRANSPOSE."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, f32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import ints
from relay.dialects.relay import Conv2dTransposeOp, Conv3dOp, Conv3dTransposeOp
from relay.frontend.importing.windows import window_padding
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import ALL_CODES, FLOATS, INDICES, Node
from relay.frontend.tflite.operators.convolution import Window, add_bias, product_of_codes, strides_and_padding
from relay.frontend.tflite.table import operator, quantised


@operator("TRANSPOSE_CONV", versions=(1, 5), inputs=(3, 4))
def transpose_conv(importer: Importer, node: Node) -> list[SSAValue]:
    """Import TRANSPOSE_CONV. Inputs: shape of the result, kernel [out, h, w, in], data, bias."""
    kernel, data, bias, out = node.input(1), node.input(2), node.optional(3), node.output()
    node.one_type(FLOATS, kernel, data, bias, out)
    window = scattering_2d(node)
    result = importer.call(Conv2dTransposeOp, importer.value(data), importer.value(kernel), **window, out_dtype=f32)
    return [importer.clip_reals(add_bias(importer, result, bias), node.activation())]


@quantised("TRANSPOSE_CONV", types=ALL_CODES)
def transpose_conv_of_codes(importer: Importer, node: Node) -> list[SSAValue]:
    """Import quantized TRANSPOSE_CONV (inputs: shape of the result, kernel [out, h, w, in], data, bias); the sums are
    rescaled as those of a convolution."""
    kernel, data, bias, out = node.input(1), node.input(2), node.optional(3), node.output()
    match node.types(kernel, data, out):
        case ("INT8", "INT8", "INT8") | ("UINT8", "UINT8", "UINT8") if bias is None or bias.type == "INT32":
            pass
        case ("INT8", "INT16", "INT16") if bias is None or bias.type in INDICES:
            pass
        case _:
            raise node.refuse_types(kernel, data, bias, out)
    window = Window(importer.value(kernel), scattering_2d(node), 0)
    return [product_of_codes(importer, node, qnn.Conv2dTransposeOp, data, bias, window)]


def scattering_2d(node: Node) -> dict[str, Attribute]:
    """The properties of `scattering` for TRANSPOSE_CONV."""
    kernel, data = node.input(1), node.input(2)
    sizes = node.shape(data, 4)[1:3], node.shape(kernel, 4)[1:3], result_shape(node, 4)[1:3]
    return scattering(node, sizes, node.positive("stride_h", "stride_w"), (1, 1))


def result_shape(node: Node, rank: int) -> tuple[int, ...]:
    """The result's shape, which is the constant input 0."""
    dims = node.numbers(node.input(0))
    if len(dims) != rank or min(dims) < 1:
        raise node.malformed(f"the shape of the result is {dims}")
    return dims


def scattering(
    node: Node, sizes: Sequence[tuple[int, ...]], strides: tuple[int, ...], dilation: tuple[int, ...]
) -> dict[str, Attribute]:
    """The properties that state strides, dilation and padding of a transposed convolution; `sizes` are the spatial
    sizes of data, kernel and result. The padding is that of the convolution which is transposed: from the result to the
    data."""
    before: list[int] = []
    after: list[int] = []
    for size, kernel, out, stride, step in zip(*sizes, strides, dilation, strict=True):
        first, _ = window_padding(node.word("padding"), out, kernel, stride, step)
        before.append(first)
        after.append((size - 1) * stride + (kernel - 1) * step + 1 - first - out)
    return {
        "strides": ints(strides),
        "dilation": ints(dilation),
        "padding": ints([*before, *(max(n, 0) for n in after)]),
        "output_padding": ints([max(-n, 0) for n in after]),
    }


@operator("CONV_3D", versions=(1, 1), inputs=(2, 3))
def conv_3d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CONV_3D, with a kernel [d, h, w, in, out]."""
    data, kernel, bias = node.input(0), node.input(1), node.optional(2)
    node.one_type(FLOATS, data, kernel, bias, node.output())
    strides, dilation = _steps(node)
    sizes = node.shape(data, 5)[1:4], node.shape(kernel, 5)[:3]
    properties: dict[str, Attribute] = {
        **strides_and_padding(node, *sizes, strides, dilation),
        "dilation": ints(dilation),
        "kernel_layout": StringAttr("DHWIO"),
        "out_dtype": f32,
    }
    result = importer.call(Conv3dOp, importer.value(data), importer.value(kernel), **properties)
    return [importer.clip_reals(add_bias(importer, result, bias), node.activation())]


@operator("CONV_3D_TRANSPOSE", versions=(1, 1), inputs=(3, 4))
def conv_3d_transpose(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CONV_3D_TRANSPOSE. Inputs: shape of the result, kernel [d, h, w, out, in], data, bias."""
    kernel, data, bias = node.input(1), node.input(2), node.optional(3)
    node.one_type(FLOATS, data, kernel, bias, node.output())
    sizes = node.shape(data, 5)[1:4], node.shape(kernel, 5)[:3], result_shape(node, 5)[1:4]
    properties = scattering(node, sizes, *_steps(node)) | {"kernel_layout": StringAttr("DHWOI"), "out_dtype": f32}
    result = importer.call(Conv3dTransposeOp, importer.value(data), importer.value(kernel), **properties)
    return [importer.clip_reals(add_bias(importer, result, bias), node.activation())]


def _steps(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The strides and dilations of the three spatial axes."""
    return (
        node.positive("stride_d", "stride_h", "stride_w"),
        node.positive("dilation_d_factor", "dilation_h_factor", "dilation_w_factor"),
    )
