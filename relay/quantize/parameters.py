"""Quantization parameters: the mapping between quantized values ("codes") and reals, and the choice of scale and zero
point for a range of reals.

Source: TFLite's 8-bit quantization specification; its converter chooses the same parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IntegerType

from relay.dialects.attributes import Array, element_type
from relay.dialects.op import is_integer
from relay.errors import InvalidArgument
from relay.interpreters.arithmetic import round_away

DTYPES = ("int8", "uint8", "int16")
"""The dtypes that quantized activations can have."""
SMALLEST = float(np.finfo(np.float32).tiny) * 2**20
"""The smallest scale, chosen so that the product of two scales is still a normal number."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The mapping of a quantized value q to the real `scale * (q - zero_point)`; `scale` has the exact value of a
    float32."""

    scale: float
    zero_point: int
    dtype: str

    @property
    def low(self) -> int:
        """The lowest quantized value."""
        return int(np.iinfo(self.dtype).min)

    @property
    def high(self) -> int:
        """The highest quantized value."""
        return int(np.iinfo(self.dtype).max)

    @property
    def element(self) -> IntegerType:
        """The element type of the quantized values."""
        element = element_type(self.dtype)
        assert is_integer(element)
        return element

    @property
    def range(self) -> tuple[float, float]:
        """The reals that the lowest and the highest quantized value represent."""
        return self.scale * (self.low - self.zero_point), self.scale * (self.high - self.zero_point)

    def codes(self, reals: Array) -> Array:
        """Quantize as `qnn.quantize` does: `clamp(round(real / scale) + zero_point)` in float32, with halves rounded
        away from zero."""
        rounded = round_away(np.asarray(reals, np.float32) / np.float32(self.scale))
        return np.clip(rounded + np.float32(self.zero_point), self.low, self.high).astype(self.dtype)

    def reals(self, codes: Array) -> Array:
        """Dequantize as `qnn.dequantize` does: `scale * (code - zero_point)`."""
        return (np.float64(self.scale) * (codes.astype(np.int64) - self.zero_point)).astype(np.float32)


def check_dtype(dtype: str, where: str) -> str:
    """The dtype, if quantized activations can have it. Raises InvalidArgument otherwise."""
    if dtype not in DTYPES:
        raise InvalidArgument(where, f"codes of {dtype!r} are unknown", f"use {', '.join(DTYPES)}")
    return dtype


def real32(value: float) -> float:
    """The value rounded to float32, but at least `SMALLEST`."""
    return float(np.float32(max(value, SMALLEST)))


def of_range(low: float, high: float, dtype: str) -> Parameters:
    """The parameters that cover the reals in [low, high] and 0: asymmetric for 8 bits, symmetric for 16.

    8 bits: `scale = (high - low) / 255`, and the zero point is the nearest quantized value, so that 0 is exact. 16
    bits: `scale = max(-low, high) / 32767`, zero point 0. An empty range gets scale 1.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return Parameters(1.0, 0, dtype)
    if dtype == "int16":
        return Parameters(real32(max(-low, high) / 32767), 0, dtype)
    info = np.iinfo(dtype)
    scale = max((high - low) / 255, SMALLEST)
    zero_point = int(round_away(np.asarray(float(info.min) - low / scale)))
    return Parameters(real32(scale), min(max(zero_point, int(info.min)), int(info.max)), dtype)


FIXED = {
    "relay.nn.softmax": {"int8": Parameters(1 / 256, -128, "int8"), "uint8": Parameters(1 / 256, 0, "uint8")},
    "relay.sigmoid": {"int8": Parameters(1 / 256, -128, "int8"), "uint8": Parameters(1 / 256, 0, "uint8")},
    "relay.tanh": {"int8": Parameters(1 / 128, 0, "int8"), "uint8": Parameters(1 / 128, 128, "uint8")},
}
"""The scale and zero point that TFLite's quantization specification prescribes for results of certain ops, by op name
and dtype."""
