"""Ops that compute number by number: an expression of C for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xdsl.ir import Operation

from relay.byoc.c.ctype import CType
from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import Access, along, broadcast
from relay.byoc.c.rows import pointwise
from relay.byoc.c.rows.requantize import RESCALES
from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import rank
from relay.errors import Unsupported
from relay.transforms.location import place

Expression = Callable[[Emitter, CType], str]
"""The result's expression, with `{0}`, `{1}` for the operands, for operands of this type."""


def wrapping(operator: str) -> Expression:
    """A sum, difference or product modulo 2^bits; a float's own."""

    def expression(e: Emitter, type: CType) -> str:
        if type.kind == "f":
            return f"{{0}} {operator} {{1}}"
        return f"({type.name})(({type.wrap}){{0}} {operator} ({type.wrap}){{1}})"

    return expression


def same(text: str) -> Expression:
    """The same expression for every type, converted to the operands'."""
    return lambda e, type: f"({type.name})({text})"


def larger(e: Emitter, type: CType) -> str:
    """The larger number; of floats, what is no number wins."""
    return f"({type.name})({{0}} > {{1}}{' || {0} != {0}' * (type.kind == 'f')} ? {{0}} : {{1}})"


def smaller(e: Emitter, type: CType) -> str:
    """The smaller number; of floats, what is no number wins."""
    return f"({type.name})({{0}} < {{1}}{' || {0} != {0}' * (type.kind == 'f')} ? {{0}} : {{1}})"


def divide(file: str, e: Emitter, type: CType) -> str:
    """A quotient: floats and unsigned numbers by C's own, signed ones by a kernel."""
    if type.kind == "f":
        return "{0} / {1}" if file == "divide_signed" else math("floor", type, "{0} / {1}")
    if type.kind == "u":
        return f"({type.name})({{1}} == 0 ? 0 : {{0}} / {{1}})"
    return f"{e.kernel(file, type.short, Type=type.name, Wrap=type.wrap)}({{0}}, {{1}})"


def math(function: str, type: CType, argument: str = "{0}") -> str:
    """A function of math.h in the type's own precision."""
    return f"{function}{'f' if type.size == 4 else ''}({argument})"


def own(function: str) -> Expression:
    """A function that math.h rounds correctly in both precisions."""
    return lambda e, type: math(function, type)


def in_double(function: str) -> Expression:
    """A function of math.h in double, rounded to the type."""
    return lambda e, type: f"({type.name}){function}((double){{0}})"


def negative(e: Emitter, type: CType) -> str:
    return "-{0}" if type.kind == "f" else f"({type.name})(0 - ({type.wrap}){{0}})"


def absolute(e: Emitter, type: CType) -> str:
    if type.kind != "i":
        return math("fabs", type) if type.kind == "f" else "{0}"
    return f"({type.name})({{0}} < 0 ? 0 - ({type.wrap}){{0}} : ({type.wrap}){{0}})"


BINARY: Mapping[type[relay.BinaryOp], Expression] = {
    relay.AddOp: wrapping("+"),
    relay.SubtractOp: wrapping("-"),
    relay.MultiplyOp: wrapping("*"),
    relay.DivideOp: partial(divide, "divide_signed"),
    relay.FloorDivideOp: partial(divide, "divide_floor"),
    relay.MaximumOp: larger,
    relay.MinimumOp: smaller,
    relay.LeftShiftOp: lambda e, type: f"({type.name})(({type.wrap}){{0}} << {{1}})",
    relay.RightShiftOp: same("{0} >> {1}"),
    relay.EqualOp: lambda e, type: "{0} == {1}",
    relay.GreaterOp: lambda e, type: "{0} > {1}",
    relay.LessOp: lambda e, type: "{0} < {1}",
}

UNARY: Mapping[type[relay.UnaryOp], Expression] = {
    relay.NegativeOp: negative,
    relay.AbsOp: absolute,
    relay.SqrtOp: own("sqrt"),
    relay.RsqrtOp: lambda e, type: f"{type.literal(1)} / {math('sqrt', type)}",
    relay.ExpOp: in_double("exp"),
    relay.Expm1Op: in_double("expm1"),
    relay.LogOp: in_double("log"),
    relay.SigmoidOp: lambda e, type: f"{type.literal(1)} / ({type.literal(1)} + ({type.name})exp((double)-{{0}}))",
    relay.TanhOp: in_double("tanh"),
    relay.RoundOp: own("round"),
    relay.FloorOp: own("floor"),
    relay.CeilOp: own("ceil"),
}


