"""Elementwise functions that several formats share: activations, powers, logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar


def elu(x: Scalar, alpha: float, gamma: float = 1.0) -> Scalar:
    """`gamma * (x if x > 0 else alpha * (exp(x) - 1))`."""
    low = (x.of(relay.MinimumOp, 0.0).exp() - 1.0) * alpha
    found = (x > 0.0).choose(x, low, x)
    return found if gamma == 1.0 else found * gamma


def softplus(x: Scalar) -> Scalar:
    """`max(x, 0) + log(1 + exp(-|x|))`, which does not overflow."""
    return x.of(relay.MaximumOp, 0.0) + ((-x.of(relay.AbsOp)).exp() + 1.0).of(relay.LogOp)


def log1p(x: Scalar) -> Scalar:
    """`log(1 + x)`, computed as `log(u) + (x - (u - 1)) / u` with `u = 1 + x`, where `x - (u - 1)` is the rounding
    error of the sum."""
    total = x + 1.0
    exact = total.of(relay.LogOp) + (x - (total - 1.0)) / total
    return exact.of(relay.IsfiniteOp).choose(exact, total.of(relay.LogOp), x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of (x, y): `atan(y / x)`, plus or minus half a turn if x is negative, or a quarter turn if it is 0."""
    near, turn = (y / x).of(relay.AtanOp), (y < 0.0).choose(-math.pi, math.pi, x)
    straight = (y < 0.0).choose(-math.pi / 2, (y > 0.0).choose(math.pi / 2, x.number(0.0), x), x)
    return x.of(relay.EqualOp, 0.0).choose(straight, (x < 0.0).choose(near + turn, near, x), x)


def hard_sigmoid(x: Scalar) -> Scalar:
    return (x + 3.0).between(0.0, 6.0) / 6.0


def glu(x: Scalar, axis: int) -> Scalar:
    """The first half along an axis of known size times the sigmoid of the second half."""
    size = x.importer.shape(x.value)[axis]
    if size % 2:
        raise x.importer.at.malformed(f"has {size} channels, an odd number")
    bounds = ((0, size // 2), (size // 2, size))
    a, b = (Scalar(x.importer, x.importer.slice(x.value, {axis: each})) for each in bounds)
    return a * b.of(relay.SigmoidOp)


def prelu(x: Scalar, slope: Scalar) -> Scalar:
    return (x > 0.0).choose(x, x * slope, x)


def shrunk(x: Scalar, limit: float, bias: float) -> Scalar:
    """Soft or hard shrinkage: `x + bias` if x is below -limit, `x - bias` if it is above limit, else 0."""
    return (x < -limit).choose(x + bias, (x > limit).choose(x - bias, 0.0, x), x)


POWERS: dict[float, Callable[[Scalar], Scalar]] = {
    -0.5: lambda x: x.of(relay.RsqrtOp), 0.5: lambda x: x.of(relay.SqrtOp), 1.0: lambda x: x,
    2.0: lambda x: x * x, 3.0: lambda x: x * x * x,
}  # fmt: skip
"""The formulas of powers of floats that are computed by products and roots, by exponent."""
ACTIVATIONS: dict[str, Callable[[Scalar], Scalar]] = {
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": lambda x: x * hard_sigmoid(x),
    "selu": lambda x: elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
    "silu": lambda x: x * x.of(relay.SigmoidOp),
    "softsign": lambda x: x / (x.of(relay.AbsOp) + 1.0),
    "tanh_shrink": lambda x: x - x.of(relay.TanhOp),
}
"""Activations without parameters, by the name that both PyTorch and Keras use (without PyTorch's `_`)."""
FUNCTIONS: dict[str, Callable[[Scalar], Scalar]] = {
    "exp2": lambda x: (x * math.log(2)).exp(),
    "log1p": log1p,
    "reciprocal": lambda x: x.number(1.0) / x,
    "square": lambda x: x * x,
}
"""Elementwise functions without parameters that are not activations, by the name that both PyTorch and Keras use."""
