"""Pooling: the shape of a window operand gives the window's size, and `tensor.pad` adds the cells outside the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values
from relay.dialects.element_types import bits_of
from relay.dialects.op import shape, tensor
from relay.lowering.linalg.division import quotient_of_floats
from relay.lowering.linalg.emitter import (
    Body,
    Emitter,
    Operand,
    axes,
    dims,
    element,
    identity,
    kind,
    lowest,
    number,
    over,
    signless,
    sliding,
)

EXACT = 1 << 24
"""The largest integer up to which all integers are exact as float32."""


@dataclass(frozen=True)
class Axis:
    """A window along one spatial axis."""

    cells: int
    stride: int
    dilation: int
    before: int
    after: int


def windows(op: relay.PoolOp) -> list[Axis]:
    """Return the windows of a pool per spatial axis, for channels last."""
    return [Axis(*window, *padding) for window, padding in zip(op.windows(), op.each_padding(), strict=True)]


def pool(
    e: Emitter, op: relay.PoolOp, data: SSAValue, fill: float | int, accumulator: Attribute, body: Body
) -> SSAValue:
    """Reduce each window, by loops over (n, y..., c, i...), into a tensor initialised to `fill`."""
    along = windows(op)
    count, rank = len(along), 2 + 2 * len(along)
    data = e.pad(data, [(0, 0), *((axis.before, axis.after) for axis in along), (0, 0)], fill)
    places = [sliding(1 + k, axis.stride, 2 + count + k, axis.dilation) for k, axis in enumerate(along)]
    cell = over(rank, [AffineExpr.dimension(0), *places, AffineExpr.dimension(1 + count)])
    window = e.empty([axis.cells for axis in along], element(data))
    start = e.filled(tensor(op.result).get_shape(), accumulator, fill)
    inputs = [(data, cell), (window, axes(rank, *range(2 + count, rank)))]
    return e.generic(inputs, [(start, axes(rank, *range(2 + count)))], count, body)[0]


def max_pool(e: Emitter, op: relay.MaxPoolBase, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    type = tensor(op.data).element_type
    make = {"float": arith.MaximumfOp, "signed": arith.MaxSIOp, "unsigned": arith.MaxUIOp}[kind(type)]
    fill = lowest(type)
    return [pool(e, op, operands[0], fill, signless(type), lambda e, args: [e(make(args[2], args[0]))])]


def average_operands(e: Emitter, op: Operation, operands: Sequence[SSAValue]) -> Sequence[Operand]:
    """Return the sum of each window (in i32, or i64 for 32-bit codes), and the number of cells inside the image, if
    windows overlap the border."""
    assert isinstance(op, relay.AvgPoolBase)
    type = tensor(op.data).element_type
    accumulator = type if isinstance(type, AnyFloat) else i32 if bits_of(type) <= 16 else i64

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if isinstance(type, AnyFloat):
            return [e(arith.AddfOp(args[2], args[0]))]
        return [e(arith.AddiOp(args[2], e.widen(args[0], type, accumulator)))]

    total = pool(e, op, operands[0], 0, accumulator, body)
    result: list[Operand] = [(total, identity(len(dims(total))))]
    if any(axis.before or axis.after for axis in windows(op)):
        dtype = dtype_of(type) if isinstance(type, AnyFloat) else np.dtype(np.int32)
        counts = e.tensor_constant(cells(op).astype(dtype), "cells_in_window")
        width = len(dims(total))
        result.append((counts, axes(width, *range(1, width - 1))))
    return result


def cells(op: relay.AvgPoolBase) -> Array:
    """Return the number of cells of each window [y, ...] that are inside the image; 1 if there are none."""
    counts = np.ones((), np.int64)
    for axis, size, result in zip(windows(op), shape(op.data)[1:-1], shape(op.result)[1:-1], strict=True):
        start = np.arange(result) * axis.stride - axis.before
        places = start[:, None] + np.arange(axis.cells) * axis.dilation
        inside = ((places >= 0) & (places < size)).sum(axis=1)
        counts = np.multiply.outer(counts, inside)
    return np.maximum(counts, 1)


def average(e: Emitter, op: relay.AvgPoolBase, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit the average. Floats: sum / count. Integers: `(sum > 0 ? sum + count / 2 : sum - count / 2) / count`,
    truncated."""
    total, type = xs[0], tensor(op.data).element_type
    size = int(np.prod(int_values(op.pool_size)))
    if isinstance(type, AnyFloat):
        count = xs[1] if len(xs) > 1 else e.constant(size, total.type)
        return [e(arith.DivfOp(total, count))]
    count = e.widen(xs[1], i32, total.type) if len(xs) > 1 else e.constant(size, total.type)
    known = number(count)
    half = (
        e.constant(int(known) // 2, total.type)
        if known is not None
        else e(arith.ShRUIOp(count, e.constant(1, total.type)))
    )
    positive = e(arith.CmpiOp(total, e.constant(0, total.type), "sgt"))
    nudged = e(arith.SelectOp(positive, e(arith.AddiOp(total, half)), e(arith.SubiOp(total, half))))
    to = signless(type)
    assert isa(to, IntegerType)
    if known is None and (size + 1 << to.width.data) < EXACT:
        mean = quotient_of_floats(e, nudged, count)
    else:
        mean = e(arith.DivSIOp(nudged, count))
    return [mean if mean.type == to else e(arith.TruncIOp(mean, to))]
