"""Code generators of `onnxruntime` for elementwise ops, reductions and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper
from xdsl.ir import Operation

from relay.byoc import rescaling
from relay.byoc.kernels import Row, never
from relay.byoc.onnxruntime.graph import CONTRIB, INT8, Graph
from relay.byoc.onnxruntime.products import clamped
from relay.byoc.quantized import CODE_TYPES, Bounds, Codes, clip_bounds, code_bounds, codes, codes_of, dtype
from relay.byoc.refusals import CODES, FLOAT, divisor_refusal, element_refusal, quantize_refusal, type_refusal
from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import rank, shape

NUMBERS = (FLOAT, "int32", "int64")


def layout_refusal(op: Operation) -> str | None:
    """The reason why an op on images (rank 4) is not supported, if an operand that is no constant has another rank;
    else None."""
    ranks = {rank(value) for value in op.operands if constant_of(value) is None}
    return "an image is computed with a tensor of lower rank" if 4 in ranks and len(ranks) > 1 else None


def each(
    kind: str | Callable[[Graph, list[str]], str], *types: str, check: Callable[[Any], str | None] | None = None
) -> Row[Graph]:
    """Return the table row for an elementwise op, which supports these element types. `kind` is the kind of ONNX node
    to append, or a function that appends nodes to the graph, given the names of the operands."""

    def refusal(op: Operation) -> str | None:
        found = type_refusal(op, *types) or layout_refusal(op)
        return found if found or check is None else check(op)

    def write(graph: Graph, op: Operation) -> None:
        first = graph.layout(*op.operands)
        names = [graph.broadcast(value, rank(op.results[0]), first) for value in op.operands]
        graph.define(op.results[0], graph.node(kind, names) if isinstance(kind, str) else kind(graph, names), first)

    return Row(refusal, write)


def compared(kind: str) -> Row[Graph]:
    row = each(kind, *NUMBERS, "bool")

    def refusal(op: relay.GreaterOp) -> str | None:
        ordered = kind != "Equal" and dtype(op.lhs).kind == "b"
        return (
            "ONNX has no order of truth values" if ordered else type_refusal(op, *NUMBERS, "bool") or layout_refusal(op)
        )

    return Row(refusal, row.write)


def nonzero(op: relay.DivideOp | relay.FloorDivideOp) -> str | None:
    """Return the reason why an integer division is not supported: it rounds down, or its divisor may be 0, at which
    ONNX Runtime ends the process, whereas relay gives 0. None for a supported division and for floats."""
    if isinstance(op, relay.FloorDivideOp) and dtype(op.rhs).kind != "f":
        return f"it floors quotients of {dtype(op.rhs)}"
    return divisor_refusal(op)


def extreme(kind: str) -> Callable[[Graph, relay.BinaryOp], None]:
    """A generator of Max or Min; quantized values are computed in int32, since ONNX Runtime's kernels take no 8-bit
    types."""

    def write(graph: Graph, op: relay.BinaryOp) -> None:
        first = graph.layout(op.lhs, op.rhs)
        names = [graph.broadcast(value, rank(op.result), first) for value in (op.lhs, op.rhs)]
        if dtype(op.result) in CODE_TYPES:
            wide = [cast(graph, name, np.dtype(np.int32)) for name in names]
            name = cast(graph, graph.node(kind, wide), np.dtype(np.uint8))
        else:
            name = graph.node(kind, names)
        graph.define(op.result, name, first)

    return write


def cast(graph: Graph, name: str, type: np.dtype[Any]) -> str:
    return graph.node("Cast", [name], to=helper.np_dtype_to_tensor_dtype(type))


def real(graph: Graph, name: str, source: Codes, type: np.dtype[Any]) -> str:
    """Append a DequantizeLinear node; returns the name of its result."""
    return graph.node("DequantizeLinear", [name, *graph.quantization(source, type)])


def coded(graph: Graph, name: str, target: Codes, type: np.dtype[Any], bounds: Bounds = (None, None)) -> str:
    """Append a QuantizeLinear node and a clamp; returns the name of the result."""
    return clamped(graph, graph.node("QuantizeLinear", [name, *graph.quantization(target, type)]), *bounds, type)


def binary_refusal(op: qnn.QnnBinaryOp) -> str | None:
    return type_refusal(op, *CODES) or layout_refusal(op) or rescaling.binary_refusal(op)


def binary(kind: str) -> Row[Graph]:
    """The table row for `qnn.add` or `qnn.mul`: the reasons to refuse such an op, and the function that writes it as
    ONNX Runtime's `kind`, QLinearAdd or QLinearMul."""

    def write(graph: Graph, op: qnn.QnnBinaryOp) -> None:
        *sources, target = codes_of(op, "lhs", "rhs", "output")
        first, type = graph.layout(op.lhs, op.rhs), dtype(op.result)
        inputs: list[str] = []
        for value, source in zip((op.lhs, op.rhs), sources, strict=True):
            inputs += [graph.broadcast(value, rank(op.result), first), *graph.quantization(source, type)]
        name = graph.node(kind, [*inputs, *graph.quantization(target, type)], CONTRIB)
        graph.define(op.result, clamped(graph, name, *code_bounds(op), type), first)

    return Row(binary_refusal, write)


