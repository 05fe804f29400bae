"""Quantized operators as TVM's Relay computed them (`numerics="tvm"`): with `qnn` ops of rounding `upward`, or in plain
integers and floats where its importer used those. Source: TVM 0.8 `frontend/tflite.py`, `relay/qnn/op/*.cc`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.op import tensor
from relay.frontend.importing.builder import aligned, multiplier_attrs, own_parameters, parameters
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.windows import flat_padding, window_padding
from relay.frontend.tflite.builder import Importer, numpy_type
from relay.frontend.tflite.node import CODES, Node
from relay.frontend.tflite.operators.arithmetic import operand_type, operands, quantization, with_bounds
from relay.frontend.tflite.scales import Codes
from relay.frontend.tflite.table import TABLE, Convert
from relay.interpreters.arithmetic import quantize_multiplier

UPWARD = StringAttr("upward")


def ratio(source: float | np.float32, target: np.float32) -> tuple[int, int]:
    """Return the fixed-point form (multiplier, shift) of `source / target`, which is about
    `multiplier * 2^(shift - 31)`."""
    return quantize_multiplier(float(np.float64(np.float32(source)) / np.float64(target)))


def of_codes(*kinds: str) -> Callable[[Convert], Convert]:
    """A decorator that enters an import function for operators of these kinds on quantized values; on other types, the
    function in the table is used."""

    def wrap(convert: Convert) -> Convert:
        def chosen(importer: Importer, node: Node) -> Sequence[SSAValue]:
            of_other_types = TABLE[node.operator.kind].convert
            return (convert if node.output().type in CODES else of_other_types)(importer, node)

        ROWS.update(dict.fromkeys(kinds, chosen))
        return convert

    return wrap


ROWS: dict[str, Convert] = {}


@of_codes("ADD", "SUB")
def sum_(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import ADD and SUB: `requantize(lhs) +- requantize(rhs)` in the scale of the result, without a left shift before
    or rescaling after the sum."""
    op = qnn.AddOp if node.operator.kind == "ADD" else qnn.SubtractOp
    lhs, rhs, out = quantization(node)
    sides = ratio(lhs.scale, out.scale), ratio(rhs.scale, out.scale)
    return [_binary(importer, node, op, aligned(0, *sides, quantize_multiplier(1.0)))]


@of_codes("MUL")
def multiply(importer: Importer, node: Node) -> Sequence[SSAValue]:
    lhs, rhs, out = quantization(node)
    return [_binary(importer, node, qnn.MulOp, multiplier_attrs(ratio(lhs.scale * rhs.scale, out.scale)))]


def _binary(importer: Importer, node: Node, op: type[qnn.QnnBinaryOp], multipliers: dict[str, Attribute]) -> SSAValue:
    properties = with_bounds(node, *quantization(node), to_even=True) | multipliers
    operand_type(node)
    return importer.call(op, *operands(importer, node), **properties, rounding=UPWARD)


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
    properties = parameters(input=source, output=target) | multiplier_attrs(ratio(source.scale, target.scale))
    return importer.call(qnn.RequantizeOp, value, **properties, rounding=UPWARD, out_dtype=importer.element(out))


def to_codes(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """Float values as codes with the element type, scale and zero point of the node's output:
    `clip(round(value / scale + zero_point))`."""
    target = node.codes(node.output())
    codes = (Scalar(importer, value) / float(target.scale) + float(target.zero_point)).of(relay.RoundOp)
    whole = importer.cast(codes.between(target.low, target.high).value, i32)
    return importer.cast(whole, importer.element(node.output()))


def to_reals(importer: Importer, node: Node) -> SSAValue:
    """The node's input, dequantized."""
    data = node.input(0)
    return importer.call(qnn.DequantizeOp, importer.value(data), **own_parameters(node.codes(data)))


@of_codes("SOFTMAX")
def softmax(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized SOFTMAX, computed in floats."""
    value = importer.call(relay.SoftmaxOp, to_reals(importer, node), beta=node.real("beta"))
    return [to_codes(importer, node, value)]


@of_codes("LOGISTIC", "TANH")
def curve(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized LOGISTIC and TANH, computed in floats."""
    op = relay.SigmoidOp if node.operator.kind == "LOGISTIC" else relay.TanhOp
    return [to_codes(importer, node, importer.call(op, to_reals(importer, node)))]


@of_codes("RELU", "RELU6", "RELU_N1_TO_1")
def clamp(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import a clamp: the input is clipped in its own quantization, then requantized."""
    data = node.input(0)
    source = node.codes(data)
    bounds = node.bounds(source, node.operator.kind, to_even=True)
    return [requantize(importer, node, importer.clip_codes(importer.value(data), source, bounds), source)]


@of_codes("CONCATENATION")
def concatenation(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized CONCATENATION; each input is requantized to the result's scale."""
    out = node.output()
    if any(tensor.type != out.type for tensor in node.inputs()):
        raise node.refuse_types(*node.inputs(), out)
    parts = [requantize(importer, node, importer.value(tensor), node.codes(tensor)) for tensor in node.inputs()]
    axis = node.axis(node.integer("axis"), len(node.input(0).shape))
    value = importer.call(relay.ConcatenateOp, *parts, axis=axis)
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
    rows = list(zip((height, width), pool, strides, strict=True))
    padding = [window_padding(node.word("padding"), *numbers) for numbers in rows]
    ones = importer.unnamed(np.ones((*pool, channels, 1), numpy_type(data)))
    window = {"strides": strides, "padding": flat_padding(padding), "groups": channels}
    total = importer.call(relay.Conv2dOp, importer.value(data), ones, kernel_layout="HWOI", **window)
    ends = zip(padding, importer.shape(total)[1:3], strict=True)
    down, across = (_cells(*row, before, count) for row, ((before, _), count) in zip(rows, ends, strict=True))
    counts = importer.unnamed((down[:, None] * across)[None, ..., None].astype(np.int32))
    mean = importer.cast(importer.call(relay.DivideOp, total, counts), importer.element(data))
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
    value = importer.cast(importer.value(data), i32)
    value = importer.call(relay.SumOp, value, axis=axes, keepdims=node.flag("keep_dims"))
    value = importer.call(relay.DivideOp, value, importer.scalar(count, value))
    return [requantize(importer, node, value, node.codes(data))]
