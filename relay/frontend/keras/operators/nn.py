"""Imports layers of networks: convolutions, pools, paddings, resizing, normalizations, layers that scale their input.

Source: keras/src/layers, backend/jax/nn.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing import windows
from relay.frontend.importing.formulas import Scalar, normed
from relay.frontend.importing.paddings import padded
from relay.frontend.importing.resizing import Rule, resized
from relay.frontend.importing.windows import SPATIAL
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_list
from relay.frontend.keras.operators.activations import activated
from relay.frontend.keras.table import TABLE, layer, op
from relay.interpreters.arithmetic import code_range

Weights = dict[str, Array]
Window = tuple[list[int], list[int], list[tuple[int, int]]]
"""Strides, dilations, and padding before and after, for each spatial axis."""


def _spatial(importer: Importer, node: Layer, value: SSAValue) -> list[int]:
    """The spatial axes: those between batch and channels, in either layout."""
    count = importer.rank(value) - 2
    if count not in SPATIAL:
        raise node.malformed(f"takes {value.type}, which has {count} spatial axes")
    return [axis + (1 if node.last else 2) for axis in range(count)]


def _window(importer: Importer, node: Layer, x: SSAValue, cells: Sequence[int], pools: bool = False) -> Window:
    """The strides, dilations and padding of a window with this many cells along each axis. `pools`: the strides are the
    window's sizes unless the layer states some."""
    axes = _spatial(importer, node, x)
    cells, count = cells[: len(axes)], len(axes)
    whole = pools and node.entry("strides") is None
    strides = [*cells] if whole else node.each("strides", count, 1)
    dilations = node.each("dilation_rate", count, 1)
    spans = windows.spans_of(cells, dilations)
    match node.one_of("padding", ("valid", "same", "causal")):
        case "same":
            padding = windows.same_padding(importer, [importer.shape(x)[axis] for axis in axes], spans, strides)
        case "causal":
            padding = [(span - 1, 0) for span in spans]
        case _:
            padding = [(0, 0)] * count
    return strides, dilations, padding


def _kernel(importer: Importer, node: Layer, name: str, kernel: Array) -> SSAValue:
    """A kernel [spatial axes, in, out] transposed to have `out` first, and `in` where the data has its channels."""
    *spatial, inner, out = range(kernel.ndim)
    order = (out, *spatial, inner) if node.last else (out, inner, *spatial)
    return importer.weight(node, name, np.ascontiguousarray(kernel.transpose(order)))


def _convolved(importer: Importer, node: Layer, x: SSAValue, kernels: Weights) -> SSAValue:
    window = _window(importer, node, x, kernels["kernel"].shape)
    kernel = _kernel(importer, node, "kernel", kernels["kernel"])
    return windows.convolved(importer, x, kernel, *window, node.integer("groups", 1), node.last)


def _depthwise(importer: Importer, node: Layer, x: SSAValue, kernels: Weights) -> SSAValue:
    """A depthwise convolution with a kernel [spatial axes, channels, multiplier]."""
    name, kernel = next(iter(kernels.items()))
    *cells, channels, multiplier = kernel.shape
    strides, dilations, padding = window = _window(importer, node, x, cells)
    if len(cells) == 2 and node.last:
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWOI", "out_dtype": importer.element(x)}
        kept = {"strides": strides, "dilation": dilations, "padding": windows.flat_padding(padding), "groups": channels}
        return importer.call(relay.Conv2dOp, x, importer.weight(node, name, kernel), **kept, **layouts)
    value = _kernel(importer, node, name, kernel.reshape(*cells, 1, channels * multiplier))
    return windows.convolved(importer, x, value, *window, channels, node.last)


def _separable(importer: Importer, node: Layer, x: SSAValue, kernels: Weights) -> SSAValue:
    """A separable convolution: depthwise, followed by a pointwise one."""
    found = _depthwise(importer, node, x, kernels)
    value = _kernel(importer, node, "pointwise_kernel", kernels["pointwise_kernel"])
    ones = [1] * len(_spatial(importer, node, found))
    return windows.convolved(importer, found, value, ones, ones, [(0, 0)] * len(ones), 1, node.last)