def write_subtract(graph: Graph, op: qnn.SubtractOp) -> None:
    *sources, target = codes_of(op, "lhs", "rhs", "output")
    first, type = graph.layout(op.lhs, op.rhs), dtype(op.result)
    names = [graph.broadcast(value, rank(op.result), first) for value in (op.lhs, op.rhs)]
    reals = [real(graph, name, source, type) for name, source in zip(names, sources, strict=True)]
    graph.define(op.result, coded(graph, graph.node("Sub", reals), target, type, code_bounds(op)), first)


def unary(compute: Callable[[Graph, Any, str], str]) -> Callable[[Graph, Any], None]:
    """A generator for an op on one tensor, in the layout of its operand: `compute` gets the operand's name and returns
    that of the result."""

    def write(graph: Graph, op: Any) -> None:
        first = graph.layout(op.input)
        graph.define(op.result, compute(graph, op, graph.read(op.input, first)), first)

    return write


@unary
def write_sigmoid(graph: Graph, op: qnn.SigmoidOp, name: str) -> str:
    source, target = codes_of(op, "input", "output")
    scales = [*graph.quantization(source, dtype(op.input)), *graph.quantization(target, dtype(op.input))]
    return graph.node("QLinearSigmoid", [name, *scales], CONTRIB)


@unary
def write_tanh(graph: Graph, op: qnn.TanhOp, name: str) -> str:
    source, target = codes_of(op, "input", "output")
    found = graph.node("Tanh", [real(graph, name, source, dtype(op.input))])
    return coded(graph, found, target, dtype(op.input))


def softmax_refusal(op: qnn.SoftmaxOp) -> str | None:
    if shape(op.input)[-1] == 1:
        return "ONNX Runtime's softmax of one code overflows"
    return type_refusal(op, *CODES) or rescaling.softmax_refusal(op)


def write_softmax(graph: Graph, op: qnn.SoftmaxOp) -> None:
    """Generate a quantized softmax; beta is multiplied into the input's scale."""
    type = dtype(op.input)
    source = Codes(float(np.float32(op.input_scale.value.data * op.beta.value.data)), 0)
    target = Codes(1 / 256, 0 if type == np.uint8 else -128)
    inputs = [graph.read(op.input), *graph.quantization(source, type), *graph.quantization(target, type)]
    graph.define(op.result, graph.node("QLinearSoftmax", inputs, CONTRIB, axis=-1, opset=13))


def write_float_softmax(graph: Graph, op: relay.SoftmaxOp) -> None:
    name, beta = graph.read(op.data), to_numpy(op.beta)
    if beta != 1:
        name = graph.node("Mul", [name, graph.constant(beta, np.dtype(np.float32))])
    graph.define(op.result, graph.node("Softmax", [name], axis=-1))


