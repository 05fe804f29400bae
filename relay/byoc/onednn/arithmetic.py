"""Code generators of `onednn` for elementwise ops, reductions and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from relay.byoc import rescaling
from relay.byoc.kernels import Row
from relay.byoc.onednn.program import Scaling, Step, Tensor
from relay.byoc.onednn.writer import Post, Writer, clipped, limits, reals, scaling, type_refusal, window_options
from relay.byoc.quantized import CODE_TYPES, Codes, Window, clip_bounds, code_bounds, codes, codes_of, dtype
from relay.byoc.refusals import CODES, FLOAT, scale_refusal
from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import shape


def binary_refusal(op: relay.BinaryOp) -> str | None:
    return type_refusal(op, FLOAT) or broadcast_refusal(op.lhs, op.rhs, op.result)


def broadcast_refusal(lhs: SSAValue, rhs: SSAValue, result: SSAValue) -> str | None:
    """The reason why oneDNN cannot broadcast the operands; None if an operand has the shape of the result. oneDNN only
    broadcasts the second operand, but operands may be exchanged."""
    if shape(result) not in (shape(lhs), shape(rhs)):
        return "both operands are broadcast"
    return None


def pair(lhs: Tensor, rhs: Tensor, result: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Both operands with the rank of the result, the broadcast one last, and whether they were exchanged."""
    width = len(result.shape)
    if lhs.shape != result.shape:
        return rhs.expanded(width), lhs.expanded(width), True
    return lhs.expanded(width), rhs.expanded(width), False


def binary(algorithm: str) -> Row[Writer]:
    """The row for an elementwise op that oneDNN's binary primitive `algorithm` computes. If its first operand is
    broadcast, the operands are exchanged, because oneDNN only broadcasts the second; a difference is then negated."""

    def write(writer: Writer, op: relay.BinaryOp) -> None:
        result = writer.define(op.result)
        first, second, exchanged = pair(writer.read(op.lhs), writer.read(op.rhs), result)
        post: Post = (("linear", -1.0, 0.0),) if exchanged and algorithm == "sub" else ()
        writer.emit(Step("binary", (first, second), result, algorithm, post=post))

    return Row(binary_refusal, write)


def quotient_refusal(op: relay.DivideOp) -> str | None:
    return "its dividend is broadcast" if shape(op.lhs) != shape(op.result) else binary_refusal(op)


def write_bias(writer: Writer, op: relay.BiasAddOp) -> None:
    data, bias = writer.read(op.data), writer.read(op.bias)
    dims = [1] * len(data.shape)
    dims[op.axis.value.data] = bias.shape[0]
    vector = Tensor.whole(bias.buffer, dims, bias.dtype)
    writer.emit(Step("binary", (data, vector), writer.define(op.result), "add"))


def eltwise(writer: Writer, algorithm: str, source: Tensor, result: Tensor, alpha: float = 0, beta: float = 0) -> None:
    writer.emit(Step("eltwise", (source,), result, algorithm, options={"alpha": alpha, "beta": beta}))


def curve(algorithm: str, alpha: float = 0.0) -> Row[Writer]:
    return Row(
        lambda op: type_refusal(op, FLOAT),
        lambda writer, op: eltwise(writer, algorithm, writer.read(op.input), writer.define(op.result), alpha),
    )


def write_clip(writer: Writer, op: relay.ClipOp) -> None:
    """Generate a clip; quantized values are clipped as floats."""
    source, bounds = writer.read(op.input), limits(clip_bounds(op))
    if dtype(op.input) not in CODE_TYPES:
        eltwise(writer, "clip", source, writer.define(op.result), *bounds)
        return
    real, clamped = (writer.temporary(source.shape, FLOAT) for _ in range(2))
    writer.reorder(source, real)
    eltwise(writer, "clip", real, clamped, *bounds)
    writer.reorder(clamped, writer.define(op.result))


def sum_refusal(op: qnn.QnnBinaryOp) -> str | None:
    found = type_refusal(op, *CODES) or broadcast_refusal(op.lhs, op.rhs, op.result)
    return found or rescaling.binary_refusal(op)