def _transposed(importer: Importer, node: Layer, x: SSAValue, kernels: Weights) -> SSAValue:
    """A transposed convolution; with padding `valid`, elements of the result that no window covers are 0; with `same`,
    the result has `size * stride` elements along each axis."""
    kernel = kernels["kernel"]
    count = len(_spatial(importer, node, x))
    strides, dilations = node.each("strides", count, 1), node.each("dilation_rate", count, 1)
    given = node.entry("output_padding") is not None
    extra = node.each("output_padding", count) if given else [None] * count
    valid = node.one_of("padding", ("valid", "same")) == "valid"
    padding, behind = list[tuple[int, int]](), list[int]()
    for span, stride, own in zip(windows.spans_of(kernel.shape[:count], dilations), strides, extra, strict=True):
        before, after = 0, min(span - stride, 0) if own is None else -own
        if not valid:
            whole = stride + span - 2 if own is None else span + span % 2 - 2 + own
            left = min(-(-whole // 2), span - 1)
            before, after = span - 1 - left, span - 1 - (whole - left)
        padding.append((before, max(after, 0)))
        behind.append(max(-after, 0))
    value = _kernel(importer, node, "kernel", kernel)
    return windows.transposed_convolved(importer, x, value, strides, dilations, padding, behind, 1, node.last)


_CONVOLUTIONS: dict[str, Callable[[Importer, Layer, SSAValue, Weights], SSAValue]] = {
    **{f"Conv{n}D": _convolved for n in SPATIAL},
    **{f"Conv{n}DTranspose": _transposed for n in SPATIAL},
    **{f"DepthwiseConv{n}D": _depthwise for n in (1, 2)},
    **{f"SeparableConv{n}D": _separable for n in (1, 2)},
}


@layer(*_CONVOLUTIONS)
def convolution(importer: Importer, node: Layer) -> SSAValue:
    """Import a convolution layer: products, bias and activation."""
    names = ["depthwise_kernel", "pointwise_kernel"] if node.kind.startswith("Separable") else ["kernel"]
    weights = node.weights(*names, *["bias"] * node.flag("use_bias", True))
    bias = weights.pop("bias", None)
    found = _CONVOLUTIONS[node.kind](importer, node, importer.real(node.value()), weights)
    if bias is not None:
        axis = importer.rank(found) - 1 if node.last else 1
        found = importer.call(relay.BiasAddOp, found, importer.weight(node, "bias", bias), axis=axis)
    return activated(importer, node, found)


@layer(*(f"{place}{kind}Pooling{n}D" for place in ("", "Global", "Adaptive") for kind in ("Max", "Average")
         for n in SPATIAL))  # fmt: skip
def pool(importer: Importer, node: Layer) -> SSAValue:
    """Import a pooling layer: over windows, globally, or adaptively; averages only count elements inside the image."""
    largest = "Max" in node.kind
    x = node.value() if largest else importer.real(node.value())
    axes = _spatial(importer, node, x)
    if node.kind.startswith("Global"):
        kind = relay.MaxOp if largest else relay.MeanOp
        return importer.call(kind, x, axis=axes, keepdims=node.flag("keepdims"))
    if node.kind.startswith("Adaptive"):
        kind, spatial = windows.ADAPTIVE["max" if largest else "avg"][len(axes)], SPATIAL[len(axes)]
        layout = f"N{spatial}C" if node.last else f"NC{spatial}"
        return importer.call(kind, x, output_size=node.each("output_size", len(axes)), layout=layout)
    cells = node.each("pool_size", len(axes))
    window = _window(importer, node, x, cells, pools=True)
    return windows.pooled(importer, "MaxPool" if largest else "AveragePool", x, cells, *window, last=node.last)


_RULES = {
    "nearest": Rule("nearest", "half_pixel", "round_prefer_ceil", False, -0.5, False),
    "bilinear": Rule("linear", "half_pixel", "", False, -0.5, False),
    "bicubic": Rule("cubic", "half_pixel", "", False, -0.5, True),
}


def _resized(importer: Importer, node: Layer, x: SSAValue, sizes: Sequence[int]) -> SSAValue:
    axes, rule = _spatial(importer, node, x), _RULES[node.one_of("interpolation", [*_RULES])]
    rows = zip(axes, sizes, importer.static(x, axes), strict=True)
    return resized(importer, x, rule, {axis: (size / own, size) for axis, size, own in rows})


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def upsampling(importer: Importer, node: Layer) -> SSAValue:
    """Import UpSampling: elements repeated by the factors, or interpolated."""
    x = node.value()
    axes = _spatial(importer, node, x)
    factors = node.each("size", len(axes))
    if node.word("interpolation", "nearest") != "nearest":
        pairs = zip(importer.static(x, axes), factors, strict=True)
        return _resized(importer, node, x, [size * factor for size, factor in pairs])
    for axis, factor in zip(axes, factors, strict=True):
        x = importer.call(relay.RepeatOp, x, repeats=factor, axis=axis)
    return x


@layer("Resizing")
def resizing(importer: Importer, node: Layer) -> SSAValue:
    """Import Resizing; integer images are rounded back to their type."""
    node.refuse({"crop_to_aspect_ratio": False, "pad_to_aspect_ratio": False, "antialias": False})
    x = node.value()
    found = _resized(importer, node, importer.real(x), [node.integer("height"), node.integer("width")])
    if (dtype := importer.dtype(x)).kind in "iu":
        found = Scalar(importer, found).to_even().between(*code_range(dtype)).value
    return importer.cast(found, importer.element(x))


@layer("CenterCrop")
def center_crop(importer: Importer, node: Layer) -> SSAValue:
    x = importer.real(node.value())
    axes, bounds = _spatial(importer, node, x), dict[int, tuple[int, int]]()
    for axis, size, name in zip(axes, importer.static(x, axes), ("height", "width"), strict=True):
        wanted = node.integer(name)
        if wanted > size:
            raise node.unsupported(f"crops {x.type} to a {name} of {wanted}", "resize it")
        bounds[axis] = ((size - wanted) // 2, (size - wanted) // 2 + wanted)
    return importer.slice(x, bounds)


@layer(*(f"{kind}{n}D" for kind in ("ZeroPadding", "Cropping") for n in SPATIAL))
def sides(importer: Importer, node: Layer) -> SSAValue:
    """Import ZeroPadding and Cropping of the spatial axes."""
    x, name = node.value(), "padding" if node.kind.startswith("Zero") else "cropping"
    axes, given = _spatial(importer, node, x), node.entry(name)
    rows = [given] * len(axes) if isinstance(given, int) or len(axes) == 1 else given
    if not is_list(rows) or len(rows) != len(axes):
        raise node.malformed(f"{name} is {str(given)[:80]}")
    widths: dict[int, tuple[int, int]] = {}
    for axis, row in zip(axes, rows, strict=True):
        numbers = node.integers_of(row, name)
        if min(numbers) < 0 or len(numbers) > 2:
            raise node.malformed(f"{name} is {numbers}")
        widths[axis] = (numbers[0], numbers[-1])
    if name == "padding":
        return padded(importer, x, widths)
    for size, width in zip(importer.static(x, axes), widths.values(), strict=True):
        if sum(width) >= size:
            raise node.malformed(f"crops {sum(width)} elements of {x.type}")
    return padded(importer, x, {axis: (-before, -after) for axis, (before, after) in widths.items()})


def _vectors(importer: Importer, node: Layer, shape: Sequence[int], *statistics: str) -> list[SSAValue]:
    """The layer's scale and offset vectors (ones and zeros if the layer has none), followed by the variables named
    `statistics`."""
    own = ["gamma"] * node.flag("scale", True) + ["beta"] * node.flag("center", True)
    weights = node.weights(*own, *statistics)
    missing = {"gamma": np.ones(shape, np.float32), "beta": np.zeros(shape, np.float32)}
    return [importer.weight(node, name, (missing | weights)[name]) for name in (*missing, *statistics)]


@layer("BatchNormalization", "GroupNormalization")
def of_channels(importer: Importer, node: Layer) -> SSAValue:
    """Import BatchNormalization by the trained mean and variance, or GroupNormalization by the mean and variance of
    each group of channels; if `groups` is -1, each channel is a group."""
    x, axis = node.value(), node.along(node.value(), -1)
    channels, kept = importer.static(x, [axis]), {"axis": axis, "epsilon": node.real("epsilon", 1e-3)}
    if node.kind == "BatchNormalization":
        names = ["moving_mean", "moving_variance"]
        renorm = ["moving_stddev", "renorm_mean", "renorm_stddev"] * node.flag("renorm")  # only needed for training
        vectors = _vectors(importer, node, channels, *names, *renorm)
        return importer.call(relay.BatchNormOp, importer.real(x), *vectors[:4], **kept)
    groups = node.integer("groups", 32)
    vectors = _vectors(importer, node, channels)
    return importer.call(relay.GroupNormOp, x, *vectors, num_groups=channels[0] if groups == -1 else groups, **kept)


@layer("LayerNormalization")
def layer_normalization(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"rms_scaling": False})
    x = node.value()
    axes = sorted(node.axes(x, -1))
    vectors = _vectors(importer, node, importer.static(x, axes))
    return normed(importer, x, axes, relay.LayerNormOp, vectors, node.real("epsilon", 1e-3))


@layer("RMSNormalization")
@op("RMSNorm", "RmsNormalization")
def rms(importer: Importer, node: Layer) -> SSAValue:
    """Import RMSNormalization; a scale along the last axis is part of the op, any other is multiplied afterwards."""
    x = importer.real(node.x)
    axes = sorted(node.axes(x, -1))
    sizes, own = importer.static(x, axes), node.kind == "RMSNormalization"
    scale = importer.weight(node, "scale", node.weights("scale")["scale"]) if own else node.optional(1, "scale")
    inside = scale is not None and axes == [importer.rank(x) - 1] and [*importer.shape(scale)] == sizes
    vector = scale if scale is not None and inside else importer.unnamed(np.ones(sizes, np.float32))
    found = normed(importer, x, axes, relay.RmsNormOp, [vector], node.real("epsilon", 1e-7))
    found = found if scale is None or inside else importer.call(relay.MultiplyOp, found, scale)
    return importer.cast(found, importer.element(node.x))


@layer("UnitNormalization")
@op("Normalize")
def normalize(importer: Importer, node: Layer) -> SSAValue:
    """Import UnitNormalization: divide by the square root of the sum of squares, which is at least epsilon."""
    node.refuse({"order": 2})
    x = importer.real(node.x)
    return importer.call(relay.L2NormalizeOp, x, axis=node.axes(x, -1), eps=node.real("epsilon", 1e-12) ** 2)


def _numbers(node: Layer, name: str) -> Array:
    """A configuration entry that is a number or a list of numbers, as an array."""
    given = node.entry(name)
    if not isinstance(given, int | float) and not is_list(given):
        raise node.malformed(f"{name} is {str(given)[:80]}, no number")
    return np.asarray(given, np.float32)


@layer("Rescaling")
def rescaling(importer: Importer, node: Layer) -> SSAValue:
    x = Scalar(importer, importer.real(node.value()))
    scale, offset = (Scalar(importer, importer.unnamed(_numbers(node, name))) for name in ("scale", "offset"))
    return (x * scale + offset).value


TABLE["LayerScale"] = lambda importer, node: importer.call(
    relay.MultiplyOp, node.value(), importer.weight(node, "gamma", node.weights("gamma")["gamma"])
)
"""Import LayerScale: a factor for each channel, the last axis. Source: keras/src/applications/convnext.py."""


@layer("Normalization")
def normalization(importer: Importer, node: Layer) -> SSAValue:
    """Import Normalization: `(x - mean) / max(sqrt(variance), 1e-7)`, with statistics that are given or were
    adapted."""
    x = importer.real(node.value())
    axes = [] if node.entry("axis") is None else node.axes(x)
    names = ("mean", "variance")
    weights = node.weights(*names, "count") if node.entry("mean") is None else {n: _numbers(node, n) for n in names}
    dims = [size if axis in axes else 1 for axis, size in enumerate(importer.shape(x))]
    mean, variance = (np.broadcast_to(weights[n], [dims[a] for a in axes]).reshape(dims) for n in names)
    root = np.maximum(np.sqrt(variance), np.float32(1e-7))
    middle, spread = (Scalar(importer, importer.unnamed(np.ascontiguousarray(each))) for each in (mean, root))
    data = Scalar(importer, x)
    return (data * spread + middle if node.flag("invert") else (data - middle) / spread).value
