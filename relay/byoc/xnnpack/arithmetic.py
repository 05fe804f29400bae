"""Code generators of `xnnpack` for elementwise ops, reductions and softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from relay.byoc import rescaling
from relay.byoc.kernels import Row, never
from relay.byoc.quantized import CODE_TYPES, Codes, clip_bounds, code_bounds, codes, codes_of, dtype
from relay.byoc.refusals import CODES, FLOAT, divisor_refusal, element_refusal, quantize_refusal, type_refusal
from relay.byoc.scales import declared
from relay.byoc.xnnpack.writer import Writer, activation_refusal, code_activation, float_activation
from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import rank, shape

NUMBERS = (FLOAT, "int32")


def plain(kind: str, *types: str, activation: bool = False) -> Row[Writer]:
    """A table row for ops that one TFLite operator, `kind`, computes: it refuses ops on other element types than
    `types`."""

    def refusal(op: Operation) -> str | None:
        return type_refusal(op, *types)

    def write(writer: Writer, op: Operation) -> None:
        options = {"fused_activation_function": "NONE"} if activation else None
        writer.emit(kind, list(op.operands), op.results[0], options)

    return Row(refusal, write)


def divide(kind: str, activation: bool) -> Row[Writer]:
    """A table row for divisions that the TFLite operator `kind` computes. It accepts integers only if the divisor is a
    constant without zeros, because TFLite fails at a divisor of 0, where relay gives 0."""
    row = plain(kind, *NUMBERS, activation=activation)
    return Row(lambda op: row.refusal(op) or divisor_refusal(op), row.write)


def compared(kind: str) -> Row[Writer]:
    return Row(
        lambda op: element_refusal(op.lhs, "compares", *NUMBERS),
        lambda writer, op: writer.emit(kind, [op.lhs, op.rhs], op.result),
    )


def declared_input(writer: Writer, op: Operation) -> int:
    """The tensor of the first operand, with the scale that the op's properties give for it."""
    return writer.read(op.operands[0], declared(op).get(op.operands[0]))


def binary_refusal(op: qnn.QnnBinaryOp) -> str | None:
    if not shape(op.result):
        return "its result has no axes"  # XNNPACK's difference of two such values was 16 off
    return (
        type_refusal(op, *CODES)
        or activation_refusal(binary_activation(op))
        or ("its rounding is not TFLite's" if op.rounding != StringAttr("tflite") else None)
        or rescaling.binary_refusal(op)
    )


def binary_activation(op: qnn.QnnBinaryOp) -> str | None:
    return code_activation(code_bounds(op), codes(op.output_scale, op.output_zero_point), dtype(op.result))


def binary(kind: str) -> Row[Writer]:
    """A generator of a quantized binary op; each operand is read with the scale that the op gives for it, even if both
    are the same value."""

    def write(writer: Writer, op: qnn.QnnBinaryOp) -> None:
        lhs, rhs = map(writer.read, (op.lhs, op.rhs), codes_of(op, "lhs", "rhs"))
        writer.emit(kind, [lhs, rhs], op.result, {"fused_activation_function": binary_activation(op) or "NONE"})

    return Row(binary_refusal, write)


CURVES = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
"""The scale that TFLite requires for the result of each function, and the zero point if the result is int8."""


def result_refusal(kind: str, op: qnn.SigmoidOp | qnn.TanhOp) -> str | None:
    """The reason why TFLite would give the result another scale or zero point; None if it does not."""
    scale, zero_point = CURVES[kind]
    zero_point += 128 * (dtype(op.result).name == "uint8")
    same = (op.output_scale.value.data, op.output_zero_point.value.data) == (scale, zero_point)
    return None if same else f"TFLite's {kind} gives the scale {scale:g} and the zero point {zero_point} only"


def curve(kind: str) -> Row[Writer]:
    return Row(
        lambda op: type_refusal(op, *CODES) or rescaling.curve_refusal(op) or result_refusal(kind, op),
        lambda writer, op: writer.emit(kind, [declared_input(writer, op)], op.results[0]),
    )


