"""Code generators of `xnnpack` for CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""

from __future__ import annotations

import numpy as np

from relay.byoc import rescaling
from relay.byoc.quantized import Product, Window, dtype
from relay.byoc.xnnpack.model import OptionValue
from relay.byoc.xnnpack.writer import Writer, activation_refusal, code_activation, float_activation
from relay.dialects.op import rank, shape
from relay.frontend.importing.windows import window_padding


def refusal(product: Product) -> str | None:
    """The reason why a product is not supported; None if it is."""
    if product.window is None and rank(product.data) < 2:
        return "its input is a vector"
    found = activation_refusal(_activation(product))
    if found is not None or product.quantization is None:
        return found
    if not dtype(product.data) == product.kernel.dtype == dtype(product.result):
        return f"it multiplies {dtype(product.data)} with {product.kernel.dtype}"
    if product.kernel.dtype == np.int8 and product.quantization.kernel_zero_point != 0:
        return "its int8 kernel has a zero point"
    if product.kernel.dtype == np.uint8 and product.quantization.per_channel:
        return "its uint8 kernel has a scale per channel"
    return rescaling.product_refusal(product.quantization)


def write(writer: Writer, product: Product) -> None:
    """Write a product as one operator, preceded by a PAD if the padding is neither SAME nor VALID."""
    activation: OptionValue = _activation(product) or "NONE"
    data = writer.read(product.data, None if product.quantization is None else product.quantization.input)
    if product.window is None:
        options = {
            "fused_activation_function": activation,
            "keep_num_dims": rank(product.data) != 2,
        }
        inputs = [data, _kernel(writer, product), _bias(writer, product)]
        writer.emit("FULLY_CONNECTED", inputs, product.result, options)
        return
    padding = _padding(product.window, shape(product.data)[1:3])
    if padding is None:
        data, padding = _padded(writer, product, product.window, data), "VALID"
    options = {
        "padding": padding,
        "stride_h": product.window.strides[0],
        "stride_w": product.window.strides[1],
        "dilation_h_factor": product.window.dilation[0],
        "dilation_w_factor": product.window.dilation[1],
        "fused_activation_function": activation,
    }
    kind = "CONV_2D"
    if product.depthwise:
        kind = "DEPTHWISE_CONV_2D"
        options["depth_multiplier"] = product.kernel.shape[3]
    writer.emit(kind, [data, _kernel(writer, product), _bias(writer, product)], product.result, options)


def _activation(product: Product) -> str | None:
    bounds = product.low, product.high
    if product.quantization is None:
        return float_activation(bounds)
    return code_activation(bounds, product.quantization.output, dtype(product.result))


def _kernel(writer: Writer, product: Product) -> int:
    kernel = product.kernel.reshape(1, *product.kernel.shape[:2], -1) if product.depthwise else product.kernel
    if product.quantization is None:
        return writer.model.constant(kernel)
    quantization, axis = product.quantization, 3 if product.depthwise else 0
    return writer.model.constant(kernel, quantization.kernel_scale, quantization.kernel_zero_point, axis)


def _bias(writer: Writer, product: Product) -> int:
    """The bias tensor; zeros without a bias, since XNNPACK only takes convolutions with one."""
    if product.quantization is None:
        zeros = np.zeros(product.channels, np.float32)
        return writer.model.constant(zeros if product.bias is None else product.bias)
    scale = np.float32(product.quantization.input.scale) * product.quantization.kernel_scale
    zeros = np.zeros(product.channels, np.int32)
    return writer.model.constant(zeros if product.bias is None else product.bias, scale)


def _padding(window: Window, sizes: tuple[int, ...]) -> str | None:
    """The padding of a convolution as TFLite names it, SAME or VALID; None if it is neither. `sizes` are the height and
    width of the input."""
    top, left, bottom, right = window.padding
    if window.padding == (0, 0, 0, 0):
        return "VALID"
    rows = zip(sizes, window.size, window.strides, window.dilation, strict=True)
    same = [window_padding("SAME", *numbers) for numbers in rows]
    return "SAME" if same == [(top, bottom), (left, right)] else None


def _padded(writer: Writer, product: Product, window: Window, data: int) -> int:
    """Add a PAD operator to the TFLite model that pads tensor number `data`, the product's input, by the window's
    padding, with elements that stand for 0. Returns the number of the padded tensor."""
    top, left, bottom, right = window.padding
    batch, height, width, channels = shape(product.data)
    codes = None if product.quantization is None else product.quantization.input
    sizes = (batch, height + top + bottom, width + left + right, channels)
    result = writer.model.tensor(sizes, dtype(product.data), codes)
    widths = writer.model.constant(np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
    writer.model.operator("PAD", [data, widths], [result])
    return result
