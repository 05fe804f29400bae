"""Scales, zero points, multipliers and shifts, clamp bounds: attributes common to the qnn ops, and checks of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects.attributes import WeightAttr, to_numpy
from relay.dialects.op import axis_of, broadcast, is_code, rank, require, shape, tensor
from relay.dialects.relay.fixed_point import ROUNDINGS

FloatParameter = FloatAttr | WeightAttr | DenseIntOrFPElementsAttr | DenseResourceAttr
IntParameter = IntegerAttr | WeightAttr | DenseIntOrFPElementsAttr | DenseResourceAttr

LAST = IntegerAttr(-1, i64)
TFLITE = StringAttr("tflite")
LITERT = StringAttr("litert")
AWAY = StringAttr("away")
QUANTIZE_ROUNDINGS = ("away", "even", "even_inverse", "even_sum")
"""How real numbers are rounded to codes, in float32. `away`: `round(x / scale) + zero_point`, halves away from zero
(TFLite). The others round halves to even: `even` `rint(x / scale) + zero_point` (ONNX), `even_inverse` `rint(x * (1 /
scale)) + zero_point` (PyTorch), `even_sum` `rint(x / scale + zero_point)` (ONNX Runtime's QLinearAveragePool)."""
PRODUCTS = ("f64", "f32")
"""The precision in which `scale * (code - zero_point)` is computed: `f64` as TFLite does for one scale, `f32` as ONNX
does."""
NUMERICS = ("litert", "tflm")
"""The runtime whose functions an op computes: `litert` for TFLite's reference kernels, `tflm` for TFLite Micro's."""
REQUANTIZE_ROUNDINGS = (*ROUNDINGS, "f64_away", "f32_even")
"""The values of the rounding of `qnn.requantize`: `ROUNDINGS` and two others. `f64_away` computes `round(double(x) *
double(scale))`, halves away from zero (TFLite FULLY_CONNECTED since LiteRT 1.3); `f32_even` computes `rint(float(x) *
float(scale))`, halves to even (XNNPACK, ONNX Runtime)."""


def parameter(op: Operation, attr: Attribute | None, data: SSAValue, axis: int, what: str) -> None:
    """Check that a scale, zero point, multiplier or shift is finite and has a valid shape: a scalar, one element per
    index of the axis, or an array of the data's rank that broadcasts to the data's shape, as packed layouts need. Where
    there are several scales, those of dead channels may be 0."""
    if attr is None or (isinstance(attr, DenseResourceAttr) and not hasattr(attr, "array")):
        return
    numbers = to_numpy(attr)
    if numbers.ndim > 1:
        fits = numbers.ndim == rank(data) and broadcast(op.name, numbers.shape, shape(data)) == shape(data)
        require(fits, f"{op.name}: {what} must be a scalar or a vector, or of the data's rank")
    if numbers.ndim == 1:
        size = shape(data)[axis_of(axis, rank(data), op.name)]
        require(numbers.size == size or size == -1, f"{op.name}: {numbers.size} numbers in {what} for axis of {size}")
    if "scale" in what:
        dead = what in ("kernel_scale", "input_scale") and numbers.ndim
        positive = numbers >= 0 if dead else numbers > 0
        require(bool(np.isfinite(numbers).all() and positive.all()), f"{op.name}: {what} must be positive")
    if what == "shift":
        # sums of 64 bits are shifted to the right by 15 - shift, at least one bit for the half that is added
        most = 14 if tensor(data).element_type == i64 else 30
        require(bool(((numbers >= -31) & (numbers <= most)).all()), f"{op.name}: shift must lie in -31..{most}")


def code(op: Operation, type: Attribute, *widths: int) -> Attribute:
    """Return the element type if it is one of quantized values (8 or 16 bits if no width is given); raise
    VerifyException otherwise."""
    require(is_code(type, *widths), f"{op.name}: {type} is no type of codes")
    return type


def bounds(op: Operation, low: IntegerAttr | None, high: IntegerAttr | None, type: Attribute) -> None:
    """Check that clamp bounds are ordered. They may lie outside the type's range; the result is also saturated to the
    type."""
    if low is not None and high is not None:
        require(low.value.data <= high.value.data, f"{op.name}: min is above max")
    require(isinstance(type, IntegerType), f"{op.name}: clamps integers, not {type}")


def one_of(op: Operation, what: str, value: StringAttr, known: Sequence[str]) -> None:
    """Check that a string attribute is one of the `known` words."""
    require(value.data in known, f"{op.name}: {what} {value} is none of {tuple(known)}")


def numerics(op: Operation, which: StringAttr) -> None:
    """Check that `numerics` names a known runtime."""
    require(which.data in NUMERICS, f"{op.name}: unknown numerics {which}")
