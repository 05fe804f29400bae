"""Scale arithmetic of TFLite's reference kernels: multipliers, activation bounds.

The precision of each step (float32 or double) affects the result, so numpy's scalar types are used throughout. Source:
TFLite `quantization_util.cc`, `kernel_util.cc`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relay.interpreters.arithmetic import round_away

FLOAT_LIMIT = float(np.finfo(np.float32).max)
_ACTIVATIONS: dict[str, tuple[float | None, float | None]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""The activations that are clamps, with their bounds as real numbers."""


class Codes(NamedTuple):
    """The quantization of 8- or 16-bit values, `scale * (code - zero_point)`, with values from `low` to `high`."""

    scale: np.float32
    zero_point: int
    low: int
    high: int


def is_clamp(activation: str) -> bool:
    """Whether the fused activation is a clamp."""
    return activation in _ACTIVATIONS


def code_bounds(activation: str, codes: Codes, to_even: bool = False) -> tuple[int, int]:
    """The smallest and largest quantized value that the activation lets through (CalculateActivationRangeQuantized).
    `to_even` divides in double and rounds halves to even, as TVM does."""
    low, high = _ACTIVATIONS[activation]
    return (
        codes.low if low is None else max(codes.low, _code(low, codes, to_even)),
        codes.high if high is None else min(codes.high, _code(high, codes, to_even)),
    )


def _code(real: float, codes: Codes, to_even: bool) -> int:
    if to_even:
        return codes.zero_point + round(real / float(codes.scale))
    return codes.zero_point + int(round_away(np.asarray(np.float32(real) / codes.scale)))


def real_bounds(activation: str) -> tuple[float, float]:
    """The bounds of an activation on floats; a missing bound is the largest float, not infinity
    (CalculateActivationRange)."""
    low, high = _ACTIVATIONS[activation]
    return -FLOAT_LIMIT if low is None else low, FLOAT_LIMIT if high is None else high
