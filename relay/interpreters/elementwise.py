"""Numpy implementation of elementwise ops. Integers wrap; f32 functions are correctly rounded (computed in f64)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Operation

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.element_types import converted, wider
from relay.interpreters.arithmetic import round_away
from relay.interpreters.meaning import Meaning, Meanings


def ignoring_op(function: Callable[..., Array]) -> Meaning:
    """Adapt a numpy function of an op's operands to the interface of the interpreter, whose functions also take the op:
    `meaning(op, *operands)` returns `function(*operands)`."""

    def meaning(op: Operation, *operands: Array) -> Array:
        return function(*operands)

    return meaning


def in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that computes `function` in f64 and rounds the result to the operand's type."""

    def rounded(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(x.dtype)

    return rounded


exp = in_double(np.exp)
tanh = in_double(np.tanh)


def sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))`, with every step in the type of x."""
    one = x.dtype.type(1)
    return one / (one + exp(-x))


def rsqrt(x: Array) -> Array:
    """`1 / sqrt(x)` in the type of x."""
    return x.dtype.type(1) / np.sqrt(x)


def divide(lhs: Array, rhs: Array) -> Array:
    """Divide; integers are truncated towards zero, division by zero gives 0, and the lowest value by -1 wraps."""
    if lhs.dtype.kind == "f":
        return lhs / rhs
    quotient = lhs // rhs
    inexact = lhs != quotient * rhs
    towards_zero = quotient + (inexact & ((lhs < 0) != (rhs < 0))).astype(lhs.dtype)
    return np.where(rhs == 0, np.zeros_like(rhs), towards_zero)


def floor_divide(lhs: Array, rhs: Array) -> Array:
    """`floor(lhs / rhs)`; division of integers by zero gives 0."""
    if lhs.dtype.kind == "f":
        return np.floor(lhs / rhs)
    return np.where(rhs == 0, np.zeros_like(rhs), lhs // rhs)


def clip(op: relay.ClipOp, x: Array) -> Array:
    return np.minimum(np.maximum(x, wider(to_numpy(op.a_min))), wider(to_numpy(op.a_max)))


def cast(op: relay.CastOp, x: Array) -> Array:
    return converted(x, dtype_of(op.dtype), op.saturate is not None)


FUNCTIONS: dict[type[Operation], Callable[..., Array]] = {
    relay.AddOp: np.add,
    relay.SubtractOp: np.subtract,
    relay.MultiplyOp: np.multiply,
    relay.DivideOp: divide,
    relay.FloorDivideOp: floor_divide,
    relay.MaximumOp: np.maximum,
    relay.MinimumOp: np.minimum,
    relay.LeftShiftOp: np.left_shift,
    relay.RightShiftOp: np.right_shift,
    relay.EqualOp: np.equal,
    relay.GreaterOp: np.greater,
    relay.LessOp: np.less,
    relay.WhereOp: np.where,
    relay.NegativeOp: np.negative,
    relay.AbsOp: np.abs,
    relay.SqrtOp: np.sqrt,
    relay.RsqrtOp: rsqrt,
    relay.ExpOp: exp,
    relay.LogOp: in_double(np.log),
    relay.SigmoidOp: sigmoid,
    relay.TanhOp: tanh,
    relay.RoundOp: round_away,
    relay.FloorOp: np.floor,
    relay.CeilOp: np.ceil,
}
"""The functions of ops without properties."""

MEANINGS: Meanings = {
    **{op: ignoring_op(function) for op, function in FUNCTIONS.items()},
    relay.ClipOp: clip,
    relay.CastOp: cast,
}
