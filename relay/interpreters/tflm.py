"""The logistic function and the hyperbolic tangent as computed by TFLite Micro for 8-bit values, and by TFLite for
16-bit values.

Source: TFLite's `reference/integer_ops/logistic.h` and `tanh.h`, TFLite Micro's `logistic_common.cc`, `tanh_common.cc`
and `lstm_eval.cc`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from relay.dialects import qnn
from relay.dialects.attributes import Array, to_numpy
from relay.interpreters.arithmetic import (
    FIXED32,
    Int64,
    int64,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    read_only,
    round_away,
    rounding_right_shift,
)
from relay.interpreters.meaning import number

INTEGER_BITS = 4
"""The integer bits of the 8-bit functions' fixed-point argument, which is in Q4.27."""
CODES16 = np.arange(-(1 << 15), 1 << 15, dtype=np.int64)
MOST_STEPS = 1 << 30
"""A multiplier of a 16-bit function's codes, for which each but 0 is at an end of the table."""
STEPS = 24
"""The number of table entries for an interval of length 1."""


@cache
def sigmoid_samples() -> Int64:
    """The entries of TFLite's `sigmoid_table_uint16`: `65536 / (1 + exp(-i / 24))` for i = 0..255, each corrected by
    half of the error of linear interpolation to the next one; the last is 65535 and occurs twice."""

    def curve(x: float) -> float:
        return 65536 / (1 + math.exp(-x / STEPS))

    found = [math.floor((curve(i) + (curve(i + 0.5) - (curve(i) + curve(i + 1)) / 2) / 2) + 0.5) for i in range(256)]
    return read_only(np.array([*found[:-1], 65535, 65535], np.int64))


def argument(x: Array, multiplier: int, left_shift: int) -> Int64:
    """`x * multiplier / 2^left_shift`, halves rounded up."""
    return (int64(x) * multiplier + ((1 << left_shift) >> 1)) >> left_shift


def interpolated(x: Int64, bits: int, most: int) -> Int64:
    """2^bits times y, where y is the entry of `sigmoid_samples` at index `|x| / 2^bits`, linearly interpolated, or
    `most` for an index of at least 255."""
    table, whole = sigmoid_samples(), np.abs(x) >> bits
    index = np.minimum(whole, 254)
    low, high = table[index], table[index + 1]
    return np.where(whole >= 255, most << bits, (low << bits) + (np.abs(x) & ((1 << bits) - 1)) * (high - low))


def logistic16(x: Array, multiplier: int = 3, left_shift: int = 0) -> npt.NDArray[np.int16]:
    """The logistic function in Q0.15. The argument is `x * multiplier / 2^left_shift` in units of 1/(24 * 512), which
    is Q3.12 for the default multiplier 3."""
    scaled = argument(x, multiplier, left_shift)
    found = interpolated(scaled, 9, 0x7FFF << 1)
    return (np.where(scaled >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10).astype(np.int16)


def tanh16(x: Array, multiplier: int = 3, left_shift: int = 0) -> npt.NDArray[np.int16]:
    """The hyperbolic tangent in Q0.15 as `2 logistic(2 y) - 1`. Its argument y is `x * multiplier / 2^left_shift` in
    units of 1/(24 * 512), so that x is in Q3.12 for the default multiplier 3."""
    scaled = argument(x, multiplier, left_shift)
    found = interpolated(scaled, 8, 0xFFFF)
    moved = np.where(scaled >= 0, found - (1 << 23) + (1 << 7), -found + (1 << 23) + (1 << 7) - 1)
    return (moved >> 8).astype(np.int16)


@cache
def logistic_table() -> npt.NDArray[np.int16]:
    """A read-only table of the logistic function in Q0.15, computed by `logistic16`: its entry i is the result for the
    argument i - 32768 in Q3.12."""
    return read_only(logistic16(CODES16))


@cache
def tanh_table(integer_bits: int = 3) -> npt.NDArray[np.int16]:
    """A table of `tanh16` for every int16, from the lowest on; arguments have `integer_bits` integer bits."""
    excess = integer_bits - 3
    return read_only(tanh16(CODES16, 3 << excess) if excess >= 0 else tanh16(CODES16, 3, -excess))


def steps_of_scale(scale: np.float32, most: int) -> tuple[int, int]:
    """Return the multiplier and the left shift with which `logistic16` and `tanh16` take 16-bit quantized values of
    this scale. For the scales 2^-12, 2^-11, ... 2^(`most` - 12), the left shift is 0. Source: TFLite's LOGISTIC and
    TANH of int16."""
    power = np.log(scale) * (np.float32(1) / np.log(np.float32(2)))
    whole = int(round_away(power))
    if abs(power - np.float32(whole)) < np.float32(1e-3) and 0 <= 12 + whole <= most:
        return 3 << (12 + whole), 0
    factor, shift = float(scale) * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return int(min(factor, MOST_STEPS)), shift


def curve16(op: qnn.QnnUnaryOp) -> npt.NDArray[np.int16]:
    """The op's result for every int16 input, from the lowest on."""
    scale = np.float32(to_numpy(op.input_scale))
    if isinstance(op, qnn.SigmoidOp):
        return logistic16(CODES16, *steps_of_scale(scale, 0))
    return tanh16(CODES16, *steps_of_scale(scale, 1))


def curve8(op: qnn.QnnUnaryOp, codes: Int64) -> Int64:
    """The op's 8-bit results for these quantized input values: sigmoid with zero point -128, tanh with zero point 0,
    both as int8."""
    scale = float(to_numpy(op.input_scale).astype(np.float32))
    multiplier, shift = quantize_multiplier(scale * 2.0 ** (31 - INTEGER_BITS))
    radius = math.floor(((1 << INTEGER_BITS) - 1) * 2.0 ** (31 - INTEGER_BITS) / 2.0**shift)
    steps = codes - number(op.input_zero_point)
    inside = np.abs(steps) < radius
    x = multiply_by_quantized_multiplier(np.where(inside, steps, 0), multiplier, shift)
    if isinstance(op, qnn.SigmoidOp):
        found = rounding_right_shift(FIXED32.logistic(x, INTEGER_BITS), 31 - 8) - 128
    else:
        found = rounding_right_shift(FIXED32.tanh(x, INTEGER_BITS), 31 - 7)
    return np.where(inside, np.clip(found, -128, 127), np.where(steps < 0, -128, 127))
