"""Imports CONV_2D and DEPTHWISE_CONV_2D: integers, floats, and floats with int8 weights ("hybrid")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import Array, ints
from relay.dialects.op import TensorOp
from relay.dialects.relay import BiasAddOp, Conv2dOp
from relay.frontend.importing.builder import multiplier_vectors, number, parameters, product_parameters, scale_attr
from relay.frontend.importing.windows import flat_padding, window_padding
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import INDICES, Node
from relay.frontend.tflite.operators.hybrid import ONE, quantised_lines, scale_sums
from relay.frontend.tflite.profile import rescaling
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import operator
from relay.interpreters.arithmetic import quantize_multipliers


class Window(NamedTuple):
    """The kernel of a convolution, and the properties (strides, padding, dilation, groups, layout of the kernel) that
    its op has for floats and for codes."""

    kernel: SSAValue
    properties: dict[str, Attribute]
    channel_axis: int
    """The dimension of the file's kernel that is the output channels."""


@operator("CONV_2D", versions=(1, 8), inputs=(2, 3), known={"tflm": "INT8", "tvm": "INT8 UINT8"})
def conv_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CONV_2D, with a kernel [out, h, w, in / groups]."""
    data, kernel = node.input(0), node.input(1)
    channels, (_, height, width, per_group) = node.shape(data, 4)[3], node.shape(kernel, 4)
    if per_group < 1 or channels % per_group:
        raise node.malformed(f"a kernel over {per_group} channels does not fit an input of {channels}")
    window = _window(node, (height, width), "OHWI", channels // per_group)
    return _convolve(importer, node, Window(importer.weight(kernel, kernel.shape), window, 0))


@operator("DEPTHWISE_CONV_2D", versions=(1, 7), inputs=(2, 3), known={"tflm": "INT8", "tvm": "INT8 UINT8"})
def depthwise_conv_2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import DEPTHWISE_CONV_2D, whose kernel [1, h, w, in * multiplier] becomes [h, w, in, multiplier]."""
    data, kernel = node.input(0), node.input(1)
    channels, (one, height, width, out) = node.shape(data, 4)[3], node.shape(kernel, 4)
    if one != 1 or channels < 1 or out % channels:
        raise node.malformed(f"a kernel of shape {kernel.shape} does not fit an input of {channels} channels")
    value = importer.weight(kernel, (height, width, channels, out // channels))
    return _convolve(importer, node, Window(value, _window(node, (height, width), "HWOI", channels), 3))


def _window(node: Node, kernel: tuple[int, int], layout: str, groups: int) -> dict[str, Attribute]:
    strides = node.positive("stride_h", "stride_w")
    dilation = node.positive("dilation_h_factor", "dilation_w_factor")
    rest = {"dilation": ints(dilation), "groups": IntegerAttr(groups, i64), "kernel_layout": StringAttr(layout)}
    return strides_and_padding(node, node.input(0).shape[1:3], kernel, strides, dilation) | rest


def strides_and_padding(
    node: Node, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int] = (1, 1)
) -> dict[str, Attribute]:
    """The properties `strides` and `padding` of a window that moves along axes of these sizes."""
    rows = zip(sizes, kernel, strides, dilation, strict=True)
    widths = [window_padding(node.word("padding"), *numbers) for numbers in rows]
    return {"strides": ints(strides), "padding": ints(flat_padding(widths))}


def _convolve(importer: Importer, node: Node, window: Window) -> list[SSAValue]:
    data, kernel, bias, out = node.input(0), node.input(1), node.optional(2), node.output()
    match node.types(data, kernel, out):
        case ("INT8", "INT8", "INT8") | ("UINT8", "UINT8", "UINT8") if bias is None or bias.type == "INT32":
            return [product_of_codes(importer, node, qnn.Conv2dOp, data, bias, window)]
        case ("INT16", "INT8", "INT16") if bias is None or bias.type in INDICES:
            return [product_of_codes(importer, node, qnn.Conv2dOp, data, bias, window)]
        case ("FLOAT32", "FLOAT32", "FLOAT32") if bias is None or bias.type == "FLOAT32":
            result = importer.call(Conv2dOp, importer.value(data), window.kernel, **window.properties, out_dtype=f32)
        case ("FLOAT32", "INT8", "FLOAT32") if bias is None or bias.type == "FLOAT32":
            result = _hybrid(importer, node, window)
        case _:
            raise node.refuse_types(data, kernel, bias, out)
    return [importer.clip_reals(add_bias(importer, result, bias), node.activation())]


def product_of_codes(
    importer: Importer, node: Node, op: type[TensorOp], data: Tensor, bias: Tensor | None, window: Window
) -> SSAValue:
    """A quantized convolution by `op`, transposed or not: `clamp(rescale(sum + bias) + zero point)`, with one
    multiplier or one per output channel."""
    source, target = node.codes(data), node.codes(node.output())
    scales, zero_point = kernel_scales(node, window.channel_axis)
    properties = window.properties | product_parameters(source, scales, zero_point, sum_type(node, bias))
    result = importer.call(op, importer.value(data), window.kernel, **properties)
    result = add_bias(importer, result, bias)
    rounding = importer.numerics.of_sums(data.type).products
    return requantize(
        importer, node, result, (source, scales, target), rounding, data.type == "UINT8" or rounding == "upward"
    )


def requantize(
    importer: Importer,
    node: Node,
    value: SSAValue,
    scales: tuple[Codes, Array, Codes],
    rounding: str,
    single: bool,
) -> SSAValue:
    """Requantize sums of products to the output. `scales` are those of data, kernel and output; the product of the
    first two is computed in float32 if `single`, else in float64."""
    source, kernel, target = scales
    low, high = node.bounds(target, to_even=importer.numerics.bounds_to_even)
    product = source.scale * kernel
    exact = product.astype(np.float64) if single else np.float64(source.scale) * kernel.astype(np.float64)
    reals = exact / np.float64(target.scale)
    properties: dict[str, Attribute] = {
        "input_scale": scale_attr(product),
        **parameters(output=target),
        "min": number(low),
        "max": number(high),
        "out_dtype": importer.element(node.output()),
        **multiplier_vectors(quantize_multipliers(reals)),
        **rescaling(rounding, reals),
    }
    return importer.call(qnn.RequantizeOp, value, **properties)


def sum_type(node: Node, bias: Tensor | None) -> Attribute:
    """The type in which products of quantized values are summed: for 16-bit data i64, unless the bias is i32."""
    return i64 if node.output().type == "INT16" and (bias is None or bias.type == "INT64") else i32


def kernel_scales(node: Node, channel_axis: int) -> tuple[Array, int]:
    """The scales of weights, one or one per output channel, and their zero point (0 for int8 weights)."""
    kernel = node.input(1)
    found = node.quantization(kernel)
    if len(found.scale) > 1 and (found.axis != channel_axis or kernel.type != "INT8"):
        raise node.unsupported(f"{kernel} of {kernel.type} has {len(found.scale)} scales along axis {found.axis}")
    return found.scale, int(found.zero_point[0]) if kernel.type == "UINT8" else 0


def add_bias(importer: Importer, value: SSAValue, bias: Tensor | None) -> SSAValue:
    """The value plus a vector along the last axis; the value itself without a bias."""
    return value if bias is None else importer.call(BiasAddOp, value, importer.value(bias))


def _hybrid(importer: Importer, node: Node, window: Window) -> SSAValue:
    """A hybrid convolution, `float(sum) * (image's scale * kernel's scale)`: each image is quantised at run time,
    asymmetrically if the kernel's scales differ between channels or the convolution is depthwise, else
    symmetrically."""
    scales, _ = kernel_scales(node, window.channel_axis)
    value = importer.value(node.input(0))
    if (scales == scales[0]).all() and window.channel_axis == 0:
        codes, scale = quantised_lines(importer, value, asymmetric=False)
        sums = importer.call(Conv2dOp, codes, window.kernel, **window.properties)
        return scale_sums(importer, sums, scale, scales)
    steps, scale = quantised_lines(importer, value, asymmetric=True)
    sums = importer.call(qnn.Conv2dOp, steps, window.kernel, **window.properties, **product_parameters(ONE, scales))
    return scale_sums(importer, sums, scale, scales)