def write_sum(writer: Writer, op: qnn.AddOp | qnn.SubtractOp) -> None:
    """Generate `lhs_scale * lhs +- rhs_scale * rhs` of the quantized values. The contribution of the zero points is one
    constant, added afterwards."""
    left, right, target = codes_of(op, "lhs", "rhs", "output")
    result = writer.define(op.result)
    sign, algorithm = (-1.0, "sub") if isinstance(op, qnn.SubtractOp) else (1.0, "add")
    moved = target.zero_point - (left.scale * left.zero_point + sign * right.scale * right.zero_point) / target.scale
    factor = 1 / target.scale
    first, second, exchanged = pair(writer.read(op.lhs), writer.read(op.rhs), result)
    if exchanged:
        left, right, factor = right, left, sign * factor
    scalings = {"src": Scaling((left.scale,)), "src1": Scaling((right.scale,))}
    post: Post = (("linear", factor, moved), *clipped(code_bounds(op)))
    writer.emit(Step("binary", (first, second), result, algorithm, scalings=scalings, post=post))


def write_product(writer: Writer, op: qnn.MulOp) -> None:
    """Generate a quantized product, computed in floats."""
    left, right, target = codes_of(op, "lhs", "rhs", "output")
    result = writer.temporary(shape(op.result), FLOAT)
    first, second, _ = pair(writer.real(op.lhs, left), writer.real(op.rhs, right), result)
    writer.emit(Step("binary", (first, second), result, "mul", post=clipped(reals(code_bounds(op), target))))
    writer.coded(result, op.result, target)


def quantize_refusal(op: qnn.QuantizeOp | qnn.DequantizeOp) -> str | None:
    return scale_refusal(op) or type_refusal(op, FLOAT, *CODES)


def write_quantize(writer: Writer, op: qnn.QuantizeOp) -> None:
    writer.coded(writer.read(op.input), op.result, codes(op.scale, op.zero_point))


def write_dequantize(writer: Writer, op: qnn.DequantizeOp) -> None:
    writer.reorder(writer.read(op.input), writer.define(op.result), {"src": scaling(codes(op.scale, op.zero_point))})


def requantize_refusal(op: qnn.RequantizeOp) -> str | None:
    if dtype(op.input) not in CODE_TYPES:
        return "its input is neither codes nor the sums of a product that is taken with it"
    return type_refusal(op, *CODES) or rescaling.requantize_refusal(op)


def write_requantize(writer: Writer, op: qnn.RequantizeOp) -> None:
    source, target = codes_of(op, "input", "output")
    bounds = code_bounds(op)
    if bounds == (None, None):
        scalings = {"src": scaling(source), "dst": scaling(target)}
        writer.reorder(writer.read(op.input), writer.define(op.result), scalings)
        return
    real, clamped = writer.real(op.input, source), writer.temporary(shape(op.input), FLOAT)
    eltwise(writer, "clip", real, clamped, *limits(reals(bounds, target)))
    writer.coded(clamped, op.result, target)


def code_curve(algorithm: str) -> Row[Writer]:
    def write(writer: Writer, op: qnn.QnnUnaryOp) -> None:
        source, target = codes_of(op, "input", "output")
        result = writer.temporary(shape(op.input), FLOAT)
        eltwise(writer, algorithm, writer.real(op.input, source), result)
        writer.coded(result, op.result, target)

    return Row(lambda op: type_refusal(op, *CODES) or rescaling.curve_refusal(op), write)


def write_softmax(writer: Writer, op: qnn.SoftmaxOp) -> None:
    """Generate a quantized softmax; beta is multiplied into the input's scale."""
    real = writer.real(op.input, Codes(op.input_scale.value.data * op.beta.value.data, 0))
    result = writer.temporary(shape(op.input), FLOAT)
    writer.emit(Step("softmax", (real,), result, "softmax"))
    writer.coded(result, op.result, Codes(1 / 256, 0 if dtype(op.input) == np.uint8 else -128))


def write_float_softmax(writer: Writer, op: relay.SoftmaxOp) -> None:
    source, beta = writer.read(op.data), float(to_numpy(op.beta))
    if beta != 1:
        scaled = writer.temporary(source.shape, FLOAT)
        eltwise(writer, "linear", source, scaled, beta)
        source = scaled
    writer.emit(Step("softmax", (source,), writer.define(op.result), "softmax"))


