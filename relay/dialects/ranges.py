"""Verify ranges of quantization parameters: zero points and clamps against the type of the codes, multipliers and
shifts."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import DenseResourceAttr, IntegerAttr, IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from relay.dialects.attributes import to_numpy

ZERO_POINT, SHIFT, MULTIPLIER, CLAMP = ("zero_point", "zero_points"), "shift", "multiplier", ("min", "max")
HOLDERS = {
    "input": ("input", "data", "inputs", "tensor_a"),
    "kernel": ("kernel", "tensor_b"),
    "output": ("result",),
    "hidden": ("hidden_state",),
    "": ("input", "result"),
}
"""The operands or results to whose codes a zero point belongs, by the prefix of the zero point's name (`input` of
`input_zero_point`). A prefix that is missing here is itself the name of an operand."""


@cache
def _parameters(cls: type[IRDLOperation]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The properties of an op that have a range, each with the operands or results whose type gives that range."""
    definition = cls.get_irdl_definition()
    values = {name for name, _ in (*definition.operands, *definition.results)}
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in definition.properties:
        if name.endswith(ZERO_POINT):
            prefix = name.removesuffix("s").removesuffix("zero_point").removesuffix("_")
            found.append((name, tuple(each for each in HOLDERS.get(prefix, (prefix,)) if each in values)))
        elif name in CLAMP and {"multiplier", "output_zero_point"} <= definition.properties.keys():
            found.append((name, ("result",)))
        elif name.endswith((SHIFT, MULTIPLIER)) and name != "real_multiplier":
            found.append((name, ()))
    return tuple(found)


def limits(type: IntegerType) -> tuple[int, int]:
    """The smallest and largest value of an integer type; signless types count as signed."""
    width = type.width.data
    if type.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << width - 1), (1 << width - 1) - 1


def check_ranges(op: IRDLOperation) -> None:
    """Raise VerifyException for a zero point outside the range of its codes, a clamp that excludes all codes, a shift
    outside -31..31 or a multiplier outside 0..2^31-1."""
    for name, holders in _parameters(type(op)):
        attr = op.properties.get(name)
        if attr is None or isinstance(attr, DenseResourceAttr) and not hasattr(attr, "array"):
            continue
        least, most = _extremes(attr)
        if name in CLAMP:
            low, high = _range_of(op, holders)
            if name == "min" and least > high or name == "max" and most < low:
                raise VerifyException(f"{op.name}: {name} {least} leaves no code of {low}..{high}")
            continue
        if name.endswith(SHIFT):
            low, high = -31, 31
        elif name.endswith(MULTIPLIER):
            low, high = 0, (1 << 31) - 1
        else:
            low, high = _range_of(op, holders)
        if least < low or most > high:
            wrong = least if least < low else most
            raise VerifyException(f"{op.name}: {name} {wrong} is outside {low}..{high}")


def _extremes(attr: Attribute) -> tuple[int, int]:
    if isinstance(attr, IntegerAttr):
        return attr.value.data, attr.value.data
    numbers = to_numpy(attr)
    return (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)


def _range_of(op: Operation, holders: tuple[str, ...]) -> tuple[int, int]:
    """The range of the first of these operands or results that has an integer type."""
    for name in holders:
        value: SSAValue | tuple[SSAValue, ...] = getattr(op, name)
        for each in (value,) if isinstance(value, SSAValue) else value:
            if isa(each.type, TensorType[IntegerType]):
                return limits(each.type.element_type)
    return limits(IntegerType(64))
