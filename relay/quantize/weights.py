"""Quantization of weights and biases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relay.dialects.attributes import Array
from relay.interpreters.arithmetic import round_away
from relay.interpreters.meaning import along
from relay.quantize.parameters import Parameters, of_range, real32

BIAS_LIMIT = float(1 << 30)
"""The largest magnitude of a quantized bias, which leaves room for sums of products in 32 bits."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The quantization parameters of a kernel: one scale, or one for each index of `axis`."""

    scale: Array
    """The scales, a float32 vector; it has one element if all channels share it."""
    zero_point: int
    axis: int
    dtype: str

    def along(self, rank: int) -> Array:
        """The scales, reshaped to broadcast against a kernel of this rank."""
        return self.scale.reshape(()) if self.scale.size == 1 else along(self.scale, self.axis, rank)

    @property
    def low(self) -> int:
        """The lowest quantized value, one above the type's minimum: for int8 so that the range is symmetric, for uint8
        as in TFLite."""
        return int(np.iinfo(self.dtype).min) + 1

    @property
    def high(self) -> int:
        return int(np.iinfo(self.dtype).max)

    def positions(self, reals: Array) -> Array:
        """The reals in quantized units but not rounded: `real / scale + zero_point`, in float64."""
        return np.asarray(reals, np.float64) / self.along(reals.ndim).astype(np.float64) + self.zero_point

    def codes(self, reals: Array) -> Array:
        """The quantized values of the reals, rounded to nearest."""
        return np.clip(round_away(self.positions(reals)), self.low, self.high).astype(self.dtype)

    def reals(self, codes: Array) -> Array:
        """The reals of quantized values, in float32."""
        steps = (codes.astype(np.int64) - self.zero_point).astype(np.float32)
        return (self.along(codes.ndim) * steps).astype(np.float32)


def kernel_of(weights: Array, axis: int, dtype: str, per_channel: bool) -> Kernel:
    """The parameters of a weight array: for `int8` symmetric in [-127, 127], per output channel along `axis` or per
    tensor; for `uint8` asymmetric in [1, 255] per tensor, as in TFLite's first 8-bit models."""
    if dtype == "uint8":
        found = of_range(float(weights.min(initial=0.0)), float(weights.max(initial=0.0)), dtype)
        low, high = found.range
        scale = real32((high - low) / 254)
        zero_point = int(np.clip(round_away(np.asarray(1 - low / scale)), 1, 255))
        return Kernel(np.array([scale], np.float32), zero_point, axis, dtype)
    others = tuple(i for i in range(weights.ndim) if i != axis % weights.ndim) if per_channel else None
    largest = np.atleast_1d(np.abs(weights).max(axis=others, initial=0.0)).astype(np.float64)
    scales = np.array([real32(float(value) / 127) if value > 0 else 0.0 for value in largest], np.float32)
    return Kernel(scales, 0, axis, dtype)


def fit_bias(kernel: Kernel, bias: Array | None, data: Parameters) -> Kernel:
    """The parameters of a kernel, with scales enlarged so that quantized biases stay within `BIAS_LIMIT`, and scale 1
    for channels whose weights and bias are 0."""
    scales = kernel.scale.astype(np.float64)
    if bias is not None:
        needed = np.abs(bias.astype(np.float64)) / BIAS_LIMIT / data.scale
        scales = np.maximum(scales, needed if scales.size > 1 else needed.max(initial=0.0))
    scales = np.where(scales > 0, scales, 1.0)
    return replace(kernel, scale=np.array([real32(float(s)) for s in scales], np.float32))


def bias_scale(kernel: Kernel, data: Parameters) -> Array:
    """The scales of the sums, and of the bias: `data scale * kernel scale` in float32."""
    return (np.float32(data.scale) * kernel.scale).astype(np.float32)


def bias_codes(bias: Array, kernel: Kernel, data: Parameters) -> Array:
    """The quantized bias, `round(bias / (data scale * kernel scale))`, in int32, or in int64 beside 16-bit data."""
    dtype = np.int64 if data.dtype == "int16" else np.int32
    scales = np.float64(data.scale) * kernel.scale.astype(np.float64)
    return round_away(bias.astype(np.float64) / scales).astype(dtype)