@unary
def write_quantize(graph: Graph, op: qnn.QuantizeOp, name: str) -> str:
    return coded(graph, name, codes(op.scale, op.zero_point), dtype(op.result))


@unary
def write_dequantize(graph: Graph, op: qnn.DequantizeOp, name: str) -> str:
    return real(graph, name, codes(op.scale, op.zero_point), dtype(op.input))


def requantize_refusal(op: qnn.RequantizeOp) -> str | None:
    if dtype(op.input) not in CODE_TYPES:
        return "its input is neither codes nor the sums of a product that is taken with it"
    return type_refusal(op, *CODES) or rescaling.requantize_refusal(op)


@unary
def write_requantize(graph: Graph, op: qnn.RequantizeOp, name: str) -> str:
    source, target = codes_of(op, "input", "output")
    return coded(graph, real(graph, name, source, dtype(op.input)), target, dtype(op.result), code_bounds(op))


def reduced(graph: Graph, kind: str, op: relay.ReduceOp | qnn.MeanOp, name: str) -> str:
    keep = op.keepdims.value.data and 1  # without axes nothing is reduced
    return graph.node(kind, [name, graph.integers(op.axes())], keepdims=keep, noop_with_empty_axes=1)


def write_mean(graph: Graph, op: qnn.MeanOp) -> None:
    """Generate a quantized mean: QLinearGlobalAveragePool over height and width, else a mean in floats."""
    type, (source, target) = dtype(op.input), codes_of(op, "input", "output")
    if op.axes() == (1, 2) and rank(op.input) == 4:
        scales = [*graph.quantization(source, type), *graph.quantization(target, type)]
        data = graph.read(op.input, first=True)
        name = graph.node("QLinearGlobalAveragePool", [data, *scales], CONTRIB, channels_last=0)
        if op.keepdims.value.data:
            graph.define(op.result, name, first=True)
        else:
            graph.define(op.result, graph.node("Reshape", [name, graph.integers(shape(op.result))]))
        return
    name = reduced(graph, "ReduceMean", op, real(graph, graph.read(op.input), source, type))
    graph.define(op.result, coded(graph, name, target, type))


def write_float_mean(graph: Graph, ops: Sequence[Operation]) -> None:
    total, quotient = ops
    assert isinstance(total, relay.SumOp)
    if total.axes() == (1, 2) and rank(total.input) == 4:
        name = graph.node("GlobalAveragePool", [graph.read(total.input, first=True)])
        name = graph.node("Reshape", [name, graph.integers(shape(quotient.results[0]))])
    else:
        name = reduced(graph, "ReduceMean", total, graph.read(total.input))
    graph.define(quotient.results[0], name)


def reduction(kind: str, *types: str) -> Row[Graph]:
    def write(graph: Graph, op: relay.ReduceOp) -> None:
        graph.define(op.result, reduced(graph, kind, op, graph.read(op.input)))

    return Row(lambda op: type_refusal(op, *types), write)


def position(kind: str) -> Row[Graph]:
    """A code generator for `relay.argmax` or `relay.argmin`: it writes an ArgMax or ArgMin node (`kind`), whose result
    is int64, and casts it to the op's result type."""

    def write(graph: Graph, op: relay.ArgOp) -> None:
        (axis,) = op.axes()
        name = graph.node(kind, [graph.read(op.input)], axis=axis, keepdims=op.keepdims.value.data and 1)
        graph.define(op.result, name if dtype(op.result) == np.int64 else cast(graph, name, dtype(op.result)))

    return Row(lambda op: element_refusal(op.input, "compares", FLOAT, *CODES, "int32"), write)


@unary
def write_clip(graph: Graph, op: relay.ClipOp, name: str) -> str:
    return clamped(graph, name, *clip_bounds(op), dtype(op.input))


def write_bias(graph: Graph, op: relay.BiasAddOp) -> None:
    first, dims = graph.layout(op.data), [1] * rank(op.data)
    axis = op.axis.value.data % len(dims)
    dims[(0, 2, 3, 1)[axis] if first else axis] = -1
    bias = graph.node("Reshape", [graph.read(op.bias), graph.integers(dims)])
    graph.define(op.result, graph.node("Add", [graph.read(op.data, first), bias]), first)


