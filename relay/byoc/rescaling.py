"""Checks that the multipliers of ops agree with their scales, which formats that store only scales require."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from relay.byoc.quantized import Quantization, codes
from relay.dialects import qnn
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import shape

TOLERANCE = 1e-5
"""The accepted relative difference of a factor; it changes a result of at most 256 steps by less than 1/390 of a
step."""


def effective(multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Array:
    """The factor of a multiplier and shift, `multiplier * 2^(shift - 31)`, in float64."""
    return np.ldexp(np.asarray(multiplier, np.float64), np.asarray(shift, np.int64) - 31)


def near(real: npt.ArrayLike, found: npt.ArrayLike) -> bool:
    """Whether the factors are equal up to `TOLERANCE`, or too small to affect the result."""
    wanted, given = np.asarray(real, np.float64), np.asarray(found, np.float64)
    return bool((np.abs(wanted - given) <= np.maximum(TOLERANCE * wanted, 2.0**-32)).all())


def _off(what: str) -> str:
    return f"{what} is not that of its scales"


def product_refusal(quantization: Quantization) -> str | None:
    """The reason to refuse a product: its requantization multiplies by other factors than its scales give. None if the
    factors agree with the scales."""
    op = quantization.requantize
    if op.real_multiplier is not None and op.rounding.data in ("f64_away", "f32_even"):
        found = to_numpy(op.real_multiplier)
    elif op.rounding.data == "f32_even":
        found = to_numpy(op.input_scale).astype(np.float64) / to_numpy(op.output_scale)
    else:
        found = effective(to_numpy(op.multiplier), to_numpy(op.shift))
    return None if near(quantization.real_multipliers, found) else _off("its multiplier")


def requantize_refusal(op: qnn.RequantizeOp) -> str | None:
    """The reason why a requantization is refused: it has a scale per channel, or its multiplier does not agree with its
    scales. None if it is not refused."""
    if to_numpy(op.input_scale).size != 1 or to_numpy(op.multiplier).size != 1:
        return "it has a scale per channel"
    source, target = codes(op.input_scale, op.input_zero_point), codes(op.output_scale, op.output_zero_point)
    found = effective(to_numpy(op.multiplier), to_numpy(op.shift))
    return None if near(source.scale / target.scale, found) else _off("its multiplier")


def binary_refusal(op: qnn.QnnBinaryOp) -> str | None:
    """The reason why a qnn.add, qnn.subtract or qnn.mul is refused whose multipliers are not those that follow from its
    scales; None if they are."""
    lhs, rhs, out = (attr.value.data for attr in (op.lhs_scale, op.rhs_scale, op.output_scale))
    last = effective(op.multiplier.value.data, op.shift.value.data)
    if isinstance(op, qnn.QnnAddBase):
        up = 2.0**op.left_shift.value.data
        left = effective(op.lhs_multiplier.value.data, op.lhs_shift.value.data)
        right = effective(op.rhs_multiplier.value.data, op.rhs_shift.value.data)
        if near(lhs / out, left * last * up) and near(rhs / out, right * last * up):
            return None
    elif near(lhs * rhs / out, last):
        return None
    return _off("one of its multipliers")


def mean_refusal(op: qnn.MeanOp) -> str | None:
    """Check that the multiplier of a mean of `count` elements is the one that follows from its scales, `input scale /
    output scale / count`. Return None if it is, else the reason why the op is refused."""
    count = math.prod(shape(op.input)[axis] for axis in op.axes())
    real = op.input_scale.value.data / op.output_scale.value.data / count
    found = effective(op.multiplier.value.data, op.shift.value.data)
    return None if near(real, found) else _off("its multiplier")


def softmax_refusal(op: qnn.SoftmaxOp) -> str | None:
    """Return the reason why a softmax is refused if its multiplier does not agree with its scale; None if it agrees.
    The multiplier represents `beta * input_scale`, with 26 fraction bits and saturated at 2^31 - 1."""
    real = min(op.beta.value.data * op.input_scale.value.data * 2.0**26, 2.0**31 - 1)
    return None if near(real, effective(op.multiplier.value.data, op.shift.value.data)) else _off("its multiplier")


def curve_refusal(op: qnn.QnnUnaryOp) -> str | None:
    """The reason why a quantized function (such as sigmoid) is refused, if the op computes it otherwise than LiteRT;
    else None."""
    return None if op.numerics.data == "litert" else f"its function is computed as {op.numerics.data} does"
