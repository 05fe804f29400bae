"""Normalizations, and layers that scale their input. Source: keras/src/layers/normalization, preprocessing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing.formulas import Scalar, normed
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_list
from relay.frontend.keras.table import TABLE, layer, op


def _vectors(importer: Importer, node: Layer, shape: Sequence[int], *statistics: str) -> list[SSAValue]:
    """Factor and summand, constants where they are left out, and the statistics."""
    own = ["gamma"] * node.flag("scale", True) + ["beta"] * node.flag("center", True)
    weights = node.weights(*own, *statistics)
    missing = {"gamma": np.ones(shape, np.float32), "beta": np.zeros(shape, np.float32)}
    return [importer.weight(node, name, (missing | weights)[name]) for name in (*missing, *statistics)]


@layer("BatchNormalization", "GroupNormalization")
def of_channels(importer: Importer, node: Layer) -> SSAValue:
    """By the mean and variance of the training; or those of groups of channels, -1 is each channel by itself."""
    x, axis = node.value(), node.along(node.value(), -1)
    channels, kept = node.static(x, [axis]), {"axis": axis, "epsilon": node.real("epsilon", 1e-3)}
    if node.kind == "BatchNormalization":
        vectors = _vectors(importer, node, channels, "moving_mean", "moving_variance")
        return importer.call(relay.BatchNormOp, x, *vectors, **kept)
    groups = node.integer("groups", 32)
    vectors = _vectors(importer, node, channels)
    return importer.call(relay.GroupNormOp, x, *vectors, num_groups=channels[0] if groups == -1 else groups, **kept)


@layer("LayerNormalization")
def layer_normalization(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"rms_scaling": False})
    x = node.value()
    axes = sorted(node.axes(x, -1))
    vectors = _vectors(importer, node, node.static(x, axes))
    return normed(importer, x, axes, relay.LayerNormOp, vectors, node.real("epsilon", 1e-3))


@layer("RMSNormalization")
@op("RMSNorm", "RmsNormalization")
def rms(importer: Importer, node: Layer) -> SSAValue:
    """A factor for each element of the last axis is the op's; others are multiplied behind it."""
    x = importer.real(node.x)
    axes = sorted(node.axes(x, -1))
    sizes, own = node.static(x, axes), node.kind == "RMSNormalization"
    scale = importer.weight(node, "scale", node.weights("scale")["scale"]) if own else node.optional(1, "scale")
    inside = scale is not None and axes == [importer.rank(x) - 1] and [*importer.shape(scale)] == sizes
    vector = scale if scale is not None and inside else importer.unnamed(np.ones(sizes, np.float32))
    found = normed(importer, x, axes, relay.RmsNormOp, [vector], node.real("epsilon", 1e-7))
    return found if scale is None or inside else importer.call(relay.MultiplyOp, found, scale)


@layer("UnitNormalization")
@op("Normalize")
def normalize(importer: Importer, node: Layer) -> SSAValue:
    """Divided by the root of the sum of squares, which is at least epsilon."""
    node.refuse({"order": 2})
    x = importer.real(node.x)
    return importer.call(relay.L2NormalizeOp, x, axis=node.axes(x, -1), eps=node.real("epsilon", 1e-12) ** 2)


def _numbers(node: Layer, name: str) -> Array:
    """A number, or numbers side by side."""
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
"""A factor for each channel, the last axis. Source: keras/src/applications/convnext.py."""


@layer("Normalization")
def normalization(importer: Importer, node: Layer) -> SSAValue:
    """`(x - mean) / max(sqrt(variance), 1e-7)`, of statistics that are given or were adapted."""
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