@unary
def write_cast(graph: Graph, op: relay.CastOp, name: str) -> str:
    if dtype(op.input) == INT8:
        name = graph.signed(name)
    name = cast(graph, name, dtype(op.result))
    return graph.unsigned(name) if dtype(op.result) == INT8 else name


def reciprocal_root(graph: Graph, names: list[str]) -> str:
    return graph.node("Reciprocal", [graph.node("Sqrt", names)])


def floor_quotient(graph: Graph, names: list[str]) -> str:
    return graph.node("Floor", [graph.node("Div", names)])


ROWS: dict[type[Operation], Row[Graph]] = {
    relay.AddOp: each("Add", *NUMBERS),
    relay.SubtractOp: each("Sub", *NUMBERS),
    relay.MultiplyOp: each("Mul", *NUMBERS),
    relay.DivideOp: each("Div", FLOAT, "int32", check=nonzero),
    relay.FloorDivideOp: each(floor_quotient, FLOAT, "int32", check=nonzero),
    relay.BiasAddOp: Row(lambda op: type_refusal(op, *NUMBERS), write_bias),
    relay.MaximumOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES) or layout_refusal(op), extreme("Max")),
    relay.MinimumOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES) or layout_refusal(op), extreme("Min")),
    relay.EqualOp: compared("Equal"),
    relay.GreaterOp: compared("Greater"),
    relay.LessOp: compared("Less"),
    relay.WhereOp: Row(
        lambda op: element_refusal(op.result, "selects", *NUMBERS) or layout_refusal(op), each("Where").write
    ),
    relay.NegativeOp: each("Neg", FLOAT),
    relay.AbsOp: each("Abs", FLOAT),
    relay.SqrtOp: each("Sqrt", FLOAT),
    relay.RsqrtOp: each(reciprocal_root, FLOAT),
    relay.ExpOp: each("Exp", FLOAT),
    relay.LogOp: each("Log", FLOAT),
    relay.SigmoidOp: each("Sigmoid", FLOAT),
    relay.TanhOp: each("Tanh", FLOAT),
    relay.FloorOp: each("Floor", FLOAT),
    relay.CeilOp: each("Ceil", FLOAT),
    relay.RoundOp: never("ONNX's Round takes halves to even"),
    relay.ClipOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES), write_clip),
    relay.CastOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES, "bool"), write_cast),
    relay.SoftmaxOp: Row(lambda op: type_refusal(op, FLOAT), write_float_softmax),
    relay.SumOp: reduction("ReduceSum", *NUMBERS),
    relay.MaxOp: reduction("ReduceMax", *NUMBERS, *CODES),
    relay.MinOp: reduction("ReduceMin", *NUMBERS, *CODES),
    relay.ArgmaxOp: position("ArgMax"),
    relay.ArgminOp: position("ArgMin"),
    qnn.QuantizeOp: Row(quantize_refusal, write_quantize),
    qnn.DequantizeOp: Row(quantize_refusal, write_dequantize),
    qnn.RequantizeOp: Row(requantize_refusal, write_requantize),
    qnn.AddOp: binary("QLinearAdd"),
    qnn.SubtractOp: Row(binary_refusal, write_subtract),
    qnn.MulOp: binary("QLinearMul"),
    qnn.MeanOp: Row(lambda op: type_refusal(op, *CODES) or rescaling.mean_refusal(op), write_mean),
    qnn.SoftmaxOp: Row(softmax_refusal, write_softmax),
    qnn.SigmoidOp: Row(lambda op: type_refusal(op, *CODES) or rescaling.curve_refusal(op), write_sigmoid),
    qnn.TanhOp: Row(lambda op: type_refusal(op, *CODES) or rescaling.curve_refusal(op), write_tanh),
    qnn.DynamicQuantizeOp: never("its scale is found at run time"),
    qnn.LstmOp: never("recurrent kernels keep their state in the host"),
    qnn.SvdfOp: never("recurrent kernels keep their state in the host"),
}
