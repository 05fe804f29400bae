"""Numpy implementation of image ops. Source: TFLite's reference RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.interpreters.arithmetic import Int64, round_away, truncating_divide
from relay.interpreters.meaning import Meanings
from relay.interpreters.nn import channels_last
from relay.interpreters.resizing import resize, rule_of

ONE = 1 << 10
"""The value 1 in the 10-bit fixed-point format of integer bilinear resizing."""


def nearest_indices(size: int, source: int, align_corners: bool, half_pixel_centers: bool) -> Int64:
    """For each output position along an axis, the index of the input element that it copies; computed in float32 as in
    TFLite's reference kernel."""
    single = np.float32
    scale = single(source - 1) / single(size - 1) if align_corners and size > 1 else single(source) / single(size)
    position = (np.arange(size).astype(single) + single(0.5 if half_pixel_centers else 0)) * scale
    index = (round_away(position) if align_corners else np.floor(position)).astype(np.int64)
    return np.clip(index, 0, source - 1)


def fixed_coordinates(
    size: int, source: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[Int64, Int64, Int64]:
    """For each output position along an axis: the weight of the upper neighbour in 10-bit fixed point, and the indices
    of the lower and the upper neighbour."""
    scale = (ONE * source + size // 2) // size
    if align_corners and size > 1:
        scale = (ONE * (source - 1) + (size - 1) // 2) // (size - 1)
    position = np.arange(size, dtype=np.int64) * scale
    if half_pixel_centers:
        position += scale // 2 - ONE // 2
    lower = np.maximum(truncating_divide(position, ONE), 0)
    upper = np.minimum(truncating_divide(position + ONE - 1, ONE), source - 1)
    return position - ONE * lower, lower, upper


def float_coordinates(
    size: int, source: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[Array, Int64, Int64]:
    """For each output position along an axis: the weight of the upper neighbour in float32, and the indices of the
    lower and the upper neighbour."""
    single = np.float32
    scale = single(source - 1) / single(size - 1) if align_corners and size > 1 else single(source) / single(size)
    position = np.arange(size).astype(single)
    position = (position + single(0.5)) * scale - single(0.5) if half_pixel_centers else position * scale
    lower = np.maximum(np.floor(position).astype(np.int64), 0)
    upper = np.minimum(np.ceil(position).astype(np.int64), source - 1)
    return position - lower.astype(single), lower, upper


def bilinear(data: Array, y: tuple[Array, Int64, Int64], x: tuple[Array, Int64, Int64], one: np.generic) -> Array:
    """Resize NHWC data bilinearly: each result is the weighted sum of four neighbours, added in the order of TFLite's
    source. `y` and `x` are what `fixed_coordinates` or `float_coordinates` returns for rows and columns, and `one` is
    the value of the weight 1."""
    (wy, y0, y1), (wx, x0, x1) = y, x
    wy, wx = wy[None, :, None, None], wx[None, None, :, None]
    return (
        data[:, y0][:, :, x0] * (one - wy) * (one - wx)
        + data[:, y1][:, :, x0] * wy * (one - wx)
        + data[:, y0][:, :, x1] * (one - wy) * wx
        + data[:, y1][:, :, x1] * wy * wx
    )


def resize2d(op: relay.Resize2dOp, data: Array) -> Array:
    rows, columns = int_values(op.size)
    if op.coordinate_transformation_mode is not None:
        return resize(data, [rows, columns], rule_of(op))
    mode = bool(op.align_corners.value.data), bool(op.half_pixel_centers.value.data)
    (_, height, width, _), kind = data.shape, data.dtype.kind
    if op.method.data == "nearest_neighbor":
        return data[:, nearest_indices(rows, height, *mode)][:, :, nearest_indices(columns, width, *mode)]
    if kind == "i":
        y, x = fixed_coordinates(rows, height, *mode), fixed_coordinates(columns, width, *mode)
        total = bilinear(data.astype(np.int64), y, x, np.int64(ONE))
        return truncating_divide(total + np.where(total > 0, 1 << 19, -(1 << 19)), 1 << 20).astype(data.dtype)
    y, x = float_coordinates(rows, height, *mode), float_coordinates(columns, width, *mode)
    total = bilinear(data.astype(np.float32), y, x, np.float32(1))
    return (total if kind == "f" else np.trunc(total + np.float32(0.5))).astype(data.dtype)


MEANINGS: Meanings = {relay.Resize2dOp: channels_last(resize2d)}
