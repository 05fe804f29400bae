"""Imports Resize, its predecessor Upsample, and sampling at coordinates: GridSample, RoiAlign."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

import numpy as np
from xdsl.ir import SSAValue

from relay.frontend.importing.resizing import INTERPOLATIONS, Rule, resized, sampled
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op


@op("Upsample")
def upsample(importer: Importer, node: Node) -> SSAValue:
    scales = np.asarray(node.reals("scales"), np.float64) if node.version < 9 else node.array(1).astype(np.float64)
    if node.has("height_scale"):
        scales = np.asarray([1, 1, node.real("height_scale"), node.real("width_scale")])
    mode = node.one_of("mode", ("nearest", "linear", "bilinear")).removeprefix("bi")
    rule = Rule(mode, "asymmetric", "floor", False, -0.75, False)
    return _resized(importer, node, rule, {axis: (scale, None) for axis, scale in enumerate(scales)}, {})


@op("Resize", since=10)
def resize10(importer: Importer, node: Node) -> SSAValue:
    rule = Rule(node.one_of("mode", INTERPOLATIONS), "asymmetric", "floor", False, -0.75, False)
    scales = node.array(1).astype(np.float64)
    return _resized(importer, node, rule, {axis: (scale, None) for axis, scale in enumerate(scales)}, {})


@op("Resize", since=11)
def resize(importer: Importer, node: Node) -> SSAValue:
    """Import Resize by factors or to sizes; `keep_aspect_ratio_policy` uses the smallest or largest factor for all
    axes."""
    dims = node.static(0)
    axes = node.axes_of(node.integers("axes") or range(len(dims)), len(dims))
    rule = Rule(
        node.one_of("mode", INTERPOLATIONS),
        node.word("coordinate_transformation_mode"),
        node.word("nearest_mode"),
        bool(node.integer("antialias", 0)) if node.version >= 18 else False,
        node.real("cubic_coeff_a"),
        node.flag("exclude_outside"),
    )
    roi = None if node.optional(1) is None else node.array(1).astype(np.float64)
    given = {axis: (roi[i], roi[i + len(axes)]) for i, axis in enumerate(axes)} if roi is not None and roi.size else {}
    if node.optional(3) is None or not node.array(3).size:
        scales = node.array(2).astype(np.float64)
        if len(scales) != len(axes):
            raise node.malformed(f"has {len(scales)} scales for {len(axes)} axes")
        return _resized(importer, node, rule, {a: (s, None) for a, s in zip(axes, scales, strict=True)}, given)
    sizes = node.numbers(3)
    policy = node.word("keep_aspect_ratio_policy", "stretch")
    factors = [size / dims[axis] for axis, size in zip(axes, sizes, strict=True)]
    if policy != "stretch":
        factor = min(factors) if policy == "not_larger" else max(factors)
        factors = [factor] * len(axes)
        sizes = tuple(floor(factor * dims[axis] + 0.5) for axis in axes)
    wanted = {axis: (factor, size) for axis, factor, size in zip(axes, factors, sizes, strict=True)}
    return _resized(importer, node, rule, wanted, given)


def _resized(
    importer: Importer,
    node: Node,
    rule: Rule,
    wanted: Mapping[int, tuple[float, int | None]],
    roi: dict[int, tuple[float, float]],
) -> SSAValue:
    node.static(0)
    return resized(importer, node.input(0), rule, wanted, roi, node.real("extrapolation_value", 0.0))


@op("GridSample")
def grid_sample(importer: Importer, node: Node) -> SSAValue:
    for number in range(2):
        node.static(number)
    mode = node.word("mode").removeprefix("bi")
    padding = node.one_of("padding_mode", ("zeros", "border", "reflection"))
    if mode not in INTERPOLATIONS:
        raise node.unsupported(f"the attribute mode is {node.word('mode')!r}")
    return sampled(importer, node.input(0), node.input(1), mode, padding, node.flag("align_corners"))
