"""Reference implementations in numpy of functions of one tensor, comparisons, logic, bit operations, remainders and
powers. Floats are rounded as in C."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.ir import Operation

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.interpreters.elementwise import exp, ignoring_op, in_double, tanh
from relay.interpreters.meaning import Meanings

erf = in_double(np.vectorize(math.erf, otypes=[np.float64]))


def mod(lhs: Array, rhs: Array) -> Array:
    """The remainder as in C, which has the dividend's sign; 0 for integers if the divisor is 0."""
    if lhs.dtype.kind == "f":
        return np.fmod(lhs, rhs)
    return np.where(rhs == 0, np.zeros_like(rhs), np.fmod(lhs, rhs))


def floor_mod(lhs: Array, rhs: Array) -> Array:
    """The remainder as in Python, which has the divisor's sign."""
    rest = mod(lhs, rhs)
    return np.where((rest != 0) & ((rest < 0) != (rhs < 0)), rest + rhs, rest)


def power(lhs: Array, rhs: Array) -> Array:
    """Powers: floats are computed in f64; integers wrap, and negative exponents give 0."""
    if lhs.dtype.kind == "f":
        return np.power(lhs.astype(np.float64), rhs.astype(np.float64)).astype(lhs.dtype)
    raised = np.power(lhs, np.maximum(rhs, np.zeros_like(rhs)))
    return np.where(rhs < 0, np.zeros_like(raised), raised)


def shape_of(op: relay.ShapeOfOp, x: Array) -> Array:
    return np.array(x.shape, dtype_of(op.dtype))


def ndarray_size(op: relay.NdarraySizeOp, x: Array) -> Array:
    return np.array(x.size, dtype_of(op.dtype))


FUNCTIONS: dict[type[Operation], Callable[..., Array]] = {
    relay.AcosOp: in_double(np.arccos),
    relay.AcoshOp: in_double(np.arccosh),
    relay.AsinOp: in_double(np.arcsin),
    relay.AsinhOp: in_double(np.arcsinh),
    relay.AtanOp: in_double(np.arctan),
    relay.AtanhOp: in_double(np.arctanh),
    relay.CosOp: in_double(np.cos),
    relay.CoshOp: in_double(np.cosh),
    relay.ErfOp: erf,
    relay.Expm1Op: in_double(np.expm1),
    relay.Log2Op: in_double(np.log2),
    relay.Log10Op: in_double(np.log10),
    relay.SinOp: in_double(np.sin),
    relay.SinhOp: in_double(np.sinh),
    relay.TanOp: in_double(np.tan),
    relay.TruncOp: np.trunc,
    relay.FastErfOp: erf,
    relay.FastExpOp: exp,
    relay.FastTanhOp: tanh,
    relay.SignOp: np.sign,
    relay.CopyOp: np.asarray,
    relay.BitwiseNotOp: np.invert,
    relay.LogicalNotOp: np.logical_not,
    relay.ZerosLikeOp: np.zeros_like,
    relay.OnesLikeOp: np.ones_like,
    relay.IsnanOp: np.isnan,
    relay.IsinfOp: np.isinf,
    relay.IsfiniteOp: np.isfinite,
    relay.NotEqualOp: np.not_equal,
    relay.GreaterEqualOp: np.greater_equal,
    relay.LessEqualOp: np.less_equal,
    relay.LogicalAndOp: np.logical_and,
    relay.LogicalOrOp: np.logical_or,
    relay.LogicalXorOp: np.logical_xor,
    relay.BitwiseAndOp: np.bitwise_and,
    relay.BitwiseOrOp: np.bitwise_or,
    relay.BitwiseXorOp: np.bitwise_xor,
    relay.ModOp: mod,
    relay.FloorModOp: floor_mod,
    relay.PowerOp: power,
}
"""The numpy function that computes an op's result from its operands alone, by class of the op."""

MEANINGS: Meanings = {
    **{op: ignoring_op(function) for op, function in FUNCTIONS.items()},
    relay.ShapeOfOp: shape_of,
    relay.NdarraySizeOp: ndarray_size,
}
