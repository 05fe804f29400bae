"""Expansions of mean and variance to sums and divisions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import is_integer, shape, tensor
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions


def divided(new: Expansion, op: relay.ReducingOp, x: SSAValue, less: int = 0) -> SSAValue:
    """The sum of x over the op's axes, divided by the number of summed elements minus `less`."""
    total = new.value(relay.SumOp, x, properties={"axis": ints(op.axes()), "keepdims": op.keepdims})
    count = prod(shape(op.input)[axis] for axis in op.axes()) - less
    return new.value(relay.DivideOp, total, new.constant_like(count, x))


def mean(new: Expansion, op: relay.MeanOp) -> Sequence[SSAValue]:
    if not op.axes():
        return [op.input]
    type = tensor(op.input).element_type
    if isinstance(type, AnyFloat) or is_integer(type) and type.width.data >= 32:
        return [divided(new, op, op.input)]
    return [new.cast(divided(new, op, new.cast(op.input, i32)), type)]


def variance(new: Expansion, op: relay.VarianceOp) -> Sequence[SSAValue]:
    centred = new.value(relay.SubtractOp, op.input, op.mean)
    return [divided(new, op, new.value(relay.MultiplyOp, centred, centred), int(bool(op.unbiased.value.data)))]


EXPANSIONS: Expansions = {
    relay.MeanOp: mean,
    relay.VarianceOp: variance,
}
