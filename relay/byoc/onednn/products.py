"""Code generators of `onednn` for convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relay.byoc import rescaling
from relay.byoc.onednn.program import Array, Scaling, Step, Tensor
from relay.byoc.onednn.writer import Post, Writer, clipped, reals, scaling, window_options
from relay.byoc.quantized import Codes, Product, Quantization, Window, dtype
from relay.byoc.refusals import CODES, FLOAT
from relay.dialects.attributes import Array as Numbers
from relay.dialects.op import rank, shape


def refusal(product: Product) -> str | None:
    """The reason why a product is not supported; None if it is."""
    if product.window is None and rank(product.data) < 2:
        return "its input is a vector"
    if dtype(product.result).name not in (FLOAT, *CODES):
        return f"it gives {dtype(product.result)}"
    if product.quantization is None:
        return None
    if product.kernel.dtype != np.int8 or product.quantization.kernel_zero_point != 0:
        return "its kernel has a zero point"
    return rescaling.product_refusal(product.quantization)


def write(writer: Writer, product: Product) -> None:
    if product.window is None:
        _dense(writer, product)
    else:
        _convolution(writer, product, product.window)


def _convolution(writer: Writer, product: Product, window: Window) -> None:
    options = window_options(window)
    if product.quantization is not None and writer.saturates:
        _wide_convolution(writer, product, product.quantization, options)
        return
    source, result = writer.image(writer.read(product.data)), writer.image(writer.define(product.result))
    weights = writer.constant(_channels_first(product))
    writer.emit(
        Step(
            "convolution",
            (source,),
            result,
            weights=weights,
            bias=_bias(writer, product, (product.channels,)),
            options=options,
            scalings=_scalings(product, (0, 1) if len(weights.shape) == 5 else (0,)),
            post=_clamp(product),
        )
    )


def _wide_convolution(
    writer: Writer, product: Product, found: Quantization, options: Mapping[str, Sequence[int]]
) -> None:
    """Generate a quantized convolution in floats, which is exact for sums below 2^24; then apply the scales and the
    bias of each channel."""
    source = writer.real(product.data, Codes(1.0, found.input.zero_point))
    sums, result = (writer.temporary(shape(product.result), FLOAT) for _ in range(2))
    weights = writer.constant(_channels_first(product).astype(np.float32))
    images = writer.image(source), writer.image(sums)
    writer.emit(Step("convolution", images[:1], images[1], weights=weights, options=options))
    scale = np.broadcast_to(np.float64(found.input.scale) * found.kernel_scale.astype(np.float64), product.channels)
    factor = writer.constant(scale.astype(np.float32).reshape(1, 1, 1, -1))
    bias = _bias(writer, product, (1, 1, 1, product.channels))
    if bias is not None:
        scaled = writer.temporary(shape(product.result), FLOAT)
        writer.emit(Step("binary", (sums, factor), scaled, "mul"))
        writer.emit(Step("binary", (scaled, bias), result, "add", post=_clamp(product)))
    else:
        writer.emit(Step("binary", (sums, factor), result, "mul", post=_clamp(product)))
    writer.coded(result, product.result, found.output)


def _channels_first(product: Product) -> Numbers:
    """The kernel as [out, in, h, w]; with groups as [group, out, in, h, w]."""
    kernel, groups = product.kernel, product.groups
    if product.depthwise:
        height, width, channels, multiplier = kernel.shape
        return kernel.transpose(2, 3, 0, 1).reshape(channels, multiplier, 1, height, width)
    first = kernel.transpose(0, 3, 1, 2)
    return first if groups == 1 else first.reshape(groups, first.shape[0] // groups, *first.shape[1:])


def _dense(writer: Writer, product: Product) -> None:
    """Generate a matrix product; further axes of the data are folded into the first."""
    source, result = writer.read(product.data), writer.define(product.result)
    weights = writer.constant(product.kernel).permuted((1, 0))
    writer.emit(
        Step(
            "matmul",
            (_folded(source),),
            _folded(result),
            weights=weights,
            bias=_bias(writer, product, (1, product.channels)),
            scalings=_scalings(product, (1,)),
            post=_clamp(product),
        )
    )


def _folded(found: Tensor) -> Tensor:
    width = found.shape[-1]
    return Tensor.whole(found.buffer, (int(np.prod(found.shape[:-1])), width), found.dtype)


def _bias(writer: Writer, product: Product, dims: Sequence[int]) -> Tensor | None:
    """The bias in real units, since oneDNN adds it to scaled sums."""
    if product.bias is None:
        return None
    bias: Array = product.bias
    if product.quantization is not None:
        scale = np.float64(product.quantization.input.scale) * product.quantization.kernel_scale.astype(np.float64)
        bias = (bias * scale).astype(np.float32)
    return writer.constant(bias.reshape(dims))


def _scalings(product: Product, axes: tuple[int, ...]) -> dict[str, Scaling]:
    """Return the scales and zero points of the product's data, kernel and result, by oneDNN's name of the argument; the
    kernel's scales vary along `axes` of the kernel. Empty for floats."""
    if product.quantization is None:
        return {}
    found = product.quantization
    return {
        "src": scaling(found.input),
        "weights": Scaling(tuple(map(float, found.kernel_scale)), 0, axes),
        "dst": scaling(found.output),
    }


def _clamp(product: Product) -> Post:
    """The clamp as a post-op, in real units, since it precedes the scaling of the result."""
    bounds = product.low, product.high
    return clipped(bounds if product.quantization is None else reals(bounds, product.quantization.output))
