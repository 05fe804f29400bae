"""Properties of qnn ops whose integers are those of ONNX Runtime's kernels, for its importer and for `qdq-to-integer`.

Every scale is a float32, and every operation on scales is rounded to float32: that is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from relay.dialects.attributes import Array, element_type
from relay.frontend.importing.builder import multiplier_attrs, multiplier_vectors, number, real, scale_attr
from relay.interpreters.arithmetic import code_range, quantize_multiplier, quantize_multipliers

Properties = dict[str, Attribute]
Function = Callable[[Array], Array]
ORT = StringAttr("ort")
EVEN = StringAttr("f32_even")


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of one scale: q stands for `scale * (q - zero_point)`."""

    scale: np.float32
    zero_point: int
    dtype: np.dtype[Any]

    def every(self) -> Array:
        """All codes, from the lowest."""
        low, high = code_range(self.dtype)
        return np.arange(low, high + 1)

    def reals(self, codes: Array) -> Array:
        """What DequantizeLinear gives."""
        return (codes.astype(np.int64) - self.zero_point).astype(np.float32) * self.scale

    def codes(self, reals: Array) -> Array:
        """What QuantizeLinear gives."""
        steps = np.rint(reals.astype(np.float32) / self.scale).astype(np.float64) + self.zero_point
        return np.clip(steps, *code_range(self.dtype)).astype(self.dtype)

    def table(self, function: Function, source: Codes) -> Array:
        """The codes of a function of reals for each code of `source`."""
        with np.errstate(all="ignore"):
            return self.codes(function(source.reals(source.every())))


def requantize(input_scale: Array, out: Codes, axis: int = -1, factor: Array | None = None) -> Properties:
    """Of a `qnn.requantize` by `input_scale / out.scale`, or by `factor`; vectors lie along `axis`."""
    scale = np.atleast_1d(input_scale).astype(np.float32)
    reals = np.atleast_1d(scale / out.scale if factor is None else factor).astype(np.float32)
    properties: Properties = {
        "input_scale": scale_attr(scale),
        "output_scale": real(out.scale),
        "output_zero_point": number(out.zero_point),
        "rounding": EVEN,
        "axis": IntegerAttr(axis, i64),
        "out_dtype": element_type(out.dtype),
        **multiplier_vectors(quantize_multipliers(np.abs(reals))),
    }
    return properties if factor is None else properties | {"real_multiplier": scale_attr(reals)}


def binary(a: Codes, b: Codes, out: Codes) -> Properties:
    """What sums and products share."""
    return {
        "lhs_scale": real(a.scale),
        "lhs_zero_point": number(a.zero_point),
        "rhs_scale": real(b.scale),
        "rhs_zero_point": number(b.zero_point),
        "output_scale": real(out.scale),
        "output_zero_point": number(out.zero_point),
        "rounding": ORT,
    }


def add(a: Codes, b: Codes, out: Codes) -> Properties:
    """Of a `qnn.add`; multipliers, which `ort` does not use, are TFLite's."""
    twice = 2 * max(float(a.scale), float(b.scale))
    properties = binary(a, b, out) | {"left_shift": number(20)}
    properties |= multiplier_attrs(quantize_multiplier(twice / (float(out.scale) * (1 << 20))))
    for side, codes in (("lhs", a), ("rhs", b)):
        attrs = multiplier_attrs(quantize_multiplier(float(codes.scale) / twice))
        properties |= {f"{side}_{name}": attr for name, attr in attrs.items()}
    return properties


def multiply(a: Codes, b: Codes, out: Codes) -> Properties:
    """Of a `qnn.mul`."""
    ratio = float(a.scale * b.scale / out.scale)
    return binary(a, b, out) | multiplier_attrs(quantize_multiplier(ratio))


def softmax_powers(scale: np.float32, length: int) -> Array:
    """`exp` of the scaled differences -255..0 from the largest code, all times one factor that keeps sums of `length`
    within float32 (ONNX Runtime's QLinearSoftmax)."""
    room = float(np.log(np.finfo(np.float32).max / np.float32(length)))
    shift = max(0.0, room - 5) / float(scale)
    return np.exp((np.arange(-255, 1) + shift) * float(scale)).astype(np.float32)