def binary(e: Emitter, op: relay.BinaryOp) -> None:
    element = e.type(op.lhs)
    if element.kind == "b" and not isinstance(op, relay.CompareOp | relay.MaximumOp | relay.MinimumOp):
        raise Unsupported(place(op), "arithmetic of i1 is not supported by c", "cast to an integer before")
    broadcasting(e, op, BINARY[type(op)](e, element))


def unary(e: Emitter, op: relay.UnaryOp) -> None:
    element = e.type(op.input)
    if element.kind == "b":
        raise Unsupported(place(op), "arithmetic of i1 is not supported by c", "cast to an integer before")
    broadcasting(e, op, UNARY[type(op)](e, element))


def where(e: Emitter, op: relay.WhereOp) -> None:
    broadcasting(e, op, f"({e.type(op.lhs).name})({{0}} ? {{1}} : {{2}})")


def clip(e: Emitter, op: relay.ClipOp) -> None:
    type = e.type(op.input)
    low, high = (type.literal(to_numpy(bound).item()) for bound in (op.a_min, op.a_max))
    broadcasting(e, op, f"({type.name})({{0}} < {low} ? {low} : {{0}} > {high} ? {high} : {{0}})")


def cast(e: Emitter, op: relay.CastOp) -> None:
    source, target = e.type(op.input), e.type(op.result)
    if target.kind == "b":
        expression = "{0} != 0"
    elif source.kind == "f" and target.kind != "f":
        expression = f"{truncation(e, source, target)}({{0}})"
    else:
        expression = f"({target.name}){{0}}"
    broadcasting(e, op, expression)


def truncation(e: Emitter, real: CType, integer: CType) -> str:
    """The function that makes integers of floats, towards zero; C leaves open what those out of range become."""
    lowest, highest = integer.range
    limits = {"above": real.literal(highest + 1), "below": real.literal(lowest - 1 if lowest > -(1 << 31) else lowest)}
    numbers = {"lowest": integer.literal(lowest), "highest": integer.literal(highest)}
    return e.kernel(
        "truncate", f"{real.short}_{integer.short}", Real=real.name, Integer=integer.name, **limits, **numbers
    )


def bias_add(e: Emitter, op: relay.BiasAddOp) -> None:
    shape, type = e.shape(op.data), e.type(op.data)
    accesses = [broadcast(shape, shape), along(op.axis.value.data, len(shape))]
    operands = [(e.tensors[value], access) for value, access in zip(op.operands, accesses, strict=True)]
    pointwise.apply(e, op, operands, wrapping("+")(e, type))


def lookup(e: Emitter, op: relay.LookupOp) -> None:
    pointwise.lookup(e, op, op.input, e.tensors[op.table])


def fixed_point_multiply(e: Emitter, op: relay.FixedPointMultiplyOp) -> None:
    shape = e.shape(op.input)
    vector = along(op.axis.value.data, len(shape)), Access((0,) * len(shape))
    accesses = [broadcast(shape, shape), *(vector[rank(value) == 0] for value in (op.multiplier, op.shift))]
    operands = [(e.tensors[value], access) for value, access in zip(op.operands, accesses, strict=True)]
    pointwise.apply(e, op, operands, f"{e.kernel(RESCALES[op.rounding.data])}({{0}}, {{1}}, {{2}})")


def high_multiply(e: Emitter, op: relay.HighMultiplyOp) -> None:
    broadcasting(e, op, f"{e.kernel('high_multiply')}({{0}}, {{1}})")


def rounding_right_shift(e: Emitter, op: relay.RoundingRightShiftOp) -> None:
    broadcasting(e, op, f"{e.kernel('rounding_right_shift')}({{0}}, {{1}})")


def fixed_point_reciprocal(e: Emitter, op: relay.FixedPointReciprocalOp) -> None:
    reciprocal = e.kernel("reciprocal")
    body = f"    for (int32_t i = 0; i < count; ++i)\n        mantissa[i] = {reciprocal}(input[i], &headroom[i]);\n"
    parameters = ["const int32_t *restrict input", "int32_t count", "int32_t *restrict mantissa"]
    function = e.function("reciprocals", [*parameters, "int32_t *restrict headroom"], body)
    e.call(op, function, e.read(op.input), e.tensors[op.input].count, *map(e.write, op.results))


def broadcasting(e: Emitter, op: Operation, expression: str) -> None:
    """The expression for operands that broadcast to the result's shape."""
    extents = e.shape(op.results[0])
    operands = [(e.tensors[value], broadcast(e.shape(value), extents)) for value in op.operands]
    pointwise.apply(e, op, operands, expression)