def requantize_refusal(op: qnn.RequantizeOp) -> str | None:
    if dtype(op.input) not in CODE_TYPES:
        return "its input is neither codes nor the sums of a convolution that is taken with it"
    if op.rounding != StringAttr("tflite"):
        return f"it rounds as {op.rounding.data}"
    return type_refusal(op, *CODES) or activation_refusal(requantize_kind(op)) or rescaling.requantize_refusal(op)


def requantize_kind(op: qnn.RequantizeOp) -> str | None:
    """The operator that requantizes: QUANTIZE, or an activation if there is a clamp; None if no operator does."""
    bounds = code_bounds(op)
    if bounds == (None, None):
        return "QUANTIZE"
    if dtype(op.input) != dtype(op.result):
        return None
    return code_activation(bounds, codes(op.output_scale, op.output_zero_point), dtype(op.result))


def write_requantize(writer: Writer, op: qnn.RequantizeOp) -> None:
    data = writer.read(op.input, codes(op.input_scale, op.input_zero_point))
    writer.emit(requantize_kind(op) or "QUANTIZE", [data], op.result)


def mean_refusal(op: qnn.MeanOp) -> str | None:
    if op.rounding != StringAttr("tflite"):
        return f"it rounds as {op.rounding.data}"
    return type_refusal(op, *CODES) or rescaling.mean_refusal(op)


def reduce(writer: Writer, kind: str, data: SSAValue | int, op: relay.ReduceOp | qnn.MeanOp, result: SSAValue) -> None:
    """Write a reduction of `data`, along the axes of the op, to `result`."""
    writer.emit(kind, [data, writer.integers(op.axes())], result, {"keep_dims": bool(op.keepdims.value.data)})


def write_mean(writer: Writer, op: qnn.MeanOp) -> None:
    reduce(writer, "MEAN", writer.read(op.input, codes(op.input_scale, op.input_zero_point)), op, op.result)


def write_softmax(writer: Writer, op: qnn.SoftmaxOp) -> None:
    """Write a quantized softmax; since only differences of values matter, any zero point of the input is accepted."""
    scale = op.input_scale.value.data
    found = writer.scales.get(writer.region.of(op.input))
    same = found is not None and found.scale == np.float32(scale)
    data = writer.read(op.input, found if same else Codes(float(np.float32(scale)), 0))
    writer.emit("SOFTMAX", [data], op.result, {"beta": op.beta.value.data})


def write_float_softmax(writer: Writer, op: relay.SoftmaxOp) -> None:
    writer.emit("SOFTMAX", [op.data], op.result, {"beta": float(to_numpy(op.beta))})


def reduction(kind: str, *types: str) -> Row[Writer]:
    return Row(lambda op: type_refusal(op, *types), lambda writer, op: reduce(writer, kind, op.input, op, op.result))


def position(kind: str) -> Row[Writer]:
    """Return the code generator that writes a `relay` arg-reduction as TFLite's ARG_MAX or ARG_MIN (`kind`). It refuses
    ops with `keepdims`, since the TFLite operators always remove the reduced axis."""

    def refusal(op: relay.ArgOp) -> str | None:
        if op.keepdims.value.data:
            return "it keeps the axis"
        return element_refusal(op.input, "compares", FLOAT, *CODES)

    def write(writer: Writer, op: relay.ArgOp) -> None:
        inputs = [op.input, writer.integers(op.axes())]
        writer.emit(kind, inputs, op.result, {"output_type": dtype(op.result).name.upper()})

    return Row(refusal, write)


def write_clip(writer: Writer, op: relay.ClipOp) -> None:
    """Write a clamp as a TFLite activation (such as RELU6) if it clamps floats to the bounds of one; otherwise as
    MAXIMUM and MINIMUM with constants, which have the scale of the data if these are quantized."""
    activation = None if dtype(op.input) in CODE_TYPES else float_activation(clip_bounds(op))
    if activation is not None and activation != "NONE":
        writer.emit(activation, [op.input], op.result)
        return
    scale = writer.scales.get(writer.region.of(op.result))
    data = writer.read(op.input, scale)
    low, high = (writer.constant(to_numpy(bound), scale) for bound in (op.a_min, op.a_max))
    middle = writer.model.tensor(shape(op.input), dtype(op.input), scale)
    writer.model.operator("MAXIMUM", [data, low], [middle])
    writer.emit("MINIMUM", [middle, high], op.result)


