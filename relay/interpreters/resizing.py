"""Numpy implementation of resizing by Relay's rules: which elements each position of the result is computed from, and
their weights.

Positions are fractions, so that roundings are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.dialects.relay.image import CROP
from relay.interpreters.arithmetic import Int64
from relay.interpreters.meaning import Meanings, ops_of
from relay.interpreters.nn import channels_last

HALF = Fraction(1, 2)


class Rule(NamedTuple):
    """How an axis is resized: the method, the coordinate transformation, the rounding of `nearest_neighbor`, and the
    cubic kernel's parameter."""

    method: str
    coordinates: str
    rounding: str = ""
    alpha: float = -0.5
    exclude: bool = False
    region: tuple[Fraction, ...] = ()
    """The region that is resized, in fractions of the axes' sizes: the begin of every axis, then the end of every axis;
    empty for all of the data."""
    fill: float = 0.0
    """The result's value where a resized region reaches beyond the data."""

    def bounds(self, axis: int) -> tuple[Fraction, Fraction]:
        """Begin and end of the resized region on a spatial axis, in fractions of its size."""
        count = len(self.region) // 2
        return (self.region[axis], self.region[count + axis]) if count else (Fraction(0), Fraction(1))


def rule_of(op: relay.ResizeOp | relay.UpsampleOp | relay.Resize2dOp) -> Rule:
    """The rule of an op. A `resize2d` op must have a `coordinate_transformation_mode`; without one it follows TFLite's
    rules instead."""
    if isinstance(op, relay.UpsampleOp):
        if isinstance(op, relay.Upsampling3dOp):
            coordinates = op.coordinate_transformation_mode.data
        else:
            assert isinstance(op, relay.UpsamplingOp)
            coordinates = "align_corners" if op.align_corners.value.data else "asymmetric"
        return Rule(op.METHODS[op.method.data], coordinates)
    mode = op.coordinate_transformation_mode
    assert mode is not None
    alpha, exclude = op.cubic_alpha.value.data, bool(op.cubic_exclude.value.data)
    region = tuple(map(Fraction, op.roi.get_values())) if mode.data == CROP else ()
    fill = op.extrapolation_value.value.data
    return Rule(op.method.data, mode.data, op.rounding_method.data, alpha, exclude, region, fill)


def position(o: int, size: int, result: int, rule: Rule, axis: int) -> Fraction:
    """The position in the data, along a spatial axis, that corresponds to position `o` of the result."""
    match rule.coordinates:
        case "tf_crop_and_resize":
            begin, end = rule.bounds(axis)
            part = begin + o * (end - begin) / (result - 1) if result > 1 else (begin + end) / 2
            return part * (size - 1)
        case "align_corners":
            return Fraction(o * (size - 1), result - 1) if result > 1 else Fraction(0)
        case "asymmetric":
            return Fraction(o * size, result)
        case "tf_half_pixel_for_nn":
            return (o + HALF) * size / result
        case "pytorch_half_pixel" if result == 1:
            return Fraction(0)
        case _:
            return (o + HALF) * size / result - HALF


def nearest(at: Fraction, rule: Rule) -> int:
    """The index of the element nearest to a position, by the rule's rounding."""
    match rule.rounding or ("round" if rule.coordinates == "align_corners" else "floor"):
        case "floor":
            return floor(at)
        case "ceil":
            return ceil(at)
        case "round_prefer_floor":
            return ceil(at - HALF)
        case _:
            return floor(at + HALF)


def cubic(t: float, a: float) -> list[float]:
    """The weights of Keys' cubic kernel with parameter `a` for four elements, from the one before the element left of a
    position to the second after it; `t` is the distance to the element left of it."""
    far, near = 1 + t, 1 - t
    return [
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a * (near + 1) - 5 * a) * (near + 1) + 8 * a) * (near + 1) - 4 * a,
    ]


def outside(sizes: Sequence[int], results: Sequence[int], rule: Rule) -> Array:
    """A mask [1, spatial..., 1] that is true where a position of the result corresponds to one outside of the data.
    Such positions exist only if a rectangle (`roi`) is cropped and resized."""
    found = np.zeros((1, *results, 1), np.bool_)
    if rule.coordinates == CROP:
        for axis, (size, result) in enumerate(zip(sizes, results, strict=True)):
            beyond = [not 0 <= position(o, size, result, rule, axis) <= size - 1 for o in range(result)]
            found |= np.array(beyond).reshape([-1 if k == axis + 1 else 1 for k in range(found.ndim)])
    return found


def clamped(index: int, size: int) -> int:
    return min(max(index, 0), size - 1)


def taps(size: int, result: int, rule: Rule, axis: int) -> tuple[Int64, Array]:
    """For each position of the result, the indices [result, n] of the elements that it is computed from, and their
    weights."""
    indices: list[list[int]] = []
    weights: list[list[float]] = []
    for o in range(result):
        at = position(o, size, result, rule, axis)
        if rule.method == "nearest_neighbor":
            indices.append([clamped(nearest(at, rule), size)])
            weights.append([1.0])
            continue
        first, t = floor(at), float(at - floor(at))
        near = [first, first + 1] if rule.method == "linear" else [first - 1, first, first + 1, first + 2]
        factors = [1 - t, t] if rule.method == "linear" else cubic(t, rule.alpha)
        if rule.method == "cubic" and rule.exclude:
            factors = [w if 0 <= i < size else 0.0 for i, w in zip(near, factors, strict=True)]
            total = sum(factors) or 1.0  # 0 where all four elements are outside; such positions are filled
            factors = [w / total for w in factors]
        indices.append([clamped(i, size) for i in near])
        weights.append(factors)
    return np.array(indices, np.int64), np.array(weights)


def resize(data: Array, sizes: Sequence[int], rule: Rule) -> Array:
    """Resize data [n, spatial..., c] to the given sizes of its spatial axes, one axis after the other."""
    beyond = outside(data.shape[1:-1], sizes, rule)
    wide = data if rule.method == "nearest_neighbor" else data.astype(np.float64)
    for axis, size in enumerate(sizes, 1):
        indices, weights = taps(data.shape[axis], size, rule, axis - 1)
        shape = [-1 if k == axis else 1 for k in range(data.ndim)]
        parts = [wide.take(indices[:, n], axis) for n in range(indices.shape[1])]
        if rule.method == "nearest_neighbor":
            wide = parts[0]
        else:
            wide = np.add.reduce([part * weights[:, n].reshape(shape) for n, part in enumerate(parts)])
    return np.where(beyond, rule.fill, wide).astype(data.dtype) if beyond.any() else wide.astype(data.dtype)


def spatial(op: relay.ResizeOp | relay.UpsampleOp, data: Array) -> Array:
    if isinstance(op, relay.ResizeOp):
        sizes = list(int_values(op.size))
    else:
        sizes = [floor(n * factor + 0.5) for n, factor in zip(data.shape[1:-1], op.factors(), strict=True)]
    return resize(data, sizes, rule_of(op))


MEANINGS: Meanings = {
    **dict.fromkeys(ops_of(relay.ResizeOp), channels_last(spatial)),
    **dict.fromkeys(ops_of(relay.UpsampleOp), channels_last(spatial)),
}
