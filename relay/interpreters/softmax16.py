"""Softmax of 16-bit quantized values by tables of line segments. Source: TFLite's SOFTMAX of int16 (`LUTPopulate`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from relay.dialects import qnn
from relay.dialects.attributes import Array
from relay.interpreters.arithmetic import (
    Int64,
    int64,
    leading_zeros32,
    multiply_by_quantized_multiplier,
    read_only,
    round_away,
)
from relay.interpreters.meaning import number

LOWEST, HIGHEST = -(1 << 15), (1 << 15) - 1
SAMPLES = 512
"""The number of line segments by which a lookup table approximates its function."""
UNIT = np.float64(65536 / (2.0 / 65535 * 65535))
"""1 in Q0.15."""
RANGE = 10.0
"""exp is tabulated for arguments from -10 to 0."""


def lines(
    function: Callable[[Array], Array], first: np.floating[Any], last: np.floating[Any], unit: np.floating[Any]
) -> npt.NDArray[np.int16]:
    """A table of `function * unit` over [first, last], with an entry for each int16: linear interpolation between
    samples, each of which is shifted by half of the error that interpolation has in the middle of the segment after it.
    Computed in the type of the arguments. Samples that are not a number count as 0, as on x86; the slope of a segment
    is held in 16 bits and wraps, as in LiteRT."""
    step = (last - first) / SAMPLES
    here: Array = first + np.arange(SAMPLES + 1, dtype=first.dtype) * step
    y = function(here) * unit
    middle = round_away(function(here[:-1] + step / 2) * unit)
    between = round_away((y[1:] + round_away(y[:-1])) / 2)
    samples = round_away(y[:-1]) - round_away((between - middle) / 2)
    points = np.clip(np.append(samples, round_away(function(np.array([last])) * unit)), LOWEST, HIGHEST)
    points = np.nan_to_num(points).astype(np.int64)
    codes = np.arange(1 << 16)
    base, slope = points[codes >> 7], np.diff(points).astype(np.int16).astype(np.int64)[codes >> 7]
    return read_only((base + ((slope * (codes & 127) + 64) >> 7)).astype(np.int16))


@cache
def exp_lines() -> npt.NDArray[np.int16]:
    """The table of exp over [-10, 0] in Q0.15, with an entry for each int16; the last one is that of 0."""
    return lines(np.exp, np.float64(-RANGE / 65535 * 65535), np.float64(0), UNIT)


@cache
def reciprocal_table() -> npt.NDArray[np.int16]:
    """The table of `1 / (1 + x)` over [0, 1] in Q0.15, with an entry for each int16; the first one is that of x = 0."""
    return lines(lambda x: 1 / (1 + x), np.float64(0), np.float64(1.0 / 65535 * 65535), UNIT)


def exp_table(multiplier: int, shift: int) -> npt.NDArray[np.int16]:
    """A table of exp in Q0.15 for the differences 0, -1, .. -65535 from the largest quantized value."""
    difference = -np.arange(1 << 16, dtype=np.int64)
    place = multiply_by_quantized_multiplier(difference, multiplier, shift) + HIGHEST
    return exp_lines()[np.clip(place, LOWEST, HIGHEST) - LOWEST]


def softmax16(op: qnn.SoftmaxOp, x: Array) -> Array:
    difference = x.max(axis=-1, keepdims=True).astype(np.int64) - x
    power = int64(exp_table(number(op.multiplier), number(op.shift))[difference])
    total = np.add.reduce(power, axis=-1, keepdims=True)
    zeros = leading_zeros32(total)
    place = (((total << (zeros - 1)) + (1 << 13)) >> 14) - ((1 << 15) + (1 << 16))
    inverse: Int64 = int64(reciprocal_table()[np.clip(place, LOWEST, HIGHEST) - LOWEST])
    result = (power * inverse + (np.int64(1) << (30 - zeros))) >> (31 - zeros)
    return np.clip(result, 0, HIGHEST).astype(np.int16)
