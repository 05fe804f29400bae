"""Reasons to refuse ops that several external compilers have in common: an element type, scales per channel, a divisor
that may be 0, a sum that is no mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from relay.byoc.quantized import dtype
from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import rank, shape, tensor

FLOAT = "float32"
CODES = ("int8", "uint8")


def type_refusal(op: Operation, *allowed: str) -> str | None:
    """The reason why an op is not supported, if the element type of an operand or result is not one of those named;
    else None."""
    for value in (*op.operands, *op.results):
        if dtype(value).name not in allowed:
            return f"it computes with {dtype(value)}"
    return None


def axes_refusal(values: Sequence[SSAValue], most: int) -> str | None:
    """The reason why an op is not supported, if one of its values has more than `most` axes; else None."""
    return f"it has more than {most} axes" if any(rank(value) > most for value in values) else None


def element_refusal(value: SSAValue, doing: str, *allowed: str) -> str | None:
    """Return the reason why an op is not supported if the element type of `value`, its operand or result, is not one of
    `allowed`; else None. `doing` is what the op does with the value, for the message, such as "compares"."""
    return None if dtype(value).name in allowed else f"it {doing} {dtype(value)}"


def divisor_refusal(op: relay.BinaryOp) -> str | None:
    """The reason why an integer division is not supported: a library fails at a divisor of 0, where relay gives 0. None
    for floats, and for a constant without zeros."""
    divisor = constant_of(op.rhs)
    known = dtype(op.rhs).kind == "f" or (divisor is not None and divisor.all())
    return None if known else "its divisor may be 0"


def scale_refusal(op: qnn.QuantizeOp | qnn.DequantizeOp) -> str | None:
    """The reason why an op is not supported, if it has a scale per channel; else None."""
    return "it has a scale per channel" if to_numpy(op.scale).size != 1 else None


def quantize_refusal(op: qnn.QuantizeOp | qnn.DequantizeOp) -> str | None:
    """The reason why an op is not supported, if it does not convert between float32 and codes with one scale; else
    None."""
    return scale_refusal(op) or type_refusal(op, FLOAT, *CODES)


def mean_refusal(ops: Sequence[Operation]) -> str | None:
    """The reason why these two ops are not a sum and a division that compute a mean of floats; None if they are."""
    total, quotient = ops
    if not isinstance(total, relay.SumOp) or not isinstance(quotient, relay.DivideOp):
        return "it is no mean"
    if dtype(total.input).name != FLOAT:
        return f"it is a mean of {tensor(total.input).element_type}"
    divisor = constant_of(quotient.rhs)
    count = math.prod(shape(total.input)[axis] for axis in total.axes())
    if divisor is None or divisor.size != 1 or divisor.ndim > rank(total.result) or divisor.reshape(()) != count:
        return "its divisor is not the number of its elements"
    return None
