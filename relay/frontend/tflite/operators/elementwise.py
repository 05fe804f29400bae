"""Imports elementwise operators on plain numbers: functions, comparisons, logic, bitwise operators, selection, sums of
several tensors."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints, scalar_attr
from relay.dialects.op import tensor as type_of
from relay.dialects.relay import BinaryOp, CompareOp, ReduceOp, UnaryOp
from relay.frontend.tflite.builder import Importer, numpy_type
from relay.frontend.tflite.node import ALL_CODES, INDICES, Node
from relay.frontend.tflite.operators.reduce import reduced, reduction
from relay.frontend.tflite.table import ANY, operator

NUMBERS = ("FLOAT32", *INDICES)
INTEGERS = (*INDICES, "INT8", "UINT8", "INT16")

_FUNCTIONS: dict[str, type[UnaryOp]] = {"CEIL": relay.CeilOp, "COS": relay.CosOp, "SIN": relay.SinOp}
_BINARY: dict[str, tuple[type[BinaryOp], tuple[str, ...]]] = {
    "POW": (relay.PowerOp, ("FLOAT32", "INT32")),
    "FLOOR_MOD": (relay.FloorModOp, (*NUMBERS, "INT8", "INT16")),
    "BITWISE_XOR": (relay.BitwiseXorOp, INTEGERS),
    "LOGICAL_AND": (relay.LogicalAndOp, ("BOOL",)),
    "LOGICAL_OR": (relay.LogicalOrOp, ("BOOL",)),
}
"""The op for each operator, and the types that its operands and result may have."""
_COMPARISONS: dict[str, type[CompareOp]] = {
    "EQUAL": relay.EqualOp,
    "NOT_EQUAL": relay.NotEqualOp,
    "LESS": relay.LessOp,
    "LESS_EQUAL": relay.LessEqualOp,
    "GREATER": relay.GreaterOp,
    "GREATER_EQUAL": relay.GreaterEqualOp,
}
_REDUCTIONS: dict[str, tuple[type[ReduceOp], tuple[str, ...]]] = {
    "REDUCE_ANY": (relay.AnyOp, ("BOOL",)),
    "REDUCE_ALL": (relay.AllOp, ("BOOL",)),
    "REDUCE_PROD": (relay.ProdOp, NUMBERS),
}


def one_type(node: Node, types: tuple[str, ...]) -> None:
    """Raise Unsupported unless all inputs and outputs have one common type out of these."""
    every = [*node.inputs(), node.output()]
    if every[0].type not in types or any(tensor.type != every[0].type for tensor in every):
        raise node.refuse_types(*every)


@operator(*_FUNCTIONS, versions=(1, 1), inputs=(1, 1))
def function(importer: Importer, node: Node) -> list[SSAValue]:
    one_type(node, ("FLOAT32",))
    return [importer.emit(_FUNCTIONS[node.operator.kind], [importer.value(node.input(0))]).result]


@operator("SIGN", versions=(1, 2), inputs=(1, 1))
def sign(importer: Importer, node: Node) -> list[SSAValue]:
    one_type(node, ("FLOAT32", "INT32"))
    return [importer.emit(relay.SignOp, [importer.value(node.input(0))]).result]


@operator("SQUARE", versions=(1, 1), inputs=(1, 1))
def square(importer: Importer, node: Node) -> list[SSAValue]:
    one_type(node, ("FLOAT32",))
    value = importer.value(node.input(0))
    return [importer.emit(relay.MultiplyOp, [value, value]).result]


@operator("ROUND", versions=(1, 1), inputs=(1, 1))
def round_(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ROUND, halves to even: if x is half-way between two integers, the result is `2 * round(x / 2)`."""
    one_type(node, ("FLOAT32",))
    x = importer.value(node.input(0))
    half, two = importer.scalar(0.5, x), importer.scalar(2.0, x)
    rest = importer.emit(relay.SubtractOp, [x, importer.emit(relay.FloorOp, [x]).result]).result
    tie = importer.emit(relay.EqualOp, [rest, half]).result
    halved = importer.emit(relay.RoundOp, [importer.emit(relay.MultiplyOp, [x, half]).result]).result
    even = importer.emit(relay.MultiplyOp, [halved, two]).result
    return [importer.emit(relay.WhereOp, [tie, even, importer.emit(relay.RoundOp, [x]).result]).result]


@operator("GELU", versions=(1, 2), inputs=(1, 1))
def gelu(importer: Importer, node: Node) -> list[SSAValue]:
    one_type(node, ("FLOAT32",))
    approximate = BoolAttr.from_bool(node.flag("approximate"))
    return [importer.emit(relay.GeluOp, [importer.value(node.input(0))], {"approximate": approximate}).result]


@operator("LOGICAL_NOT", versions=(1, 1), inputs=(1, 1))
def logical_not(importer: Importer, node: Node) -> list[SSAValue]:
    one_type(node, ("BOOL",))
    return [importer.emit(relay.LogicalNotOp, [importer.value(node.input(0))]).result]


@operator(*_BINARY, versions=(1, 2), inputs=(2, 2))
def binary(importer: Importer, node: Node) -> list[SSAValue]:
    op, types = _BINARY[node.operator.kind]
    one_type(node, types)
    return [importer.emit(op, [importer.value(tensor) for tensor in node.inputs()]).result]