def kept(source: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    """The shape of the result of a reduction that keeps the reduced axes with size 1."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(source.shape))


def reduce(writer: Writer, algorithm: str, source: Tensor, axes: Sequence[int], result: Tensor) -> None:
    """Generate a reduction; the mean over height and width is generated as a pool, which is faster."""
    view = Tensor.whole(result.buffer, kept(source, axes), result.dtype)
    if view.shape == source.shape:
        writer.reorder(source, view)
    elif algorithm == "reduce_mean" and tuple(axes) == (1, 2) and len(source.shape) == 4:
        _, height, width, _ = source.shape
        options = window_options(Window((height, width), (height, width)), kernel=(height, width))
        writer.emit(Step("pooling", (writer.image(source),), writer.image(view), "pool_avg", options=options))
    else:
        writer.emit(Step("reduction", (source,), view, algorithm))


def reduction(algorithm: str) -> Row[Writer]:
    def write(writer: Writer, op: relay.ReduceOp) -> None:
        reduce(writer, algorithm, writer.read(op.input), op.axes(), writer.define(op.result))

    return Row(lambda op: type_refusal(op, FLOAT), write)


def write_float_mean(writer: Writer, ops: Sequence[Operation]) -> None:
    total, quotient = ops
    assert isinstance(total, relay.SumOp)
    result = writer.define(quotient.results[0])
    reduce(writer, "reduce_mean", writer.read(total.input), total.axes(), result)


def write_mean(writer: Writer, op: qnn.MeanOp) -> None:
    source, target = codes_of(op, "input", "output")
    real = writer.real(op.input, source)
    total = writer.temporary(shape(op.result), FLOAT)
    reduce(writer, "reduce_mean", real, op.axes(), total)
    writer.coded(total, op.result, target)


def maximum_refusal(op: relay.BinaryOp) -> str | None:
    if constant_of(op.lhs) is not None and constant_of(op.rhs) is not None:
        return "both operands are constants"
    return type_refusal(op, FLOAT, *CODES) or broadcast_refusal(op.lhs, op.rhs, op.result)


ROWS: dict[type[Operation], Row[Writer]] = {
    relay.AddOp: binary("add"),
    relay.SubtractOp: binary("sub"),
    relay.MultiplyOp: binary("mul"),
    relay.DivideOp: Row(quotient_refusal, binary("div").write),
    relay.MaximumOp: Row(maximum_refusal, binary("max").write),
    relay.MinimumOp: Row(maximum_refusal, binary("min").write),
    relay.BiasAddOp: Row(lambda op: type_refusal(op, FLOAT), write_bias),
    relay.NegativeOp: curve("linear", -1.0),
    relay.AbsOp: curve("abs"),
    relay.SqrtOp: curve("sqrt"),
    relay.ExpOp: curve("exp"),
    relay.LogOp: curve("log"),
    relay.SigmoidOp: curve("logistic"),
    relay.TanhOp: curve("tanh"),
    relay.ClipOp: Row(lambda op: type_refusal(op, FLOAT, *CODES), write_clip),
    relay.SoftmaxOp: Row(lambda op: type_refusal(op, FLOAT), write_float_softmax),
    relay.SumOp: reduction("reduce_sum"),
    relay.MaxOp: reduction("reduce_max"),
    relay.MinOp: reduction("reduce_min"),
    qnn.QuantizeOp: Row(quantize_refusal, write_quantize),
    qnn.DequantizeOp: Row(quantize_refusal, write_dequantize),
    qnn.RequantizeOp: Row(requantize_refusal, write_requantize),
    qnn.AddOp: Row(sum_refusal, write_sum),
    qnn.SubtractOp: Row(sum_refusal, write_sum),
    qnn.MulOp: Row(sum_refusal, write_product),
    qnn.MeanOp: Row(lambda op: type_refusal(op, *CODES) or rescaling.mean_refusal(op), write_mean),
    qnn.SoftmaxOp: Row(lambda op: type_refusal(op, *CODES) or rescaling.softmax_refusal(op), write_softmax),
    qnn.SigmoidOp: code_curve("logistic"),
    qnn.TanhOp: code_curve("tanh"),
}
