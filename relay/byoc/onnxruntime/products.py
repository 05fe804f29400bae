"""Code generators of `onnxruntime` for products: QLinearConv and QGemm, and Conv and Gemm for floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.byoc import rescaling
from relay.byoc.onnxruntime.graph import CONTRIB, SIGN, Graph
from relay.byoc.quantized import Product, Quantization, Window, dtype
from relay.dialects.attributes import Array
from relay.dialects.op import rank, shape


def refusal(product: Product) -> str | None:
    """The reason why a product is not supported; None if it is."""
    if product.window is None and rank(product.data) < 2:
        return "its input is a vector"
    if product.quantization is None:
        return None
    return rescaling.product_refusal(product.quantization)


def write(graph: Graph, product: Product) -> None:
    if product.window is None:
        _dense(graph, product)
    else:
        _convolution(graph, product, product.window)


def _convolution(graph: Graph, product: Product, window: Window) -> None:
    data = graph.read(product.data, first=True)
    kernel = graph.constant(moved(graph, _channels_first(product)))
    attributes: dict[str, Any] = {
        "kernel_shape": window.size,
        "strides": window.strides,
        "dilations": window.dilation,
        "group": product.groups,
        "pads": window.padding,
    }
    bias = [] if product.bias is None else [graph.constant(product.bias)]
    if product.quantization is None:
        name = graph.node("Conv", [data, kernel, *bias], **attributes)
        name = clamped(graph, name, product.low, product.high, np.dtype(np.float32))
    else:
        inputs = [*_operands(graph, product, product.quantization, data, kernel), *_output(graph, product), *bias]
        name = graph.node("QLinearConv", inputs, **attributes)
        name = clamped(graph, name, product.low, product.high, dtype(product.result))
    graph.define(product.result, name, first=True)


def moved(graph: Graph, kernel: Array) -> Array:
    """Return the kernel as the graph stores it. Quantized weights are int8 or uint8, and so is the type that the graph
    stores: if the two differ, 128 is added to or subtracted from the weights, as from their zero point."""
    if kernel.dtype.kind == "f" or kernel.dtype == graph.weights:
        return kernel
    return (kernel.astype(np.int16) + step(graph, kernel)).astype(graph.weights)


def step(graph: Graph, kernel: Array) -> int:
    """The amount that is added to quantized weights if the graph stores them with the other signedness than the IR: 128
    or -128; else 0."""
    if kernel.dtype == graph.weights:
        return 0
    return SIGN if graph.weights == np.uint8 else -SIGN


def _channels_first(product: Product) -> Array:
    """The kernel as [out, in / groups, h, w]; a depthwise kernel as [in * multiplier, 1, h, w]."""
    if not product.depthwise:
        return product.kernel.transpose(0, 3, 1, 2)
    height, width, channels, multiplier = product.kernel.shape
    return product.kernel.transpose(2, 3, 0, 1).reshape(channels * multiplier, 1, height, width)


def _operands(graph: Graph, product: Product, quantization: Quantization, data: str, kernel: str) -> list[str]:
    """The names of data and kernel, each with its scale and zero point."""
    scale = quantization.kernel_scale
    scales = graph.constant(scale if scale.size > 1 else scale.reshape(()))
    zero_point = quantization.kernel_zero_point + step(graph, product.kernel)
    zero = np.full(scale.shape if scale.size > 1 else (), zero_point, graph.weights)
    source = graph.quantization(quantization.input, dtype(product.data))
    return [data, *source, kernel, scales, graph.constant(zero)]


def _output(graph: Graph, product: Product) -> tuple[str, str]:
    assert product.quantization is not None
    return graph.quantization(product.quantization.output, dtype(product.result))


def _dense(graph: Graph, product: Product) -> None:
    """Generate a matrix product; further axes of the data are folded into the first."""
    dims = shape(product.data)
    data = graph.read(product.data)
    if len(dims) != 2:
        data = graph.node("Reshape", [data, graph.integers([-1, dims[-1]])])
    kernel = graph.constant(moved(graph, product.kernel))
    bias = "" if product.bias is None else graph.constant(product.bias)
    if product.quantization is None:
        name = graph.node("Gemm", [data, kernel, bias] if bias else [data, kernel], transB=1)
    else:
        operands = _operands(graph, product, product.quantization, data, kernel)
        name = graph.node("QGemm", [*operands, bias, *_output(graph, product)], CONTRIB, transB=1)
    name = clamped(graph, name, product.low, product.high, dtype(product.result))
    if len(dims) != 2:
        name = graph.node("Reshape", [name, graph.integers(shape(product.result))])
    graph.define(product.result, name)


def clamped(graph: Graph, name: str, low: float | None, high: float | None, type: np.dtype[Any]) -> str:
    """Append a clamp to these bounds; returns the name of the result, or `name` without bounds."""
    if low is None and high is None:
        return name
    if type.kind == "f" and low == 0 and high is None:
        return graph.node("Relu", [name])
    bounds = ["" if bound is None else graph.number(bound, type) for bound in (low, high)]
    return graph.node("Clip", [name, *bounds])
