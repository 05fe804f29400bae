"""Resizing tensors axis by axis, and sampling tensors at coordinates. Source: ONNX's Resize and GridSample."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from itertools import product
from math import floor
from operator import add, mul
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.tensors import TensorBuilder

INTERPOLATIONS = ("nearest", "linear", "cubic")
PLAIN = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""The coordinate modes that relay.image.resize2d supports, too."""


class Rule(NamedTuple):
    """The mode and parameters with which axes are resized."""

    mode: str
    coordinates: str
    nearest: str
    antialias: bool
    cubic: float
    exclude: bool


def resized(
    importer: TensorBuilder,
    value: SSAValue,
    rule: Rule,
    wanted: Mapping[int, tuple[float, int | None]],
    roi: Mapping[int, tuple[float, float]] = {},
    extrapolation: float = 0.0,
) -> SSAValue:
    """The value resized along one axis after the other; elements are taken at constant indices and weighted. `wanted`
    has for each resized axis the factor, and the size of the result (None: factor times size, rounded down)."""
    dims = importer.shape(value)
    sizes = {axis: floor(scale * dims[axis]) if size is None else size for axis, (scale, size) in wanted.items()}
    wanted = {a: row for a, row in wanted.items() if sizes[a] != dims[a] or row[0] != 1 or a in roi}
    if not wanted:
        return value
    if min(sizes.values(), default=1) < 1:
        raise importer.at.malformed(f"resizes to {list(sizes.values())}")
    exact = all(scale == sizes[axis] / dims[axis] for axis, (scale, _) in wanted.items())
    if (found := _as_image(importer, rule, value, wanted, sizes)) is not None and exact and not roi:
        return found
    outside = np.zeros((), np.bool_)
    for axis, (scale, _) in wanted.items():
        at = _coordinates(rule, dims[axis], scale, sizes[axis], roi.get(axis, (0.0, 1.0)))
        if rule.coordinates == "tf_crop_and_resize":
            beyond = (at < 0) | (at > dims[axis] - 1)
            outside = outside | beyond.reshape([-1 if a == axis else 1 for a in range(len(dims))])
        value = _along(importer, value, axis, *_taps(rule, at, scale, dims[axis]))
    if outside.any():
        fill = importer.like(extrapolation, value)
        value = importer.call(relay.WhereOp, importer.unnamed(outside), fill, value)
    return value


def _as_image(
    importer: TensorBuilder, rule: Rule, value: SSAValue, wanted: Collection[int], sizes: dict[int, int]
) -> SSAValue | None:
    """The value resized by a single image op, if there is one for the rule; else None."""
    axes = (2, 3) if {*wanted} <= {2, 3} else (1, 2)
    plain = importer.rank(value) == 4 and {*wanted} <= {*axes} and rule.coordinates in PLAIN
    if not plain or rule.mode == "cubic" or rule.antialias:
        return None
    if rule.mode != "nearest" and (not importer.is_float(value) or importer.dtype(value).itemsize < 4):
        return None
    dims = importer.shape(value)
    return importer.call(
        relay.Resize2dOp,
        value,
        size=[sizes.get(axis, dims[axis]) for axis in axes],
        method="nearest_neighbor" if rule.mode == "nearest" else "linear",
        coordinate_transformation_mode=rule.coordinates,
        rounding_method=rule.nearest if rule.mode == "nearest" else "",
        layout="NCHW" if axes == (2, 3) else "NHWC",
    )


def _coordinates(rule: Rule, size: int, scale: float, wanted: int, roi: tuple[float, float]) -> Array:
    """For each of the `wanted` elements of the result along an axis, its coordinate in the data, which has `size`
    elements there. Source: ONNX's Resize."""
    x, whole = np.arange(wanted, dtype=np.float64), scale * size
    match rule.coordinates:
        case "align_corners":
            return x * (size - 1) / (whole - 1) if whole != 1 else np.zeros(wanted)
        case "asymmetric":
            return x / scale
        case "tf_crop_and_resize":
            begin, end = roi
            if whole == 1:
                return np.full(wanted, (end - begin) * (size - 1) / 2 + begin * (size - 1))
            return x * (end - begin) * (size - 1) / (whole - 1) + begin * (size - 1)
        case "pytorch_half_pixel" if wanted == 1:
            return np.zeros(wanted)
        case "half_pixel_symmetric":
            return size / 2 * (1 - wanted / whole) + (x + 0.5) / scale - 0.5
        case _:
            return (x + 0.5) / scale - 0.5


def _taps(rule: Rule, at: Array, scale: float, size: int) -> tuple[Array, Array]:
    """The indices from which each element of the result is interpolated, and their weights: both [elements, taps]. `at`
    are the elements' coordinates in the data. For an integral coordinate the left neighbour is the element before
    it."""
    base = np.ceil(at) - 1
    ratio = at - base
    if rule.mode == "nearest":
        right = {
            "round_prefer_floor": ratio > 0.5,
            "round_prefer_ceil": ratio >= 0.5,
            "floor": ratio == 1,
            "ceil": ratio > 0,
        }[rule.nearest]
        return np.clip(base + right, 0, size - 1).astype(np.int64)[:, None], np.ones((len(at), 1))
    shrink = min(scale, 1.0) if rule.antialias else 1.0
    reach = 1 if rule.mode == "linear" else 2
    start = floor(-reach / shrink) + 1
    steps = np.arange(start, 2 - start)
    distance = np.abs((steps - ratio[:, None]) * shrink)
    weights = np.clip(1 - distance, 0, 1) if reach == 1 else _keys(distance, rule.cubic)
    places = (base[:, None] + steps).astype(np.int64)
    if rule.exclude:
        weights = np.where((places < 0) | (places >= size), 0, weights)
    if rule.exclude or rule.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, size - 1), weights


