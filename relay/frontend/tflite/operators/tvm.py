"""Quantized operators as TVM's Relay computed them (`numerics="tvm"`): with `qnn` ops of rounding `upward`, or in plain
integers and floats where its importer used those. Source: TVM 0.8 `frontend/tflite.py`, `relay/qnn/op/*.cc`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn
from relay.dialects.attributes import dtype_of, elements, ints
from relay.dialects.op import tensor
from relay.dialects.relay import (
    AddOp,
    CastOp,
    ClipOp,
    ConcatenateOp,
    ConstantOp,
    Conv2dOp,
    DivideOp,
    RoundOp,
    SigmoidOp,
    SoftmaxOp,
    SumOp,
    TanhOp,
    UnaryOp,
)
from relay.frontend.importing.builder import multiplier_attrs, number, of_two, real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import CODES, Node
from relay.frontend.tflite.scales import Codes, window_padding
from relay.frontend.tflite.table import TABLE, Convert
from relay.interpreters.arithmetic import quantize_multiplier

UPWARD = StringAttr("upward")


def ratio(source: float | np.float32, target: np.float32) -> tuple[int, int]:
    """Return the fixed-point form (multiplier, shift) of `source / target`, which is about
    `multiplier * 2^(shift - 31)`."""
    return quantize_multiplier(float(np.float64(np.float32(source)) / np.float64(target)))


def of_codes(kind: str) -> Callable[[Convert], Convert]:
    """A decorator that enters an import function for operators of this kind on quantized values; on other types, the
    function in the table is used."""

    def wrap(convert: Convert) -> Convert:
        def chosen(importer: Importer, node: Node) -> Sequence[SSAValue]:
            return (convert if node.output().type in CODES else TABLE[kind].convert)(importer, node)

        ROWS[kind] = chosen
        return convert

    return wrap


ROWS: dict[str, Convert] = {}


@of_codes("ADD")
def add(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_sum(importer, node, qnn.AddOp)]


@of_codes("SUB")
def subtract(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_sum(importer, node, qnn.SubtractOp)]


def _sum(importer: Importer, node: Node, op: type[qnn.AddOp] | type[qnn.SubtractOp]) -> SSAValue:
    """`requantize(lhs) +- requantize(rhs)` in the scale of the result, without a left shift before or rescaling after
    the sum."""
    lhs, rhs, out = (node.codes(t) for t in (node.input(0), node.input(1), node.output()))
    properties = _binary(importer, node) | {
        "left_shift": number(0),
        **{f"lhs_{name}": attr for name, attr in multiplier_attrs(ratio(lhs.scale, out.scale)).items()},
        **{f"rhs_{name}": attr for name, attr in multiplier_attrs(ratio(rhs.scale, out.scale)).items()},
        **multiplier_attrs(quantize_multiplier(1.0)),
    }
    return importer.emit(op, _operands(importer, node), properties).result


@of_codes("MUL")
def multiply(importer: Importer, node: Node) -> Sequence[SSAValue]:
    lhs, rhs, out = (node.codes(t) for t in (node.input(0), node.input(1), node.output()))
    properties = _binary(importer, node) | multiplier_attrs(ratio(lhs.scale * rhs.scale, out.scale))
    return [importer.emit(qnn.MulOp, _operands(importer, node), properties).result]


def _operands(importer: Importer, node: Node) -> list[SSAValue]:
    tensors = node.input(0), node.input(1), node.output()
    if len({tensor.type for tensor in tensors}) != 1:
        raise node.refuse_types(*tensors)
    return [importer.value(tensor) for tensor in tensors[:2]]


def _binary(importer: Importer, node: Node) -> dict[str, Attribute]:
    lhs, rhs, out = (node.codes(t) for t in (node.input(0), node.input(1), node.output()))
    low, high = node.bounds(out, to_even=True)
    return {**of_two(lhs, rhs, out), "min": number(low), "max": number(high), "rounding": UPWARD}


@of_codes("QUANTIZE")
def quantize(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import QUANTIZE; floats become `round(x / scale + zero point)`, with halves away from zero."""
    data, out = node.input(0), node.output()
    if data.type == "FLOAT32":
        return [to_codes(importer, node, importer.value(data))]
    if data.type not in CODES:
        raise node.refuse_types(data, out)
    return [requantize(importer, node, importer.value(data), node.codes(data))]


def requantize(importer: Importer, node: Node, value: SSAValue, source: Codes) -> SSAValue:
    """The value requantized to the node's output; the value itself if the quantization is the same."""
    out = node.output()
    target = node.codes(out)
    if (source.scale, source.zero_point) == target[:2] and tensor(value).element_type == importer.element(out):
        return value
    properties: dict[str, Attribute] = {
        "input_scale": real(source.scale),
        "input_zero_point": number(source.zero_point),
        "output_scale": real(target.scale),
        "output_zero_point": number(target.zero_point),
        **multiplier_attrs(ratio(source.scale, target.scale)),
        "rounding": UPWARD,
        "out_dtype": importer.element(out),
    }
    return importer.emit(qnn.RequantizeOp, [value], properties).result