@operator("RIGHT_SHIFT", versions=(1, 1), inputs=(2, 2))
def right_shift(importer: Importer, node: Node) -> list[SSAValue]:
    """Import RIGHT_SHIFT, with the shift clamped to at least 0 and at most the number of bits minus one."""
    one_type(node, INTEGERS)
    value, amount = (importer.value(tensor) for tensor in node.inputs())
    element = importer.element(node.input(0))
    last = numpy_type(node.input(0)).itemsize * 8 - 1
    bounds: dict[str, Attribute] = {"a_min": scalar_attr(0, element), "a_max": scalar_attr(last, element)}
    return [importer.emit(relay.RightShiftOp, [value, importer.emit(relay.ClipOp, [amount], bounds).result]).result]


@operator("ATAN2", versions=(1, 1), inputs=(2, 2))
def atan2(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ATAN2: the angle of (x, y), `atan(y / x)` plus or minus half a turn if x is negative, or a quarter turn if
    it is 0."""
    one_type(node, ("FLOAT32",))
    y, x = (importer.value(tensor) for tensor in node.inputs())
    zero = importer.scalar(0.0, x)

    def choose(compare: type[CompareOp], value: SSAValue, first: SSAValue, second: SSAValue) -> SSAValue:
        return importer.emit(relay.WhereOp, [importer.emit(compare, [value, zero]).result, first, second]).result

    near = importer.emit(relay.AtanOp, [importer.emit(relay.DivideOp, [y, x]).result]).result
    turn = choose(relay.LessOp, y, importer.scalar(-math.pi, x), importer.scalar(math.pi, x))
    straight = choose(relay.GreaterOp, y, importer.scalar(math.pi / 2, x), zero)
    straight = choose(relay.LessOp, y, importer.scalar(-math.pi / 2, x), straight)
    behind = importer.emit(relay.AddOp, [near, turn]).result
    return [choose(relay.EqualOp, x, straight, choose(relay.LessOp, x, behind, near))]


@operator(*_COMPARISONS, versions=(1, 2), inputs=(2, 2))
def compare(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a comparison of numbers, or of 16-bit quantized values as plain integers; booleans are only compared for
    equality."""
    lhs, rhs = node.inputs()
    types = (*NUMBERS, "BOOL") if node.operator.kind in ("EQUAL", "NOT_EQUAL") else (*NUMBERS, "INT16")
    if lhs.type not in types or lhs.type != rhs.type or node.output().type != "BOOL":
        raise node.refuse_types(lhs, rhs, node.output())
    return [importer.emit(_COMPARISONS[node.operator.kind], [importer.value(lhs), importer.value(rhs)]).result]


@operator("SELECT", "SELECT_V2", versions=(1, 4), inputs=(3, 3))
def select(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SELECT and SELECT_V2; quantized values must have one scale. For SELECT, a vector of conditions applies
    along the first axis."""
    condition, first, second = node.inputs()
    if condition.type != "BOOL" or first.type != second.type or first.type != node.output().type:
        raise node.refuse_types(condition, first, second, node.output())
    if first.type in ALL_CODES:
        node.same_codes(first, second, node.output())
    chosen = importer.value(condition)
    if node.operator.kind == "SELECT" and len(condition.shape) == 1 < len(first.shape):
        chosen = importer.reshape(chosen, [condition.shape[0], *[1] * (len(first.shape) - 1)])
    return [importer.emit(relay.WhereOp, [chosen, importer.value(first), importer.value(second)]).result]


@operator("ADD_N", versions=(1, 1), inputs=(1, ANY))
def add_n(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ADD_N: the operands are added one after the other."""
    one_type(node, NUMBERS)
    total, *others = [importer.value(tensor) for tensor in node.inputs()]
    if any(type_of(value) != type_of(total) for value in others):
        raise node.malformed("the inputs differ in shape")
    for value in others:
        total = importer.emit(relay.AddOp, [total, value]).result
    return [total]


@operator(*_REDUCTIONS, versions=(1, 2), inputs=(2, 2))
def reduce(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a reduction; the product of booleans is whether all are true."""
    op, types = _REDUCTIONS[node.operator.kind]
    data, out = node.input(0), node.output()
    if data.type == "BOOL":
        op, types = (relay.AnyOp if op is relay.AnyOp else relay.AllOp), ("BOOL",)
    if data.type not in types or data.type != out.type:
        raise node.refuse_types(data, out)
    return [importer.emit(op, [reduced(importer, node)], reduction(node)).result]


@operator("CUMSUM", versions=(1, 1), inputs=(2, 2))
def cumsum(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CUMSUM: from the end if `reverse`, without the element itself if `exclusive`."""
    data, out = node.input(0), node.output()
    if data.type not in NUMBERS or data.type != out.type:
        raise node.refuse_types(data, out)
    axes = node.axes(node.input(1), len(data.shape))
    if len(axes) != 1:
        raise node.malformed(f"has {len(axes)} axes")
    turn: dict[str, Attribute] = {"axis": ints(axes)}
    value = importer.value(data)
    if node.flag("reverse"):
        value = importer.emit(relay.ReverseOp, [value], turn).result
    properties: dict[str, Attribute] = {
        "axis": IntegerAttr(axes[0], i64),
        "exclusive": BoolAttr.from_bool(node.flag("exclusive")),
    }
    value = importer.emit(relay.CumsumOp, [value], properties).result
    return [importer.emit(relay.ReverseOp, [value], turn).result if node.flag("reverse") else value]
