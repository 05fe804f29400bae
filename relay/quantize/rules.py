"""Rules for float ops: which of them have an integer form, and which of their values share a scale."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import Operation, SSAValue

from relay.byoc.regions import constant_of
from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import Origin, TensorOp, shape
from relay.quantize.layers import clamp_bounds, is_float, only_user
from relay.quantize.parameters import FIXED

BINARY = (relay.AddOp, relay.SubtractOp, relay.MultiplyOp)
CURVES = (relay.SoftmaxOp, relay.SigmoidOp, relay.TanhOp)
"""Ops for whose 8-bit result TFLite's quantization specification prescribes the scale and zero point."""
EIGHT_BITS = (*CURVES, relay.SumOp, relay.Resize2dOp)
"""Ops that have no form on 16-bit quantized values."""


def mean_of(total: Operation) -> Operation | None:
    """The division (or multiplication by the reciprocal) after a sum that makes it a mean; None if the sum is no
    mean."""
    if not isinstance(total, relay.SumOp) or not is_float(total.input):
        return None
    after = only_user(total.result)
    count = prod(shape(total.input)[axis] for axis in total.axes())
    if isinstance(after, relay.DivideOp | relay.MultiplyOp) and after.lhs is total.result:
        by = constant_of(after.rhs)
        wanted = float(count) if isinstance(after, relay.DivideOp) else float(np.float32(1 / max(count, 1)))
        if by is not None and by.size == 1 and float(by.reshape(())) == wanted and by.ndim <= len(shape(total.result)):
            return after
    return None


def fused_clamp(op: Operation) -> Operation | None:
    """The clamp after a sum, difference or product, if it is the only reader of the result; otherwise None."""
    if not isinstance(op, BINARY) or clamp_bounds(op) is not None:
        return None
    after = only_user(op.result)
    return after if clamp_bounds(after) is not None and after is not None and after.operands[0] is op.result else None


def same_scale(op: Operation) -> tuple[SSAValue, ...]:
    """The operands that share the scale of the op's result."""
    if not isinstance(op, TensorOp) or computes(op) is not None or clamp_bounds(op) is not None:
        return ()
    return op.data_operands()


def computes(op: TensorOp) -> str | None:
    """The reason why an op's quantized result does not keep the scale of its operands; None if it does."""
    # only these averages are rounded to the nearest quantized value
    means = isinstance(op, relay.AvgPool2dOp | relay.Resize2dOp)
    if op.origin is Origin.COMPUTED or (op.origin is Origin.AVERAGED and not means):
        return f"{op.name} has no form on codes"
    if len(op.results) != 1:
        return "it has several results"
    return None


def refusal(op: Operation, dtype: str) -> str | None:
    """The reason why an op that belongs to no convolution or matrix product cannot be computed on quantized values of
    the type `dtype`; None if it can."""
    if dtype == "int16" and isinstance(op, EIGHT_BITS):
        return f"{op.name} has no form on 16-bit codes"
    if isinstance(op, BINARY):
        constants = [constant_of(value) is not None for value in (op.lhs, op.rhs)]
        return "its operands are no float32" if not is_float(op.lhs) else "it is constant" if all(constants) else None
    if isinstance(op, relay.SoftmaxOp) and not op.along_last:
        return "it is along another axis than the last"
    if clamp_bounds(op) is not None or isinstance(op, CURVES):
        return None if is_float(op.operands[0]) else "its operand is no float32"
    if isinstance(op, relay.SumOp):
        return None if mean_of(op) is not None else "a sum has no form on codes; a mean has"
    if isinstance(op, relay.ArgOp):
        return None if is_float(op.input) else "its operand is no float32"
    if isinstance(op, TensorOp) and any(float(to_numpy(op.properties[name])) != 0.0 for name in op.FILLS):
        return "it pads with another number than 0"
    if isinstance(op, relay.Resize2dOp) and op.coordinate_transformation_mode is not None:
        return "resizing by Relay's rules has no form on codes"
    why = computes(op) if isinstance(op, TensorOp) else f"{op.name} has no form on codes"
    if why is not None:
        return why
    if any(not is_float(value) or constant_of(value) is not None for value in same_scale(op)):
        return "an operand is constant, or no float32"
    return None


def data_operands(op: Operation) -> Sequence[SSAValue]:
    """The float operands that are to be quantized and are computed at run time."""
    data = op.data_operands() if isinstance(op, TensorOp) else op.operands
    return [value for value in data if is_float(value) and constant_of(value) is None]


def fixed(op: Operation) -> bool:
    """Whether TFLite's quantization specification prescribes the scale of the op's result, as for softmax."""
    return op.name in FIXED
