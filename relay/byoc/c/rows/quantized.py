"""Quantised ops but contractions: between codes and numbers, sums and products of codes, softmax, tables."""

from __future__ import annotations

from math import prod

import numpy as np

from relay.byoc.c.ctype import F32
from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import Access, along, broadcast, dense
from relay.byoc.c.program import Tensor
from relay.byoc.c.rows import pointwise
from relay.byoc.c.rows.reduce import bracketed
from relay.byoc.c.rows.requantize import RESCALES, bounds
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import rank
from relay.errors import Unsupported
from relay.interpreters.meaning import number
from relay.interpreters.qnn import softmax_exp_table
from relay.transforms.location import place


def quantize(e: Emitter, op: qnn.QuantizeOp) -> None:
    code = e.type(op.result)
    if code.size == 8:
        raise Unsupported(place(op), "64-bit codes are not supported by c")
    low, high = code.range
    e.kernel("clamp")
    rounding = op.rounding.data
    nearest = e.kernel("round_away" if rounding == "away" else "round_even", "f32", Real=F32.name)
    steps = "{0} * (1.0f / {1})" if rounding == "even_inverse" else "{0} / {1}"
    rounded = f"(int64_t){nearest}({steps}) + {{2}}"
    if rounding == "even_sum":
        rounded = f"(int64_t){nearest}({steps} + (float){{2}})"
    expression = f"({code.name})relay_clamp({rounded}, {low}, {high})"
    pointwise.apply(e, op, [(e.tensors[op.input], dense(e.shape(op.input))), *parameters(e, op)], expression)


def dequantize(e: Emitter, op: qnn.DequantizeOp) -> None:
    if e.type(op.input).size == 1 and to_numpy(op.scale).ndim == to_numpy(op.zero_point).ndim == 0:
        pointwise.by_table(e, op, op.input)
        return
    steps = "((int64_t){0} - {2})"
    double = to_numpy(op.scale).ndim == 0 and op.product.data == "f64"
    exact = f"(float)((double){{1}} * (double){steps})" if double else f"{{1}} * (float){steps}"
    pointwise.apply(e, op, [(e.tensors[op.input], dense(e.shape(op.input))), *parameters(e, op)], exact)


def parameters(e: Emitter, op: qnn.QuantizeOp | qnn.DequantizeOp) -> list[tuple[Tensor, Access]]:
    """Scale and zero point, each one number or one per index of the axis."""
    dims = rank(op.input)

    def operand(numbers: Array, name: str) -> tuple[Tensor, Access]:
        access = along(op.axis.value.data, dims) if numbers.ndim else Access((0,) * dims)
        return e.constant(np.atleast_1d(numbers), name), access

    scale = to_numpy(op.scale).astype(np.float32)
    return [operand(scale, "scale"), operand(to_numpy(op.zero_point).astype(np.int32), "zero_point")]


def unary(e: Emitter, op: qnn.QnnUnaryOp) -> None:
    pointwise.by_table(e, op, op.input)


def add(e: Emitter, op: qnn.AddOp) -> None:
    sum_of(e, op, "+")


def subtract(e: Emitter, op: qnn.SubtractOp) -> None:
    sum_of(e, op, "-")


def sum_of(e: Emitter, op: qnn.AddOp | qnn.SubtractOp, operator: str) -> None:
    """Both operands in a common scale, their sum or difference, rescaled."""
    rescale = e.kernel(fixed_point(op))
    left = 1 << number(op.left_shift)

    def side(operand: str, zero_point: int, multiplier: int, shift: int) -> str:
        return (
            f"{rescale}(relay_wrap32((int64_t)({operand} - {bracketed(zero_point)}) * {left}), {multiplier}, {shift})"
        )

    lhs = side("{0}", number(op.lhs_zero_point), number(op.lhs_multiplier), number(op.lhs_shift))
    rhs = side("{1}", number(op.rhs_zero_point), number(op.rhs_multiplier), number(op.rhs_shift))
    binary(e, op, f"(int64_t){lhs} {operator} {rhs}")


def fixed_point(op: qnn.QnnBinaryOp) -> str:
    """The kernel of the op's rounding."""
    if op.rounding.data not in RESCALES:
        raise Unsupported(place(op), f"rounding {op.rounding.data} is not supported by c")
    return RESCALES[op.rounding.data]


def mul(e: Emitter, op: qnn.MulOp) -> None:
    lhs, rhs = bracketed(number(op.lhs_zero_point)), bracketed(number(op.rhs_zero_point))
    binary(e, op, f"((int64_t){{0}} - {lhs}) * ((int64_t){{1}} - {rhs})")


def binary(e: Emitter, op: qnn.QnnBinaryOp, raw: str) -> None:
    """A raw number of both operands, rescaled and clamped."""
    code, extents = e.type(op.result), e.shape(op.result)
    low, high = bounds(op, code)
    for kernel in ("clamp", "wrap32"):
        e.kernel(kernel)
    rescale = e.kernel(fixed_point(op))
    scaled = f"{rescale}(relay_wrap32({raw}), {number(op.multiplier)}, {number(op.shift)})"
    offset = bracketed(number(op.output_zero_point))
    expression = f"({code.name})relay_clamp((int64_t){scaled} + {offset}, {low}, {high})"
    operands = [(e.tensors[value], broadcast(e.shape(value), extents)) for value in (op.lhs, op.rhs)]
    pointwise.apply(e, op, operands, expression)


def softmax(e: Emitter, op: qnn.SoftmaxOp) -> None:
    type, (*rows, depth) = e.type(op.input), e.shape(op.input)
    if type.size != 1:
        raise Unsupported(place(op), "a softmax of 16-bit codes is not supported by c")
    low, high = type.range
    table = e.numbers(softmax_exp_table(number(op.multiplier), number(op.shift)), "exponents")
    function = e.kernel("softmax", type.short, Code=type.name, lowest=bracketed(low), highest=str(high))
    e.call(op, function, table, prod(rows), depth, e.read(op.input), e.write(op.result))


def softmax_real(e: Emitter, op: relay.SoftmaxOp) -> None:
    type, (*rows, depth) = e.type(op.data), e.shape(op.data)
    function = e.kernel("softmax_real", type.short, name="softmax", Real=type.name)
    beta = type.literal(to_numpy(op.beta).item())
    e.call(op, function, beta, prod(rows), depth, e.read(op.data), e.write(op.result))


def dynamic_quantize(e: Emitter, op: qnn.DynamicQuantizeOp) -> None:
    rows, *rest = e.shape(op.input)
    function = e.kernel("dynamic_quantize", round=e.kernel("round_away", "f32", Real=F32.name))
    e.call(op, function, e.read(op.input), rows, prod(rest), e.write(op.codes), e.write(op.scale))
