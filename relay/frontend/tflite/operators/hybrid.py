"""Quantization of floats at run time, for layers with int8 weights ("hybrid" or "dynamic range" layers)."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import f32, f64, i16, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, ints, scalar_attr
from relay.dialects.op import TensorOp
from relay.dialects.op import tensor as type_of
from relay.frontend.importing.builder import number, real, scale_attr
from relay.frontend.tflite.builder import Importer

LOW, HIGH = -128.0, 127.0


def quantised_lines(importer: Importer, value: SSAValue, asymmetric: bool) -> tuple[SSAValue, SSAValue]:
    """The value quantised with one scale per index of the first axis: the quantized values minus their zero points, and
    the scales."""
    if asymmetric:
        return _asymmetric(importer, value)
    codes = importer.emit(qnn.DynamicQuantizeOp, [value])
    return codes.codes, codes.scale


def _asymmetric(importer: Importer, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Asymmetric quantization per index of the first axis: `step = (max - min) / 255` with 0 in the range, the
    difference in float32, the quotient in double. The zero point is also computed in double, from the end of the range
    with the smaller error. `scale` is `step` in float32, and `code = clamp(zero_point + round(x * (1 / scale)))`, with
    the product in float32.

    Source: LiteRT's `AsymmetricQuantizeFloats` for vectors, observed on data half way between two quantized values.
    """

    def emit(op: type[TensorOp], *operands: SSAValue, **properties: Attribute) -> SSAValue:
        return importer.emit(op, operands, properties).results[0]

    def constant(real: float, like: SSAValue) -> SSAValue:
        return importer.scalar(real, like)

    def clamped(x: SSAValue) -> SSAValue:
        element = type_of(x).element_type
        return emit(relay.ClipOp, x, a_min=scalar_attr(LOW, element), a_max=scalar_attr(HIGH, element))

    count, *others = importer.shape(value)
    lines = importer.reshape(value, [count, prod(others)])
    zero, axis = constant(0.0, value), ints([1])
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
    zero_point = emit(relay.CastOp, emit(relay.RoundOp, clamped(nearer)), dtype=f32)
    scale = emit(relay.CastOp, step, dtype=f32)
    rows = [count] + [1] * len(others)
    offset = importer.reshape(zero_point, rows)
    inverse = importer.reshape(emit(relay.DivideOp, constant(1.0, scale), scale), rows)
    codes = emit(relay.AddOp, offset, emit(relay.RoundOp, emit(relay.MultiplyOp, value, inverse)))
    steps = emit(relay.SubtractOp, clamped(codes), offset)
    return emit(relay.CastOp, steps, dtype=i16), scale


def line_products(importer: Importer, lines: SSAValue, weights: SSAValue, scales: Array, asymmetric: bool) -> SSAValue:
    """`lines [n, k]`, quantised at run time, times quantized `weights [units, k]` with one scale or one per unit."""
    codes, scale = quantised_lines(importer, lines, asymmetric)
    properties: dict[str, Attribute] = {
        "input_scale": real(1.0),
        "input_zero_point": number(0),
        "kernel_scale": scale_attr(scales),
        "kernel_zero_point": number(0),
        "out_dtype": i32,
    }
    op = qnn.DenseOp if asymmetric else relay.DenseOp
    sums = importer.emit(op, [codes, weights], properties if asymmetric else {}).results[0]
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
    factor = importer.emit(relay.MultiplyOp, [factor, kernel]).result
    reals = importer.emit(relay.CastOp, [sums], {"dtype": f32}).result
    return importer.emit(relay.MultiplyOp, [reals, factor]).result
