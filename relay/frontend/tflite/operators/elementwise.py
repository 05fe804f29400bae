"""Imports elementwise operators on plain numbers: functions, comparisons, logic, bitwise operators, selection, sums of
several tensors."""

from __future__ import annotations

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import TensorOp
from relay.dialects.op import tensor as type_of
from relay.dialects.relay import BinaryOp, CompareOp
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.functions import atan2
from relay.frontend.tflite.builder import Importer, numpy_type
from relay.frontend.tflite.node import ALL_CODES, FLOATS, INDICES, NUMBERS, Node
from relay.frontend.tflite.table import ANY, operator

INTEGERS = (*INDICES, "INT8", "UINT8", "INT16")

_UNARY: dict[str, tuple[type[TensorOp], tuple[str, ...]]] = {
    "ABS": (relay.AbsOp, ("FLOAT32", "INT32")),
    "CEIL": (relay.CeilOp, FLOATS),
    "COS": (relay.CosOp, FLOATS),
    "EXP": (relay.ExpOp, FLOATS),
    "FLOOR": (relay.FloorOp, FLOATS),
    "LOG": (relay.LogOp, FLOATS),
    "LOGICAL_NOT": (relay.LogicalNotOp, ("BOOL",)),
    "LOG_SOFTMAX": (relay.LogSoftmaxOp, FLOATS),
    "NEG": (relay.NegativeOp, NUMBERS),
    "RSQRT": (relay.RsqrtOp, FLOATS),
    "SIGN": (relay.SignOp, ("FLOAT32", "INT32")),
    "SIN": (relay.SinOp, FLOATS),
    "SQRT": (relay.SqrtOp, FLOATS),
}
_BINARY: dict[str, tuple[type[BinaryOp], tuple[str, ...]]] = {
    "POW": (relay.PowerOp, ("FLOAT32", "INT32")),
    "FLOOR_MOD": (relay.FloorModOp, (*NUMBERS, "INT8", "INT16")),
    "BITWISE_XOR": (relay.BitwiseXorOp, INTEGERS),
    "LOGICAL_AND": (relay.LogicalAndOp, ("BOOL",)),
    "LOGICAL_OR": (relay.LogicalOrOp, ("BOOL",)),
}
"""The op for each operator, and the types that its operands and result may have. LOG_SOFTMAX is along the last axis."""
_COMPARISONS: dict[str, type[CompareOp]] = {
    "EQUAL": relay.EqualOp,
    "NOT_EQUAL": relay.NotEqualOp,
    "LESS": relay.LessOp,
    "LESS_EQUAL": relay.LessEqualOp,
    "GREATER": relay.GreaterOp,
    "GREATER_EQUAL": relay.GreaterEqualOp,
}


@operator("CEIL", "COS", "LOGICAL_NOT", "SIN", versions=(1, 1), inputs=(1, 1))
@operator("EXP", "FLOOR", "LOG", "LOG_SOFTMAX", "NEG", "SIGN", "SQRT", versions=(1, 2), inputs=(1, 1))
@operator("RSQRT", versions=(1, 3), inputs=(1, 1))
@operator("ABS", versions=(1, 5), inputs=(1, 1))
def unary(importer: Importer, node: Node) -> list[SSAValue]:
    op, types = _UNARY[node.operator.kind]
    node.one_type(types)
    return [importer.call(op, importer.value(node.input(0)))]


@operator(*_BINARY, versions=(1, 2), inputs=(2, 2))
def binary(importer: Importer, node: Node) -> list[SSAValue]:
    op, types = _BINARY[node.operator.kind]
    node.one_type(types)
    return [importer.call(op, *(importer.value(tensor) for tensor in node.inputs()))]


@operator("RIGHT_SHIFT", versions=(1, 1), inputs=(2, 2))
def right_shift(importer: Importer, node: Node) -> list[SSAValue]:
    """Import RIGHT_SHIFT, with the shift clamped to at least 0 and at most the number of bits minus one."""
    node.one_type(INTEGERS)
    value, amount = (importer.value(tensor) for tensor in node.inputs())
    last = numpy_type(node.input(0)).itemsize * 8 - 1
    return [importer.call(relay.RightShiftOp, value, importer.clip(amount, 0, last))]


@operator("ATAN2", versions=(1, 1), inputs=(2, 2))
def angle(importer: Importer, node: Node) -> list[SSAValue]:
    node.one_type(FLOATS)
    y, x = (Scalar(importer, importer.value(tensor)) for tensor in node.inputs())
    return [atan2(y, x).value]


@operator(*_COMPARISONS, versions=(1, 5), inputs=(2, 2))
def compare(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a comparison of numbers, or of 16-bit quantized values as plain integers; booleans are only compared for
    equality."""
    lhs, rhs = node.inputs()
    types = (*NUMBERS, "BOOL") if node.operator.kind in ("EQUAL", "NOT_EQUAL") else (*NUMBERS, "INT16")
    if lhs.type not in types or lhs.type != rhs.type or node.output().type != "BOOL":
        raise node.refuse_types(lhs, rhs, node.output())
    return [importer.call(_COMPARISONS[node.operator.kind], importer.value(lhs), importer.value(rhs))]


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
    return [importer.call(relay.WhereOp, chosen, importer.value(first), importer.value(second))]


@operator("ADD_N", versions=(1, 1), inputs=(1, ANY))
def add_n(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ADD_N: the operands are added one after the other."""
    node.one_type(NUMBERS)
    total, *others = [importer.value(tensor) for tensor in node.inputs()]
    if any(type_of(value) != type_of(total) for value in others):
        raise node.malformed("the inputs differ in shape")
    for value in others:
        total = importer.call(relay.AddOp, total, value)
    return [total]


@operator("CUMSUM", versions=(1, 1), inputs=(2, 2))
def cumsum(importer: Importer, node: Node) -> list[SSAValue]:
    """Import CUMSUM: from the end if `reverse`, without the element itself if `exclusive`."""
    data, out = node.input(0), node.output()
    node.one_type(NUMBERS, data, out)
    axes = node.axes(node.input(1), len(data.shape))
    if len(axes) != 1:
        raise node.malformed(f"has {len(axes)} axes")
    value, turned = importer.value(data), node.flag("reverse")
    value = importer.call(relay.ReverseOp, value, axis=axes) if turned else value
    value = importer.call(relay.CumsumOp, value, axis=axes[0], exclusive=node.flag("exclusive"))
    return [importer.call(relay.ReverseOp, value, axis=axes) if turned else value]
