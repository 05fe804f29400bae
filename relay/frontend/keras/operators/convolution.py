"""Convolutions, pools and resizing of images. Source: keras/src/layers/convolutional, pooling, backend/jax/nn.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.resizing import Rule, resized
from relay.frontend.importing.windows import ADAPTIVE, SPATIAL, convolved, flat_padding, pooled, transposed_convolved
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer
from relay.frontend.keras.operators.activations import activated
from relay.frontend.keras.table import layer


def spatial_axes(importer: Importer, node: Layer, value: SSAValue) -> list[int]:
    """The axes between batch and channels."""
    count = importer.rank(value) - 2
    if count not in SPATIAL:
        raise node.malformed(f"takes {value.type}, which has {count} spatial axes")
    return [axis + (1 if node.last else 2) for axis in range(count)]


def padded(
    importer: Importer, node: Layer, value: SSAValue, cells: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]]:  # fmt: skip
    """Elements before and after each spatial axis; for `same` the result has ceil(size / stride) positions."""
    mode = node.word("padding", "valid")
    spans = [(c - 1) * d + 1 for c, d in zip(cells, dilations, strict=True)]
    if mode == "valid":
        return [(0, 0)] * len(cells)
    if mode == "causal":
        return [(span - 1, 0) for span in spans]
    if mode != "same":
        raise node.unsupported(f"has the padding {mode[:40]!r}")
    found: list[tuple[int, int]] = []
    for axis, span, stride in zip(spatial_axes(importer, node, value), spans, strides, strict=True):
        size = importer.shape(value)[axis]
        if size == DYNAMIC and stride != 1:
            raise node.unsupported(f"pads an axis of unknown size, of {value.type}", "give its shapes")
        more = max((-(-size // stride) - 1) * stride + span - size, 0) if stride != 1 else span - 1
        found.append((more // 2, more - more // 2))
    return found


def kernel_of(importer: Importer, node: Layer, name: str, kernel: Array) -> SSAValue:
    """A kernel [spatial axes, in, out] with `out` first, and `in` where the data has its channels."""
    *spatial, inner, out = range(kernel.ndim)
    order = (out, *spatial, inner) if node.last else (out, inner, *spatial)
    return importer.weight(node, name, np.ascontiguousarray(kernel.transpose(order)))


def finished(importer: Importer, node: Layer, found: SSAValue, bias: Array | None) -> SSAValue:
    """The bias, and the activation."""
    if bias is not None:
        axis = importer.rank(found) - 1 if node.last else 1
        found = importer.call(relay.BiasAddOp, found, importer.weight(node, "bias", bias), axis=axis)
    return activated(importer, node, found)


def _names(node: Layer, *names: str) -> dict[str, Array]:
    return node.weights(*names, *["bias"] * node.flag("use_bias", True))


def _numbers(node: Layer, count: int, strides: str = "strides") -> tuple[list[int], list[int]]:
    """Strides and dilations."""
    return node.each(strides, count, 1), node.each("dilation_rate", count, 1)


@layer("Conv1D", "Conv2D", "Conv3D")
def convolution(importer: Importer, node: Layer) -> SSAValue:
    x, weights = node.value(), _names(node, "kernel")
    cells = weights["kernel"].shape[: len(spatial_axes(importer, node, x))]
    strides, dilations = _numbers(node, len(cells))
    padding = padded(importer, node, x, cells, strides, dilations)
    kernel = kernel_of(importer, node, "kernel", weights["kernel"])
    found = convolved(importer, x, kernel, strides, dilations, padding, node.integer("groups", 1), node.last)
    return finished(importer, node, found, weights.get("bias"))


def depthwise(importer: Importer, node: Layer, x: SSAValue, kernel: Array, name: str) -> SSAValue:
    """Each channel by itself, with a kernel [spatial axes, channels, multiplier]."""
    count = len(spatial_axes(importer, node, x))
    *cells, channels, multiplier = kernel.shape
    strides, dilations = _numbers(node, count)
    padding = padded(importer, node, x, cells, strides, dilations)
    if count == 2 and node.last:
        kept = {"strides": strides, "dilation": dilations, "padding": flat_padding(padding), "groups": channels}
        value, element = importer.weight(node, name, kernel), importer.element(x)
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWOI"}
        return importer.call(relay.Conv2dOp, x, value, **kept, **layouts, out_dtype=element)
    value = kernel_of(importer, node, name, kernel.reshape(*cells, 1, channels * multiplier))
    return convolved(importer, x, value, strides, dilations, padding, channels, node.last)


@layer("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise_convolution(importer: Importer, node: Layer) -> SSAValue:
    weights = _names(node, "kernel")
    found = depthwise(importer, node, node.value(), weights["kernel"], "kernel")
    return finished(importer, node, found, weights.get("bias"))


@layer("SeparableConv1D", "SeparableConv2D")
def separable_convolution(importer: Importer, node: Layer) -> SSAValue:
    """Each channel by itself, and then all channels of each position."""
    weights = _names(node, "depthwise_kernel", "pointwise_kernel")
    found = depthwise(importer, node, node.value(), weights["depthwise_kernel"], "depthwise_kernel")
    value = kernel_of(importer, node, "pointwise_kernel", weights["pointwise_kernel"])
    ones = [1] * len(spatial_axes(importer, node, found))
    found = convolved(importer, found, value, ones, ones, [(0, 0)] * len(ones), 1, node.last)
    return finished(importer, node, found, weights.get("bias"))


@layer("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def transposed_convolution(importer: Importer, node: Layer) -> SSAValue:
    """What `valid` leaves out of a stride is 0; `same` gives `size * stride` positions."""
    x, weights = node.value(), _names(node, "kernel")
    kernel = weights["kernel"]
    count = len(spatial_axes(importer, node, x))
    *cells, _, _ = kernel.shape
    strides, dilations = _numbers(node, count)
    extra = node.each("output_padding", count) if node.config.get("output_padding") is not None else [None] * count
    mode = node.word("padding", "valid")
    if mode not in ("valid", "same"):
        raise node.unsupported(f"has the padding {mode[:40]!r}")
    padding, behind = list[tuple[int, int]](), list[int]()
    for size, stride, dilation, own in zip(cells, strides, dilations, extra, strict=True):
        span = (size - 1) * dilation + 1
        if mode == "valid":
            before, after = 0, -(max(span, stride) - span if own is None else own)
        else:
            whole = stride + span - 2 if own is None else span + span % 2 - 2 + own
            left = min(whole // 2 + whole % 2, span - 1)
            before, after = span - 1 - left, span - 1 - (whole - left)
        padding.append((before, max(after, 0)))
        behind.append(max(-after, 0))
    value = kernel_of(importer, node, "kernel", kernel)
    found = transposed_convolved(importer, x, value, strides, dilations, padding, behind, 1, node.last)
    return finished(importer, node, found, weights.get("bias"))


@layer(*(f"{kind}Pooling{n}D" for kind in ("Max", "Average") for n in SPATIAL))
def pool(importer: Importer, node: Layer) -> SSAValue:
    """Averages of the elements that lie inside the image."""
    x = node.value()
    count = len(spatial_axes(importer, node, x))
    cells = node.each("pool_size", count)
    strides = node.each("strides", count) if node.config.get("strides") is not None else cells
    padding = padded(importer, node, x, cells, strides, [1] * count)
    kind = "MaxPool" if node.kind.startswith("Max") else "AveragePool"
    return pooled(importer, kind, x, cells, strides, [1] * count, padding, last=node.last)


@layer(*(f"Global{kind}Pooling{n}D" for kind in ("Max", "Average") for n in SPATIAL))
def global_pool(importer: Importer, node: Layer) -> SSAValue:
    x = node.value()
    op = relay.MaxOp if "Max" in node.kind else relay.MeanOp
    return importer.call(op, x, axis=spatial_axes(importer, node, x), keepdims=node.flag("keepdims"))


@layer(*(f"Adaptive{kind}Pooling{n}D" for kind in ("Max", "Average") for n in SPATIAL))
def adaptive_pool(importer: Importer, node: Layer) -> SSAValue:
    x = node.value()
    count = len(spatial_axes(importer, node, x))
    layout = f"N{SPATIAL[count]}C" if node.last else f"NC{SPATIAL[count]}"
    op = ADAPTIVE["max" if "Max" in node.kind else "avg"][count]
    return importer.call(op, x, output_size=node.each("output_size", count), layout=layout)


_RULES = {
    "nearest": Rule("nearest", "half_pixel", "round_prefer_ceil", False, -0.5, False),
    "bilinear": Rule("linear", "half_pixel", "", False, -0.5, False),
    "bicubic": Rule("cubic", "half_pixel", "", False, -0.5, True),
}


def _resized(importer: Importer, node: Layer, x: SSAValue, sizes: Sequence[int], mode: str) -> SSAValue:
    """Resized along the spatial axes, which must be known."""
    if mode not in _RULES:
        raise node.unsupported(f"has the interpolation {mode[:40]!r}", f"{', '.join(_RULES)} are supported")
    axes, rule = spatial_axes(importer, node, x), _RULES[mode]
    dims = [importer.shape(x)[axis] for axis in axes]
    if DYNAMIC in dims:
        raise node.unsupported(f"resizes {x.type}", "give its shapes")
    if dims == [*sizes]:
        return x
    if mode == "bicubic" or len(dims) != 2:
        return resized(importer, x, rule, {a: (s / d, s) for a, s, d in zip(axes, sizes, dims, strict=True)})
    method = {"method": "nearest_neighbor" if mode == "nearest" else "linear", "rounding_method": rule.nearest}
    layout, place = "NHWC" if node.last else "NCHW", rule.coordinates
    return importer.call(relay.Resize2dOp, x, size=sizes, coordinate_transformation_mode=place, layout=layout, **method)


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def upsampling(importer: Importer, node: Layer) -> SSAValue:
    """Each element as often as the factors say, or interpolated between them."""
    x = node.value()
    axes = spatial_axes(importer, node, x)
    factors, mode = node.each("size", len(axes)), node.word("interpolation", "nearest")
    if mode != "nearest":
        sizes = [importer.shape(x)[axis] * factor for axis, factor in zip(axes, factors, strict=True)]
        return _resized(importer, node, x, sizes, mode)
    for axis, factor in zip(axes, factors, strict=True):
        x = importer.call(relay.RepeatOp, x, repeats=factor, axis=axis)
    return x


@layer("Resizing")
def resizing(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"crop_to_aspect_ratio": False, "pad_to_aspect_ratio": False, "antialias": False})
    x = importer.real(node.value())
    return _resized(importer, node, x, [node.integer("height"), node.integer("width")], node.word("interpolation"))


@layer("CenterCrop")
def center_crop(importer: Importer, node: Layer) -> SSAValue:
    x = importer.real(node.value())
    bounds: dict[int, tuple[int, int]] = {}
    for axis, name in zip(spatial_axes(importer, node, x), ("height", "width"), strict=True):
        size, wanted = importer.shape(x)[axis], node.integer(name)
        if size == DYNAMIC or wanted > size:
            raise node.unsupported(f"crops {x.type} to a {name} of {wanted}", "resize it")
        bounds[axis] = ((size - wanted) // 2, (size - wanted) // 2 + wanted)
    return importer.slice(x, bounds)