def _keys(x: Array, a: float) -> Array:
    """Keys' cubic convolution kernel with parameter a, at distances x."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _along(importer: TensorBuilder, value: SSAValue, axis: int, places: Array, weights: Array) -> SSAValue:
    """The weighted sum of elements along an axis: those at the indices `places` [elements, taps], with `weights` of
    that shape."""
    if places.shape[1] == 1 and (weights == 1).all():
        return importer.take(value, places[:, 0], axis)
    dims = [-1 if a == axis else 1 for a in range(importer.rank(value))]
    parts: list[Scalar] = []
    for tap in range(places.shape[1]):
        factor = importer.unnamed(weights[:, tap].reshape(dims).astype(importer.dtype(value)))
        parts.append(Scalar(importer, importer.take(value, places[:, tap], axis)) * Scalar(importer, factor))
    return reduce(add, parts).value


def sampled(
    importer: TensorBuilder, data: SSAValue, coordinates: SSAValue, mode: str, padding: str, corners: bool
) -> SSAValue:
    """The data [batch, channels, spatial axes] sampled at coordinates from -1 to 1. Along the last axis of
    `coordinates` lies one coordinate for each spatial axis, beginning with the innermost one."""
    dims, grid = importer.shape(data), importer.shape(coordinates)
    count = len(dims) - 2
    lanes: list[list[tuple[Scalar, Scalar]]] = []
    for axis in range(count):
        part = importer.slice(coordinates, {len(grid) - 1: (count - 1 - axis, count - axis)})
        x = Scalar(importer, importer.call(relay.SqueezeOp, part, axis=[len(grid) - 1]))
        size = dims[axis + 2]
        x = (x + 1.0) * ((size - 1) / 2) if corners else (x + 1.0) * (size / 2) - 0.5
        if padding == "border" and mode != "cubic":
            x = x.between(0, size - 1)
        elif padding == "reflection" and mode != "cubic":
            x = _reflected(x, size, corners)
        lanes.append(_lane(importer, x, mode))
    last = importer.transpose(data, (0, *range(2, len(dims)), 1))
    total = reduce(add, (_picked(importer, last, dims, picked, padding, corners) for picked in product(*lanes)))
    order = (0, len(dims) - 1, *range(1, len(dims) - 1))
    return importer.transpose(total.value, order)


def _lane(importer: TensorBuilder, x: Scalar, mode: str) -> list[tuple[Scalar, Scalar]]:
    """The indices along an axis whose elements contribute to the sample at coordinate x, each with its weight; `mode`
    is `nearest`, `linear` or `cubic`."""
    if mode == "nearest":
        return [(x.to_even(), x.number(1.0))]
    low = x.of(relay.FloorOp)
    rest = x - low
    if mode == "linear":
        return [(low, rest.number(1.0) - rest), (low + 1.0, rest)]
    a = -0.75
    lanes: list[tuple[Scalar, Scalar]] = []
    for step, d in ((-1.0, rest + 1.0), (0.0, rest), (1.0, -rest + 1.0), (2.0, -rest + 2.0)):
        near = ((d * (a + 2) - (a + 3)) * d * d) + 1.0
        far = ((d - 5.0) * d + 8.0) * d * a - 4 * a
        lanes.append((low + step, near if step in (0.0, 1.0) else far))
    return lanes


def _reflected(x: Scalar, size: int, corners: bool) -> Scalar:
    """The coordinate mirrored at the centres of the border elements (`corners`) or at the borders."""
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return x * 0.0
    far = (x - low).of(relay.AbsOp)
    turns = (far / span).of(relay.FloorOp)
    rest = far - turns * span
    odd = turns.of(relay.NotEqualOp, (turns * 0.5).of(relay.FloorOp) * 2.0)
    return odd.choose(-rest + high, rest + low, x).between(0, size - 1)


def _picked(
    importer: TensorBuilder,
    data: SSAValue,
    dims: Sequence[int],
    picked: Sequence[tuple[Scalar, Scalar]],
    padding: str,
    corners: bool,
) -> Scalar:
    """One term of an interpolation, as a tensor [n, sampled positions, channels]: the element of `data` (channels last)
    at one index along each spatial axis, times the product of the interpolation weights of these indices. `picked`: for
    each spatial axis, the indices and the weights for all sampled positions; `dims`: the shape of the data with
    channels first. Indices outside of the data give 0 if the padding is `zeros`, and are else moved inside: by
    reflection, with `corners` at the centres of the border elements, or to the nearest element."""
    places: list[SSAValue] = []
    factors: list[Scalar] = []
    for axis, (place, factor) in enumerate(picked):
        size = dims[axis + 2]
        if padding == "zeros":
            inside = importer.call(relay.LogicalAndOp, (place > -1.0).value, (place < float(size)).value)
            factor = factor * Scalar(importer, importer.cast(inside, importer.element(place.value)))
        elif padding == "reflection":
            place = _reflected(place, size, corners)
        places.append(importer.cast(place.between(0, size - 1).value, i64))
        factors.append(factor)
    weight, shape = reduce(mul, factors), importer.shape(places[0])
    batch = np.arange(dims[0]).reshape(-1, *[1] * (len(shape) - 1))
    first = importer.unnamed(np.broadcast_to(batch, shape).astype(np.int64))
    columns = [importer.reshape(each, [*shape, 1]) for each in (first, *places)]
    found = importer.call(relay.GatherNdOp, data, importer.concatenate(columns, len(shape)))
    factor = importer.cast(importer.reshape(weight.value, [*importer.shape(weight.value), 1]), importer.element(found))
    return Scalar(importer, importer.call(relay.MultiplyOp, found, importer.broadcast(factor, [*shape, 1])))