def write_extreme(kind: str) -> Callable[[Writer, relay.BinaryOp], None]:
    def write(writer: Writer, op: relay.BinaryOp) -> None:
        scale = writer.scales.get(writer.region.of(op.result))
        writer.emit(kind, [writer.read(op.lhs, scale), writer.read(op.rhs, scale)], op.result)

    return write


def bias_refusal(op: relay.BiasAddOp) -> str | None:
    if op.axis.value.data not in (-1, rank(op.data) - 1):
        return "its bias does not lie along the last axis"
    return type_refusal(op, FLOAT)


def write_cast(writer: Writer, op: relay.CastOp) -> None:
    names = {"in_data_type": dtype(op.input).name.upper(), "out_data_type": dtype(op.result).name.upper()}
    writer.emit("CAST", [op.input], op.result, names)


ROWS: dict[type[Operation], Row[Writer]] = {
    relay.AddOp: plain("ADD", *NUMBERS, activation=True),
    relay.SubtractOp: plain("SUB", *NUMBERS, activation=True),
    relay.MultiplyOp: plain("MUL", *NUMBERS, activation=True),
    relay.DivideOp: divide("DIV", True),
    relay.FloorDivideOp: divide("FLOOR_DIV", False),
    relay.BiasAddOp: Row(bias_refusal, plain("ADD", activation=True).write),
    relay.MaximumOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES), write_extreme("MAXIMUM")),
    relay.MinimumOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES), write_extreme("MINIMUM")),
    relay.EqualOp: compared("EQUAL"),
    relay.GreaterOp: compared("GREATER"),
    relay.LessOp: compared("LESS"),
    relay.WhereOp: Row(lambda op: element_refusal(op.result, "selects", *NUMBERS), plain("SELECT_V2").write),
    relay.NegativeOp: plain("NEG", FLOAT),
    relay.AbsOp: plain("ABS", FLOAT),
    relay.SqrtOp: plain("SQRT", FLOAT),
    relay.RsqrtOp: plain("RSQRT", FLOAT),
    relay.ExpOp: plain("EXP", FLOAT),
    relay.LogOp: plain("LOG", FLOAT),
    relay.SigmoidOp: plain("LOGISTIC", FLOAT),
    relay.TanhOp: plain("TANH", FLOAT),
    relay.FloorOp: plain("FLOOR", FLOAT),
    relay.CeilOp: plain("CEIL", FLOAT),
    relay.RoundOp: never("TFLite's ROUND takes halves to even"),
    relay.ClipOp: Row(lambda op: type_refusal(op, *NUMBERS, *CODES), write_clip),
    relay.CastOp: Row(lambda op: type_refusal(op, *NUMBERS, "int64", "bool"), write_cast),
    relay.SoftmaxOp: Row(lambda op: type_refusal(op, FLOAT), write_float_softmax),
    relay.SumOp: reduction("SUM", *NUMBERS),
    relay.MaxOp: reduction("REDUCE_MAX", FLOAT, *CODES),
    relay.MinOp: reduction("REDUCE_MIN", FLOAT, *CODES),
    relay.ArgmaxOp: position("ARG_MAX"),
    relay.ArgminOp: position("ARG_MIN"),
    qnn.QuantizeOp: Row(quantize_refusal, plain("QUANTIZE").write),
    qnn.DequantizeOp: Row(
        quantize_refusal, lambda writer, op: writer.emit("DEQUANTIZE", [declared_input(writer, op)], op.result)
    ),
    qnn.RequantizeOp: Row(requantize_refusal, write_requantize),
    qnn.AddOp: binary("ADD"),
    qnn.SubtractOp: binary("SUB"),
    qnn.MulOp: binary("MUL"),
    qnn.MeanOp: Row(mean_refusal, write_mean),
    qnn.SoftmaxOp: Row(lambda op: type_refusal(op, *CODES) or rescaling.softmax_refusal(op), write_softmax),
    qnn.SigmoidOp: curve("LOGISTIC"),
    qnn.TanhOp: curve("TANH"),
    qnn.DynamicQuantizeOp: never("codes whose scale is found at run time have no place in a .tflite tensor"),
    qnn.LstmOp: never("recurrent kernels keep their state in the host"),
    qnn.SvdfOp: never("recurrent kernels keep their state in the host"),
}
