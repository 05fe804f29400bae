"""Numpy implementation of fixed-point ops and table lookups."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.interpreters import arithmetic
from relay.interpreters.meaning import Meanings, along


def fixed_point_multiply(op: relay.FixedPointMultiplyOp, x: Array, multiplier: Array, shift: Array) -> Array:
    axis = op.axis.value.data
    result = arithmetic.multiply_by_quantized_multiplier(
        x, along(multiplier, axis, x.ndim), along(shift, axis, x.ndim), op.rounding.data
    )
    return result.astype(np.int32)


def high_multiply(op: relay.HighMultiplyOp, lhs: Array, rhs: Array) -> Array:
    return arithmetic.rounding_doubling_high_multiply(lhs, rhs).astype(np.int32)


def rounding_right_shift(op: relay.RoundingRightShiftOp, x: Array, amount: Array) -> Array:
    return arithmetic.rounding_right_shift(x, amount).astype(np.int32)


def fixed_point_reciprocal(op: relay.FixedPointReciprocalOp, x: Array) -> tuple[Array, Array]:
    mantissa, headroom = arithmetic.reciprocal(x)
    return mantissa.astype(np.int32), headroom.astype(np.int32)


def lookup(op: relay.LookupOp, codes: Array, table: Array) -> Array:
    return lookup_codes(table, codes)


def lookup_codes(table: Array, codes: Array) -> Array:
    """Look up quantized values in a table whose first element belongs to the type's lowest value."""
    return table[codes.astype(np.int64) - np.iinfo(codes.dtype).min]


MEANINGS: Meanings = {
    relay.FixedPointMultiplyOp: fixed_point_multiply,
    relay.HighMultiplyOp: high_multiply,
    relay.RoundingRightShiftOp: rounding_right_shift,
    relay.FixedPointReciprocalOp: fixed_point_reciprocal,
    relay.LookupOp: lookup,
}
