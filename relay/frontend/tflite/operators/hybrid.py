"""Quantization of floats at run time, for layers with int8 weights ("hybrid" or "dynamic range" layers)."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, f64, i16
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array
from relay.frontend.importing.builder import product_parameters
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

    emit, constant = importer.call, importer.scalar
    count, *others = importer.shape(value)
    lines = importer.reshape(value, [count, prod(others)])
    zero, axis = constant(0.0, value), [1]
    ends32 = [
        emit(bound, emit(reduce, lines, axis=axis), zero)
        for reduce, bound in ((relay.MinOp, relay.MinimumOp), (relay.MaxOp, relay.MaximumOp))
    ]
    low, high, width = (emit(relay.CastOp, x, dtype=f64) for x in (*ends32, emit(relay.SubtractOp, *reversed(ends32))))
    step = emit(relay.DivideOp, width, constant(HIGH - LOW, width))
    step = emit(relay.WhereOp, emit(relay.EqualOp, low, high), constant(1.0, step), step)
    ends: list[tuple[SSAValue, SSAValue]] = []
    for bound, extreme in ((LOW, low), (HIGH, high)):
        place = emit(relay.DivideOp, extreme, step)
        error = emit(relay.AddOp, constant(abs(bound), place), emit(relay.AbsOp, place))
        ends.append((emit(relay.SubtractOp, constant(bound, place), place), error))
    (from_low, low_error), (from_high, high_error) = ends
    nearer = emit(relay.WhereOp, emit(relay.LessOp, low_error, high_error), from_low, from_high)
    zero_point = emit(relay.CastOp, emit(relay.RoundOp, importer.clip(nearer, LOW, HIGH)), dtype=f32)
    scale = emit(relay.CastOp, step, dtype=f32)
    rows = [count] + [1] * len(others)
    offset = importer.reshape(zero_point, rows)
    inverse = importer.reshape(emit(relay.DivideOp, constant(1.0, scale), scale), rows)
    codes = emit(relay.AddOp, offset, emit(relay.RoundOp, emit(relay.MultiplyOp, value, inverse)))
    steps = emit(relay.SubtractOp, importer.clip(codes, LOW, HIGH), offset)
    return emit(relay.CastOp, steps, dtype=i16), scale


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
    factor = importer.reshape(scale, [count] + [1] * len(others))
    kernel = (
        importer.scalar(float(kernel_scales[0]), scale)
        if len(kernel_scales) == 1
        else importer.constant(kernel_scales, "kernel_scales")
    )
    factor = importer.call(relay.MultiplyOp, factor, kernel)
    return importer.call(relay.MultiplyOp, importer.cast(sums, f32), factor)