def to_codes(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """Float values as codes with the element type, scale and zero point of the node's output:
    `clip(round(value / scale + zero_point))`."""
    target = node.codes(node.output())
    value = importer.emit(DivideOp, [value, importer.scalar(float(target.scale), value)]).result
    value = importer.emit(AddOp, [value, importer.scalar(float(target.zero_point), value)]).result
    value = importer.emit(RoundOp, [value]).result
    bounds = {"a_min": real(target.low), "a_max": real(target.high)}
    value = importer.emit(ClipOp, [value], bounds).result
    value = importer.emit(CastOp, [value], {"dtype": i32}).result
    return importer.emit(CastOp, [value], {"dtype": importer.element(node.output())}).result


def to_reals(importer: Importer, node: Node) -> SSAValue:
    """The node's input, dequantized."""
    source = node.codes(node.input(0))
    properties = {"scale": real(source.scale), "zero_point": number(source.zero_point)}
    return importer.emit(qnn.DequantizeOp, [importer.value(node.input(0))], properties).result


@of_codes("SOFTMAX")
def softmax(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized SOFTMAX, computed in floats."""
    value = importer.emit(SoftmaxOp, [to_reals(importer, node)], {"beta": real(node.real("beta"))}).result
    return [to_codes(importer, node, value)]


@of_codes("LOGISTIC")
def logistic(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_curve(importer, node, SigmoidOp)]


@of_codes("TANH")
def tanh(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_curve(importer, node, TanhOp)]


def _curve(importer: Importer, node: Node, op: type[UnaryOp]) -> SSAValue:
    """Import a function of a quantized tensor: the codes are dequantized, `op` is computed in floats, and its result is
    quantized."""
    return to_codes(importer, node, importer.emit(op, [to_reals(importer, node)]).result)


@of_codes("RELU")
def relu(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_clamp(importer, node, "RELU")]


@of_codes("RELU6")
def relu6(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_clamp(importer, node, "RELU6")]


@of_codes("RELU_N1_TO_1")
def relu_n1_to_1(importer: Importer, node: Node) -> Sequence[SSAValue]:
    return [_clamp(importer, node, "RELU_N1_TO_1")]


def _clamp(importer: Importer, node: Node, activation: str) -> SSAValue:
    """The input clipped in its own quantization, then requantized."""
    data = node.input(0)
    source = node.codes(data)
    value = importer.clip_codes(importer.value(data), source, node.bounds(source, activation, to_even=True))
    return requantize(importer, node, value, source)


@of_codes("CONCATENATION")
def concatenation(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized CONCATENATION; each input is requantized to the result's scale."""
    out = node.output()
    if any(tensor.type != out.type for tensor in node.inputs()):
        raise node.refuse_types(*node.inputs(), out)
    parts = [requantize(importer, node, importer.value(tensor), node.codes(tensor)) for tensor in node.inputs()]
    axis = IntegerAttr(node.axis(node.integer("axis"), len(node.input(0).shape)), i64)
    value = importer.emit(ConcatenateOp, parts, {"axis": axis}).result
    codes = node.codes(out)
    return [importer.clip_codes(value, codes, node.bounds(codes, to_even=True))]


@of_codes("AVERAGE_POOL_2D")
def average_pool_2d(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized AVERAGE_POOL_2D: the sum in i32 divided by the number of cells, rounded towards zero, built as a
    convolution with ones and a division."""
    data, codes = node.input(0), node.same_codes(node.input(0), node.output())
    if data.type not in CODES or codes is None:
        raise node.refuse_types(data)
    _, height, width, channels = node.shape(data, 4)
    pool, strides = node.positive("filter_height", "filter_width"), node.positive("stride_h", "stride_w")
    (top, bottom), (left, right) = (
        window_padding(node.word("padding"), *numbers) for numbers in zip((height, width), pool, strides, strict=True)
    )
    properties: dict[str, Attribute] = {
        "strides": ints(strides),
        "padding": ints([top, left, bottom, right]),
        "groups": IntegerAttr(channels, i64),
        "kernel_layout": StringAttr("HWOI"),
    }
    dtype = dtype_of(tensor(importer.value(data)).element_type)
    ones = importer.emit(ConstantOp, [], {"value": elements(np.ones((*pool, channels, 1), dtype))}).result
    total = importer.emit(Conv2dOp, [importer.value(data), ones], properties).result
    rows, columns = importer.shape(total)[1:3]
    down = _cells(height, pool[0], strides[0], top, rows)
    across = _cells(width, pool[1], strides[1], left, columns)
    counts = elements((down[:, None] * across).reshape(1, rows, columns, 1).astype(np.int32))
    mean = importer.emit(DivideOp, [total, importer.emit(ConstantOp, [], {"value": counts}).result]).result
    mean = importer.emit(CastOp, [mean], {"dtype": importer.element(data)}).result
    return [importer.clip_codes(mean, codes, node.bounds(codes, to_even=True))]


def _cells(size: int, pool: int, stride: int, before: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of cells of each window along one dimension that are inside the image."""
    first = np.arange(count, dtype=np.int64) * stride - before
    return np.minimum(first + pool, size) - np.maximum(first, 0)


@of_codes("MEAN")
def mean(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized MEAN: the mean in i32, rounded towards zero, then requantized."""
    data = node.input(0)
    axes = node.axes(node.input(1), len(data.shape))
    count = math.prod(data.shape[axis] for axis in axes)
    if data.type not in CODES or count < 1 or not axes:
        raise node.unsupported("the mean of no elements")
    value = importer.emit(CastOp, [importer.value(data)], {"dtype": i32}).result
    keep = BoolAttr.from_bool(node.flag("keep_dims"))
    value = importer.emit(SumOp, [value], {"axis": ints(axes), "keepdims": keep}).result
    value = importer.emit(DivideOp, [value, importer.scalar(count, value)]).result
    return [requantize(importer, node, value, node.codes(data))]
