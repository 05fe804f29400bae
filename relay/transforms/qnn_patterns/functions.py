"""Patterns for functions of one quantized value, in i32 where that takes few operations."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import dtype_of, ints, to_numpy
from relay.dialects.op import tensor
from relay.dialects.qnn.parameters import TFLITE
from relay.interpreters.arithmetic import INT32_MAX
from relay.interpreters.qnn_functions import HALF_SQRT_2
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization, pattern
from relay.transforms.qnn_patterns.rescale import codes_to_i32, finish, rescale
from relay.transforms.qnn_patterns.tables import by_table


def end(new: Expansion, op: qnn.QnnFunctionOp | qnn.PreluOp, x: SSAValue) -> SSAValue:
    """`clamp(x + output zero point)`."""
    return finish(new, x, op.output_zero_point.value.data, None, None, tensor(op.result).element_type)


@pattern
def abs_(new: Expansion, op: qnn.AbsOp) -> SSAValue:
    """qnn.abs %x  =>  cast(clip(rescale(abs(i32(%x) - zero point)) + zero point))"""
    x = new.value(relay.AbsOp, codes_to_i32(new, op.input, op.input_zero_point))
    if op.multiplier is not None and op.shift is not None:
        x = rescale(new, x, op.multiplier.value.data, op.shift.value.data, TFLITE)
    return end(new, op, x)


@pattern
def leaky_relu(new: Expansion, op: qnn.LeakyReluOp) -> SSAValue:
    """qnn.leaky_relu %x => relay.lookup %x, table for 8-bit codes; for others cast(clip(where(%x' < 0, +-rescale(%x'),
    rescale(%x')) + zero point)), %x' = i32(%x) - zero point"""
    if dtype_of(tensor(op.input).element_type).itemsize == 1:
        return by_table(new, op)
    x = codes_to_i32(new, op.input, op.input_zero_point)
    sloped = rescale(new, x, op.alpha_multiplier.value.data, op.alpha_shift.value.data, TFLITE)
    if float(to_numpy(op.alpha)) < 0:
        sloped = new.value(relay.NegativeOp, sloped)
    return end(new, op, either(new, op, x, sloped))


@pattern
def prelu(new: Expansion, op: qnn.PreluOp) -> SSAValue:
    """qnn.prelu %x, %a  =>  cast(clip(where(%x' < 0, rescale(%x' * %a'), rescale(%x')) + output zero point)), where %x'
    and %a' are %x and %a as i32 minus their own zero points"""
    x = codes_to_i32(new, op.input, op.input_zero_point)
    sloped = new.value(relay.MultiplyOp, x, codes_to_i32(new, op.alpha, op.alpha_zero_point))
    sloped = rescale(new, sloped, op.alpha_multiplier.value.data, op.alpha_shift.value.data, TFLITE)
    return end(new, op, either(new, op, x, sloped))


def either(new: Expansion, op: qnn.LeakyReluOp | qnn.PreluOp, x: SSAValue, sloped: SSAValue) -> SSAValue:
    """`where(x < 0, sloped, rescale(x))`."""
    kept = rescale(new, x, op.multiplier.value.data, op.shift.value.data, TFLITE)
    negative = new.value(relay.LessOp, x, new.constant(0, np.int32))
    return new.value(relay.WhereOp, negative, sloped, kept)


@pattern
def l2_normalize(new: Expansion, op: qnn.L2NormalizeOp) -> SSAValue:
    """qnn.l2_normalize %x  =>  cast(clip(((%x' * 128 * m) >> (31 + s)) + output zero point)), where %x' = i32(%x) -
    input zero point, and `m * 2^(-31 - s)` is the inverse square root of the sum of %x'^2 over the last axis, found by
    five Newton-Raphson steps"""
    type = tensor(op.result).element_type
    x = codes_to_i32(new, op.input, op.input_zero_point)
    keep = {"axis": ints([-1]), "keepdims": IntegerAttr.from_bool(True)}
    total = new.value(relay.SumOp, new.value(relay.MultiplyOp, x, x), properties=keep)
    mantissa, right = inverse_square_root(new, total)
    signed = limits(type)[0] < 0
    left = new.clip(new.plus(new.value(relay.NegativeOp, right), 7), 0, 7) if signed else None
    right = new.clip(new.plus(right, -7), 0, 31) if signed else right
    x = new.left_shift(x, 7) if left is None else new.value(relay.LeftShiftOp, x, left)
    x = new.value(relay.HighMultiplyOp, x, mantissa)
    x = new.value(relay.RoundingRightShiftOp, x, right)
    return finish(new, x, 0 if signed else 128, None, None, type)


def inverse_square_root(new: Expansion, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """(m, r) in i32 with `1 / sqrt(x) ~ m * 2^(-r - 31)`, r >= 0, as `relay.interpreters.qnn_functions` computes it."""

    def constant(value: int) -> SSAValue:
        return new.constant(value, np.int32)

    def multiply(a: SSAValue, b: SSAValue) -> SSAValue:
        return new.value(relay.HighMultiplyOp, a, b)

    def saturating_shift(a: SSAValue, amount: int) -> SSAValue:
        bound = (1 << (31 - amount)) - 1
        high = new.value(relay.GreaterOp, a, constant(bound))
        low = new.value(relay.LessOp, a, constant(-bound - 1))
        moved = new.left_shift(a, amount)
        moved = new.value(relay.WhereOp, high, constant(INT32_MAX), moved)
        return new.value(relay.WhereOp, low, constant(-INT32_MAX - 1), moved)

    large = new.cast(new.value(relay.GreaterOp, x, constant((1 << 29) - 1)), i32)
    moved = new.value(relay.RightShiftOp, x, new.left_shift(large, 1))
    moved = new.value(relay.MaximumOp, moved, constant(2))
    zeros = new.add(relay.FixedPointReciprocalOp, [moved]).headroom
    pairs = new.plus(new.value(relay.RightShiftOp, new.plus(zeros, -1), constant(1)), -1)
    shift = new.value(relay.SubtractOp, new.plus(large, 11), pairs)
    number = new.value(relay.LeftShiftOp, moved, new.left_shift(pairs, 1))
    number = new.value(relay.RightShiftOp, number, constant(1))
    half = new.value(relay.RoundingRightShiftOp, number, constant(1))
    root: SSAValue | None = None
    for _ in range(5):
        y = constant(1 << 28) if root is None else root
        cube = saturating_shift(multiply(multiply(y, y), y), 6)
        step = new.value(relay.SubtractOp, multiply(constant((1 << 28) + (1 << 27)), y), multiply(half, cube))
        root = saturating_shift(step, 3)
    assert root is not None
    left = new.value(relay.MaximumOp, new.value(relay.NegativeOp, shift), constant(0))
    result = new.value(relay.LeftShiftOp, multiply(root, constant(HALF_SQRT_2)), left)
    known = new.value(relay.GreaterOp, x, constant(1))
    right = new.value(relay.MaximumOp, shift, constant(0))
    return (
        new.value(relay.WhereOp, known, result, constant(INT32_MAX)),
        new.value(relay.WhereOp, known, right, constant(0)),
    )


PATTERNS: list[type[Legalization]] = [abs_, leaky_relu, prelu, l2_normalize]
