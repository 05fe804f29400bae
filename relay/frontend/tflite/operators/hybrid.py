"""Quantization of floats at run time, for layers with int8 weights ("hybrid" or "dynamic range" layers)."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, f64, i16
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array
from relay.frontend.importing.builder import product_parameters
from relay.frontend.importing.formulas import Scalar
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.scales import Codes

LOW, HIGH = -128.0, 127.0
ONE = Codes(np.float32(1), 0, 0, 0)
"""The scale and zero point of quantized values from which the zero point is subtracted; scales are applied to sums."""


def quantised_lines(importer: Importer, value: SSAValue, asymmetric: bool) -> tuple[SSAValue, SSAValue]:
    """The value quantised with one scale per index of the first axis: the quantized values minus their zero points, and
    the scales."""
    if asymmetric:
        return _asymmetric(importer, value)
    codes, scale = importer.several(qnn.DynamicQuantizeOp, value)
    return codes, scale


def _asymmetric(importer: Importer, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Asymmetric quantization per index of the first axis: `step = (max - min) / 255` with 0 in the range, the
    difference in float32, the quotient in double. The zero point is also computed in double, from the end of the range
    with the smaller error. `scale` is `step` in float32, and `code = clamp(zero_point + round(x * (1 / scale)))`, with
    the product in float32.

    Source: LiteRT's `AsymmetricQuantizeFloats` for vectors, observed on data half way between two quantized values.
    """

    count, *others = importer.shape(value)
    x, lines = (Scalar(importer, each) for each in (value, importer.reshape(value, [count, prod(others)])))
    least = lines.of(relay.MinOp, axis=[1]).of(relay.MinimumOp, 0.0)
    most = lines.of(relay.MaxOp, axis=[1]).of(relay.MaximumOp, 0.0)
    low, high, width = (each.of(relay.CastOp, dtype=f64) for each in (least, most, most - least))
    step = low.of(relay.EqualOp, high).choose(1.0, width / (HIGH - LOW), width)
    at_low, at_high = low / step, high / step
    low_error = at_low.number(-LOW) + at_low.of(relay.AbsOp)
    high_error = at_high.number(HIGH) + at_high.of(relay.AbsOp)
    nearer = (low_error < high_error).choose(low.number(LOW) - at_low, high.number(HIGH) - at_high, low)
    zero_point = nearer.between(LOW, HIGH).of(relay.RoundOp).of(relay.CastOp, dtype=f32)
    scale = step.of(relay.CastOp, dtype=f32)
    rows = [count] + [1] * len(others)
    sides = zero_point, scale.number(1.0) / scale
    offset, inverse = (Scalar(importer, importer.reshape(each.value, rows)) for each in sides)
    codes = (offset + (x * inverse).of(relay.RoundOp)).between(LOW, HIGH)
    return (codes - offset).of(relay.CastOp, dtype=i16).value, scale.value


def line_products(importer: Importer, lines: SSAValue, weights: SSAValue, scales: Array, asymmetric: bool) -> SSAValue:
    """`lines [n, k]`, quantised at run time, times quantized `weights [units, k]` with one scale or one per unit."""
    codes, scale = quantised_lines(importer, lines, asymmetric)
    if asymmetric:
        sums = importer.call(qnn.DenseOp, codes, weights, **product_parameters(ONE, scales))
    else:
        sums = importer.call(relay.DenseOp, codes, weights)
    return scale_sums(importer, sums, scale, scales)


def scale_sums(importer: Importer, sums: SSAValue, scale: SSAValue, kernel_scales: Array) -> SSAValue:
    """`float(sums) * (scale * kernel_scale)`, with a data scale per index of the first axis, and one kernel scale or
    one per index of the last axis."""
    count, *others = importer.shape(sums)
    factor = Scalar(importer, importer.reshape(scale, [count] + [1] * len(others)))
    if len(kernel_scales) == 1:
        factor = factor * float(kernel_scales[0])
    else:
        factor = factor * Scalar(importer, importer.constant(kernel_scales, "kernel_scales"))
    return (Scalar(importer, importer.cast(sums, f32)) * factor).value
