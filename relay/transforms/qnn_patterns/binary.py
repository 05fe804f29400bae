"""Patterns for quotients, squared differences and comparisons of quantized values, in i32."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.op import TensorOp, tensor
from relay.interpreters.arithmetic import Int64, int64, leading_zeros32, reciprocal
from relay.transforms.expansion import Expansion
from relay.transforms.legalization import Legalization, pattern
from relay.transforms.qnn_patterns.arithmetic import end, sides
from relay.transforms.qnn_patterns.rescale import finish
from relay.transforms.qnn_patterns.tables import every_code


@pattern
def squared_difference(new: Expansion, op: qnn.SquaredDifferenceOp) -> SSAValue:
    """qnn.squared_difference %a, %b  =>  cast(clip(rescale(d * d) + zero point)), d = x - y

    `x = rescale((a - zero point) << left_shift)`, and y likewise of b.
    """
    difference = new.value(relay.SubtractOp, *sides(new, op, op.lhs, op.rhs))
    return end(new, op, new.value(relay.MultiplyOp, difference, difference))


COMPARISONS: dict[type[qnn.QnnCompareOp], tuple[type[TensorOp], int]] = {
    qnn.EqualOp: (relay.EqualOp, 0),
    qnn.LessOp: (relay.LessOp, 0),
    qnn.LessEqualOp: (relay.LessOp, 1),
    qnn.GreaterOp: (relay.GreaterOp, 0),
    qnn.GreaterEqualOp: (relay.GreaterOp, -1),
}
"""For each comparison, the op that compares the integers, and the amount added to its right operand; the integers are
far from the limits of i32."""


@pattern
def compare(new: Expansion, op: qnn.QnnCompareOp) -> SSAValue:
    """qnn.equal, less, greater %a, %b  =>  relay.equal, less, greater x, y

    `x = rescale((a - zero point) << left_shift)`, y likewise of b. `less_equal` becomes `less x, y + 1`,
    `greater_equal` becomes `greater x, y - 1`, and `not_equal` becomes the cast of `x - y` to i1.
    """
    lhs, rhs = sides(new, op, op.lhs, op.rhs)
    if isinstance(op, qnn.NotEqualOp):
        return new.cast(new.value(relay.SubtractOp, lhs, rhs), i1)
    kind, more = COMPARISONS[type(op)]
    return new.value(kind, lhs, new.plus(rhs, more))


@pattern
def divide(new: Expansion, op: qnn.DivideOp) -> SSAValue:
    """qnn.divide %a, %b  =>  cast(clip(q + zero point)), q = rounding_right_shift (high_multiply (high_multiply n, r),
    multiplier), f + s - shift

    n, f, r and s are looked up in tables by the codes, with a' and b' the codes minus their zero points. a' changes its
    sign where b' is negative, and is 0 where b' is 0; f is the number of its redundant sign bits, and n = a' << f. r is
    the mantissa of the reciprocal of |b'|, and s its shift. q is 0 where the amount of the right shift is above 31, and
    shifted left where it is negative.
    """
    a, b = (
        int64(every_code(tensor(x).element_type)) - zero.value.data
        for x, zero in ((op.lhs, op.lhs_zero_point), (op.rhs, op.rhs_zero_point))
    )
    inverse, headroom = reciprocal(np.maximum(np.abs(b), 1))
    negative = new.lookup(op.rhs, b < 0, np.int32)
    plain, turned = (numerators(new, op.lhs, sign * a) for sign in (1, -1))
    flag = new.cast(negative, i1)
    top, free = (new.value(relay.WhereOp, flag, second, first) for first, second in zip(plain, turned, strict=True))
    top = new.value(relay.MultiplyOp, top, new.lookup(op.rhs, b != 0, np.int32))
    quotient = new.value(relay.HighMultiplyOp, top, new.lookup(op.rhs, inverse, np.int32))
    scaled = new.value(relay.HighMultiplyOp, quotient, new.constant(op.multiplier.value.data, np.int32))
    bits = new.lookup(op.rhs, 31 - headroom - op.shift.value.data, np.int32)
    amount = new.value(relay.AddOp, free, bits)
    right = new.value(relay.RoundingRightShiftOp, scaled, new.clip(amount, 0, 31))
    small = new.value(relay.GreaterOp, amount, new.constant(31, np.int32))
    right = new.value(relay.WhereOp, small, new.constant(0, np.int32), right)
    left = new.clip(new.value(relay.NegativeOp, amount), 0, 31)
    x = new.value(relay.LeftShiftOp, right, left)
    type = tensor(op.result).element_type
    return finish(new, x, op.output_zero_point.value.data, op.min, op.max, type)


def numerators(new: Expansion, code: SSAValue, a: Int64) -> tuple[SSAValue, SSAValue]:
    """Return `a << free` and `free` for each element of the tensor `code`, looked up in tables. `a` has one integer for
    every possible code; `free` is the number of its redundant sign bits in 32 bits."""
    free = leading_zeros32(np.where(a < 0, ~a, a)) - 1
    return new.lookup(code, (a << free).astype(np.int32), np.int32), new.lookup(code, free, np.int32)


PATTERNS: list[type[Legalization]] = [squared_difference, compare, divide]
