"""Normalizations, and layers that scale their input. Source: keras/src/layers/normalization, preprocessing."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import Scalar, normed
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_list
from relay.frontend.keras.table import layer, op


def _affine(importer: Importer, node: Layer, weights: dict[str, Array], shape: tuple[int, ...]) -> list[SSAValue]:
    """Factor and summand, or constants where they are left out."""
    rows = (("gamma", np.ones), ("beta", np.zeros))
    return [
        importer.weight(node, name, weights[name] if name in weights else full(shape, np.float32))
        for name, full in rows
    ]


def _names(node: Layer) -> list[str]:
    return ["gamma"] * node.flag("scale", True) + ["beta"] * node.flag("center", True)


@layer("BatchNormalization")
def batch_normalization(importer: Importer, node: Layer) -> SSAValue:
    """By the mean and variance of the training."""
    x = node.value()
    axis = node.axis(node.integer("axis", -1), importer.rank(x))
    statistics = ("moving_mean", "moving_variance")
    weights = node.weights(*_names(node), *statistics)
    vectors = _affine(importer, node, weights, weights["moving_mean"].shape)
    vectors += [importer.weight(node, name, weights[name]) for name in statistics]
    return importer.call(relay.BatchNormOp, x, *vectors, axis=axis, epsilon=node.real("epsilon", 1e-3))


def _axes(importer: Importer, node: Layer, x: SSAValue) -> list[int]:
    """What is normalized together, of known sizes."""
    dims = importer.shape(x)
    axes = sorted(node.axes(node.config.get("axis", -1), len(dims)))
    if DYNAMIC in [dims[axis] for axis in axes]:
        raise node.unsupported(f"normalizes {x.type}", "give its shapes")
    return axes


@layer("LayerNormalization")
def layer_normalization(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"rms_scaling": False})
    x = node.value()
    axes = _axes(importer, node, x)
    vectors = _affine(importer, node, node.weights(*_names(node)), tuple(importer.shape(x)[axis] for axis in axes))
    return normed(importer, x, axes, relay.LayerNormOp, vectors, node.real("epsilon", 1e-3))


@layer("GroupNormalization")
def group_normalization(importer: Importer, node: Layer) -> SSAValue:
    """Groups of channels; -1 is each channel by itself."""
    x = node.value()
    axis = node.axis(node.integer("axis", -1), importer.rank(x))
    channels = importer.shape(x)[axis]
    groups = node.integer("groups", 32)
    vectors = _affine(importer, node, node.weights(*_names(node)), (channels,))
    kept = {"num_groups": channels if groups == -1 else groups, "axis": axis, "epsilon": node.real("epsilon", 1e-3)}
    return importer.call(relay.GroupNormOp, x, *vectors, **kept)


@layer("RMSNormalization")
@op("RMSNorm", "RmsNormalization")
def rms(importer: Importer, node: Layer) -> SSAValue:
    """A factor for each element of the last axis is the op's; others are multiplied behind it."""
    x = importer.real(node.x)
    own = node.kind == "RMSNormalization"
    scale = importer.weight(node, "scale", node.weights("scale")["scale"]) if own else node.optional(1, "scale")
    dims, axes = importer.shape(x), _axes(importer, node, x)
    gamma = scale if axes == [len(dims) - 1] and scale is not None and importer.shape(scale) == dims[-1:] else None
    ones = np.ones([dims[axis] for axis in axes], np.float32)
    vector = importer.unnamed(ones) if gamma is None else gamma
    found = normed(importer, x, axes, relay.RmsNormOp, [vector], node.real("epsilon", 1e-7))
    return found if scale is None or gamma is not None else importer.call(relay.MultiplyOp, found, scale)


@layer("UnitNormalization")
@op("Normalize")
def normalize(importer: Importer, node: Layer) -> SSAValue:
    """Divided by the root of the sum of squares, which is at least epsilon."""
    node.refuse({"order": 2})
    x = importer.real(node.x)
    axes, epsilon = node.axes(node.config.get("axis", -1), importer.rank(x)), node.real("epsilon", 1e-12)
    return importer.call(relay.L2NormalizeOp, x, axis=axes, eps=epsilon**2)


def _numbers(node: Layer, name: str) -> Array:
    """A number, or numbers side by side."""
    given = node.config.get(name)
    if not isinstance(given, int | float) and not is_list(given):
        raise node.malformed(f"{name} is {str(given)[:80]}, no number")
    return np.asarray(given, np.float32)


@layer("Rescaling")
def rescaling(importer: Importer, node: Layer) -> SSAValue:
    x = Scalar(importer, importer.real(node.value()))
    scale, offset = (importer.unnamed(_numbers(node, name)) for name in ("scale", "offset"))
    return (x * Scalar(importer, scale) + Scalar(importer, offset)).value


@layer("LayerScale")
def layer_scale(importer: Importer, node: Layer) -> SSAValue:
    """A factor for each channel, the last axis. Source: keras/src/applications/convnext.py."""
    return importer.call(relay.MultiplyOp, node.value(), importer.weight(node, "gamma", node.weights("gamma")["gamma"]))


@layer("Normalization")
def normalization(importer: Importer, node: Layer) -> SSAValue:
    """`(x - mean) / max(sqrt(variance), 1e-7)`, of statistics that are given or were adapted."""
    x = importer.real(node.value())
    rank = importer.rank(x)
    axes = [] if node.config.get("axis") is None else node.axes(node.config["axis"], rank)
    if node.config.get("mean") is not None:
        mean, variance = _numbers(node, "mean"), _numbers(node, "variance")
    else:
        weights = node.weights("mean", "variance", "count")
        mean, variance = weights["mean"], weights["variance"]
    sizes = [importer.shape(x)[axis] if axis in axes else 1 for axis in range(rank)]
    mean, variance = (np.broadcast_to(each, [sizes[a] for a in axes]).reshape(sizes) for each in (mean, variance))
    root = np.maximum(np.sqrt(variance), np.float32(1e-7))
    data = Scalar(importer, x)
    middle, spread = (Scalar(importer, importer.unnamed(np.ascontiguousarray(each))) for each in (mean, root))
    return (data * spread + middle if node.flag("invert") else (data - middle) / spread).value
