"""Properties of qnn ops that make them compute the integers of ONNX Runtime's kernels, for the ONNX importer and for
`qdq-to-integer`.

Every scale is a float32, and every operation on scales is rounded to float32, since that affects the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from relay.dialects.attributes import Array, element_type
from relay.frontend.importing.builder import (
    aligned_sum,
    multiplier_attrs,
    multiplier_vectors,
    number,
    parameters,
    real,
    scale_attr,
)
from relay.interpreters.arithmetic import code_range, quantize_multiplier, quantize_multipliers

Properties = dict[str, Attribute]
Function = Callable[[Array], Array]
ORT = StringAttr("ort")
EVEN = StringAttr("f32_even")


@dataclass(frozen=True, slots=True)
class Codes:
    """Quantization parameters with one scale: the value q stands for `scale * (q - zero_point)`."""

    scale: np.float32
    zero_point: int
    dtype: np.dtype[Any]
    inverse: bool = False
    """Whether quantization multiplies by the float32 inverse of the scale, as in PyTorch, instead of dividing by the
    scale."""

    def every(self) -> Array:
        """All quantized values in order, from the lowest."""
        low, high = code_range(self.dtype)
        return np.arange(low, high + 1)

    def reals(self, codes: Array) -> Array:
        """Dequantize, as DequantizeLinear does."""
        return (codes.astype(np.int64) - self.zero_point).astype(np.float32) * self.scale

    def codes(self, reals: Array) -> Array:
        """Quantize real numbers to the element type `dtype`; NaN becomes the lowest value."""
        low, high = code_range(self.dtype)
        with np.errstate(all="ignore"):
            x = reals.astype(np.float32)
            steps = np.rint(x * (np.float32(1) / self.scale) if self.inverse else x / self.scale).astype(np.float64)
            steps += self.zero_point
        return np.clip(np.where(np.isnan(steps), low, steps), low, high).astype(self.dtype)

    def table(self, function: Function, source: Codes) -> Array:
        """The quantized results of a function of reals for each quantized value of `source`."""
        with np.errstate(all="ignore"):
            return self.codes(function(source.reals(source.every())))


def requantize(input_scale: Array, out: Codes, axis: int = -1, factor: Array | None = None) -> Properties:
    """The properties of a `qnn.requantize` by `input_scale / out.scale`, or by `factor`; vectors vary along `axis`."""
    scale = np.atleast_1d(input_scale).astype(np.float32)
    reals = np.atleast_1d(scale / out.scale if factor is None else factor).astype(np.float32)
    properties: Properties = {
        "input_scale": scale_attr(scale),
        **parameters(output=out),
        "rounding": EVEN,
        "axis": IntegerAttr(axis, i64),
        "out_dtype": element_type(out.dtype),
        **multiplier_vectors(quantize_multipliers(np.abs(reals))),
    }
    return properties if factor is None else properties | {"real_multiplier": scale_attr(reals)}


def binary(a: Codes, b: Codes, out: Codes) -> Properties:
    """The properties that `qnn.add` and `qnn.mul` share: the quantization of both operands and of the result, and the
    rounding `ort`."""
    return parameters(lhs=a, rhs=b, output=out) | {"rounding": ORT}


def add(a: Codes, b: Codes, out: Codes) -> Properties:
    """The properties of a `qnn.add`, which requires multipliers; they are computed as in TFLite, and the rounding `ort`
    does not use them."""
    return binary(a, b, out) | aligned_sum(a, b, out, 20)


def multiply(a: Codes, b: Codes, out: Codes) -> Properties:
    """The properties of a `qnn.mul`."""
    ratio = float(a.scale * b.scale / out.scale)
    return binary(a, b, out) | multiplier_attrs(quantize_multiplier(ratio))


def mean(source: Codes, out: Codes, count: int) -> Properties:
    """The properties of a `qnn.requantize` that computes a mean from the sum of `count` elements."""
    factor = source.scale / (out.scale * np.float32(count))
    properties = requantize(np.asarray(source.scale), out, factor=np.asarray(factor))
    return properties | {"input_zero_point": number(count * source.zero_point)}


@dataclass(frozen=True, slots=True)
class Kernel:
    """Quantized constant weights, with scales and zero points for the whole tensor or along an axis."""

    codes: Array
    scales: Array
    zeros: Array
    axis: int | None

    def of_output_channels(self) -> Kernel:
        """The same weights with a single zero point for all output channels. Zero points that differ between these,
        along the first axis, are subtracted from the quantized values, which then have 16 bits."""
        if not np.ptp(self.zeros):
            return Kernel(self.codes, self.scales, self.zeros[:1], self.axis)
        zeros = self.zeros.reshape(-1, *[1] * (self.codes.ndim - 1))
        return Kernel((self.codes.astype(np.int64) - zeros).astype(np.int16), self.scales, np.zeros(1, np.int64), 0)


def packed_kernel(weights: Array, groups: int) -> tuple[str, Array]:
    """Weights [out, in / groups, h, w] in the layout that quantized kernels read; returns the layout's name and the
    weights."""
    out, per_group, height, width = weights.shape
    if per_group == 1 and groups > 1:
        return "HWOI", weights.reshape(groups, out // groups, height, width).transpose(2, 3, 0, 1).copy()
    return "OHWI", weights.transpose(0, 2, 3, 1).copy()


def softmax(source: Codes, out: Codes) -> Properties:
    """The properties of a `qnn.table_softmax`."""
    return {"input_scale": real(source.scale), **parameters(output=out)}
