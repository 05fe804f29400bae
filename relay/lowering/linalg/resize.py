"""Resizing of images: coordinates and weights are constant vectors, computed at compile time; the loop gathers and
blends.

Source: TFLite's reference RESIZE_BILINEAR (10-bit fixed point for signed codes, else float32), RESIZE_NEAREST_NEIGHBOR.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, IntegerType, f32, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.dialects.op import shape, tensor
from relay.errors import Unsupported
from relay.interpreters.arithmetic import round_away, truncating_divide
from relay.lowering.linalg.emitter import Emitter, Operand, axes, element, kind
from relay.transforms.location import place

ONE = 1 << 10
"""1.0 in the fixed-point format of coordinates."""


def nearest(op: relay.Resize2dOp, out: int, size: int) -> Array:
    """Return the source index of each output index."""
    align, half = flags(op)
    scale = np.float32(size - 1) / np.float32(out - 1) if align and out > 1 else np.float32(size) / np.float32(out)
    at = (np.arange(out).astype(np.float32) + np.float32(0.5 if half else 0)) * scale
    index = (round_away(at) if align else np.floor(at)).astype(np.int32)
    return np.clip(index, 0, size - 1)


def fixed(op: relay.Resize2dOp, out: int, size: int) -> tuple[Array, Array, Array]:
    """Return (lower index, upper index, weight of the upper in 1/1024) of each output index."""
    align, half = flags(op)
    scale = (ONE * size + out // 2) // out
    if align and out > 1:
        scale = (ONE * (size - 1) + (out - 1) // 2) // (out - 1)
    at = np.arange(out, dtype=np.int64) * scale + (scale // 2 - ONE // 2 if half else 0)
    lower = np.clip(truncating_divide(at, ONE), 0, size - 1)
    upper = np.minimum(truncating_divide(at + ONE - 1, ONE), size - 1)
    return lower.astype(np.int32), upper.astype(np.int32), (at - ONE * lower).astype(np.int32)


def floating(op: relay.Resize2dOp, out: int, size: int) -> tuple[Array, Array, Array]:
    """Return (lower index, upper index, weight of the upper in float32) of each output index."""
    align, half = flags(op)
    scale = np.float32(size - 1) / np.float32(out - 1) if align and out > 1 else np.float32(size) / np.float32(out)
    at = np.arange(out).astype(np.float32)
    at = (at + np.float32(0.5)) * scale - np.float32(0.5) if half else at * scale
    lower = np.clip(np.floor(at).astype(np.int32), 0, size - 1)
    upper = np.minimum(np.ceil(at).astype(np.int32), size - 1)
    return lower, upper, (at - lower.astype(np.float32)).astype(np.float32)


def flags(op: relay.Resize2dOp) -> tuple[bool, bool]:
    return bool(op.align_corners.value.data), bool(op.half_pixel_centers.value.data)


def resize2d(e: Emitter, op: relay.Resize2dOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Lower to loops over (n, y, x, c). The positions and weights of input rows are computed here and read from
    constant vectors at y, those of input columns from vectors at x."""
    if op.coordinate_transformation_mode is not None:
        raise Unsupported(place(op), "resizes by Relay's rules", "run legalize first")
    _, height, width, _ = shape(op.data)
    rows, columns = int_values(op.size)
    type = tensor(op.data).element_type
    if op.method.data == "nearest_neighbor":
        vectors = [(nearest(op, rows, height),), (nearest(op, columns, width),)]
    elif kind(type) == "signed" and type in (IntegerType(8), IntegerType(16)):
        vectors = [fixed(op, rows, height), fixed(op, columns, width)]
    elif isinstance(type, Float32Type) or (kind(type) == "unsigned" and type != IntegerType(1)):
        vectors = [floating(op, rows, height), floating(op, columns, width)]
    else:
        raise Unsupported(
            place(op), f"linear resizing of {type} has no lowering", "use f32, i8, i16 or an unsigned type"
        )
    inputs: list[Operand] = [
        (e.tensor_constant(vector), axes(4, dimension))
        for dimension, group in zip((1, 2), vectors, strict=True)
        for vector in group
    ]
    blend = blend_float if isinstance(type, Float32Type) or kind(type) == "unsigned" else blend_fixed

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        batch, channel = e.index(0), e.index(3)

        def pixel(row: SSAValue, column: SSAValue) -> SSAValue:
            return e.extract(operands[0], [batch, e.to_index(row), e.to_index(column), channel])

        if len(args) == 2:
            return [pixel(*args)]
        top, bottom, down, left, right, along = args
        corners = [pixel(top, left), pixel(bottom, left), pixel(top, right), pixel(bottom, right)]
        return [blend(e, corners, down, along, type)]

    return e.map(inputs, shape(op.result), [element(operands[0])], body)


def blend_float(e: Emitter, corners: Sequence[SSAValue], down: SSAValue, along: SSAValue, type: Attribute) -> SSAValue:
    """Blend corners (top left, bottom left, top right, bottom right), added in this order. `down` and `along`: the
    weights of the lower row and of the right column; the other weights are 1 minus these. Codes are rounded by adding
    0.5."""
    values = corners if isinstance(type, AnyFloat) else [e(arith.UIToFPOp(x, f32)) for x in corners]
    one = e.constant(1.0, f32)
    up, back = e(arith.SubfOp(one, down)), e(arith.SubfOp(one, along))
    weighted = zip(values, (up, down, up, down), (back, back, along, along), strict=True)
    terms = (e(arith.MulfOp(e(arith.MulfOp(value, row)), column)) for value, row, column in weighted)
    total = functools.reduce(lambda one, other: e(arith.AddfOp(one, other)), terms)
    if isinstance(type, AnyFloat):
        return total
    assert isa(type, IntegerType)
    return e(arith.FPToUIOp(e(arith.AddfOp(total, e.constant(0.5, f32))), IntegerType(type.width.data)))


def blend_fixed(e: Emitter, corners: Sequence[SSAValue], down: SSAValue, along: SSAValue, type: Attribute) -> SSAValue:
    """Blend corners in integers with 20 fractional bits: `(sum + (sum > 0 ? 2^19 : -2^19)) / 2^20`, truncated."""
    assert isa(type, IntegerType)
    wide = i32 if type.width.data == 8 else i64
    one = e.constant(ONE, wide)
    down, along = e.widen(down, i32, wide), e.widen(along, i32, wide)
    up, back = e(arith.SubiOp(one, down)), e(arith.SubiOp(one, along))
    weighted = zip(corners, (up, down, up, down), (back, back, along, along), strict=True)
    terms = (
        e(arith.MuliOp(e.widen(value, type, wide), e(arith.MuliOp(row, column)))) for value, row, column in weighted
    )
    total = functools.reduce(lambda one, other: e(arith.AddiOp(one, other)), terms)
    positive = e(arith.CmpiOp(total, e.constant(0, wide), "sgt"))
    nudge = e(arith.SelectOp(positive, e.constant(1 << 19, wide), e.constant(-(1 << 19), wide)))
    mean = e(arith.DivSIOp(e(arith.AddiOp(total, nudge)), e.constant(1 << 20, wide)))
    return e(arith.TruncIOp(mean, type))
