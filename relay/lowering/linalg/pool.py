"""Pooling: a window operand gives the size, `tensor.pad` the cells outside the image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values
from relay.dialects.op import shape, tensor
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


def pool(
    e: Emitter, op: relay.Pool2dOp, data: SSAValue, fill: float | int, accumulator: Attribute, body: Body
) -> SSAValue:
    """Reduce each window, dimensions (n, y, x, c, i, j), into a tensor that starts as `fill`."""
    top, left, bottom, right = int_values(op.padding)
    (sy, sx), size = int_values(op.strides), int_values(op.pool_size)
    data = e.pad(data, [(0, 0), (top, bottom), (left, right), (0, 0)], fill)
    cell = over(6, [AffineExpr.dimension(0), sliding(1, sy, 4, 1), sliding(2, sx, 5, 1), AffineExpr.dimension(3)])
    window = e.empty(size, element(data))
    start = e.filled(tensor(op.result).get_shape(), accumulator, fill)
    return e.generic([(data, cell), (window, axes(6, 4, 5))], [(start, axes(6, 0, 1, 2, 3))], 2, body)[0]


def max_pool2d(e: Emitter, op: relay.MaxPool2dOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    type = tensor(op.data).element_type
    make = {"float": arith.MaximumfOp, "signed": arith.MaxSIOp, "unsigned": arith.MaxUIOp}[kind(type)]
    fill = lowest(type)
    return [pool(e, op, operands[0], fill, signless(type), lambda e, args: [e(make(args[2], args[0]))])]


def average_operands(e: Emitter, op: Operation, operands: Sequence[SSAValue]) -> Sequence[Operand]:
    """The sum of each window (in i32, i64 for 32-bit codes), and the number of cells inside the image."""
    assert isinstance(op, relay.AvgPool2dOp)
    type = tensor(op.data).element_type
    accumulator = type if isinstance(type, AnyFloat) else wide(type)

    def body(e: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if isinstance(type, AnyFloat):
            return [e(arith.AddfOp(args[2], args[0]))]
        return [e(arith.AddiOp(args[2], e.widen(args[0], type, accumulator)))]

    total = pool(e, op, operands[0], 0, accumulator, body)
    result: list[Operand] = [(total, identity(len(dims(total))))]
    if any(int_values(op.padding)):
        dtype = dtype_of(type) if isinstance(type, AnyFloat) else np.dtype(np.int32)
        counts = e.tensor_constant(cells(op).astype(dtype), "cells_in_window")
        result.append((counts, axes(4, 1, 2)))
    return result


def wide(type: Attribute) -> IntegerType:
    """Holds the sum of a window of these codes."""
    assert isa(type, IntegerType)
    return i32 if type.width.data <= 16 else i64


def cells(op: relay.AvgPool2dOp) -> Array:
    """How many cells of each window [y, x] are inside the image."""
    top, left, _, _ = int_values(op.padding)
    counts: list[Array] = []
    for axis, before, size, stride in zip(
        (1, 2), (top, left), int_values(op.pool_size), int_values(op.strides), strict=True
    ):
        start = np.arange(shape(op.result)[axis]) * stride - before
        counts.append(np.minimum(start + size, shape(op.data)[axis]) - np.maximum(start, 0))
    return np.outer(counts[0], counts[1])


def average(e: Emitter, op: relay.AvgPool2dOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Floats: sum / count. Integers: `(sum > 0 ? sum + count / 2 : sum - count / 2) / count`, truncated."""
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
    mean = e(arith.DivSIOp(nudged, count))
    to = signless(type)
    assert isa(to, IntegerType)
    return [mean if mean.type == to else e(arith.TruncIOp(mean, to))]
