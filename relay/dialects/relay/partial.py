"""Partial evaluation of the small integer tensors that shapes are computed with, while sizes are unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul, sub
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from relay.dialects.attributes import Array, int_values, to_numpy
from relay.dialects.op import DYNAMIC, is_code, is_tensor, shape, tensor
from relay.dialects.relay.elementwise import AddOp, CastOp, FloorDivideOp, MaximumOp, MinimumOp, MultiplyOp, SubtractOp
from relay.dialects.relay.shape import ConcatenateOp, ConstantOp, ReshapeOp, StridedSliceOp, TakeOp, is_constant
from relay.dialects.relay.transform import ExpandDimsOp, SqueezeOp, StackOp
from relay.dialects.relay.unary import CopyOp, ShapeOfOp

Partial = Array
"""An object array of integers, with None for each unknown element."""
MOST = 1024
"""The largest number of elements of a tensor that is partially evaluated."""


def partial_value(value: SSAValue) -> Partial | None:
    """The elements of a small tensor of known shape, None for each unknown one; None if the tensor is not small or
    nothing is known."""
    return _value(value, {})


def known_value(value: SSAValue) -> Array | None:
    """The elements of a tensor as an array; None unless all are known."""
    if is_constant(value.owner):
        return to_numpy(value.owner.value)
    found = partial_value(value)
    return None if found is None or any(each is None for each in found.flat) else np.array(found.tolist())


def _value(value: SSAValue, done: dict[SSAValue, Partial | None]) -> Partial | None:
    if value not in done:
        done[value] = None
        small = is_tensor(value.type) and DYNAMIC not in shape(value) and np.prod(shape(value), dtype=int) <= MOST
        rule = _RULES.get(type(value.owner)) if small else None
        if rule is not None and isinstance(value.owner, Operation):
            operands = [_value(each, done) for each in value.owner.operands]
            found = rule(value.owner, *operands)
            done[value] = None if found is None else found.reshape(shape(value))
    return done[value]


def _constant(op: ConstantOp) -> Partial | None:
    return to_numpy(op.value).astype(object) if is_constant(op) else None


def _shape_of(op: ShapeOfOp, _: Partial | None) -> Partial:
    return np.array([None if size == DYNAMIC else size for size in shape(op.input)], object)


def _same(op: Operation, x: Partial | None) -> Partial | None:
    return x


def _cast(op: CastOp, x: Partial | None) -> Partial | None:
    wide = all(is_code(each, 32, 64) for each in (tensor(op.input).element_type, op.dtype))
    return x if wide else None


def _joined(op: ConcatenateOp | StackOp, *parts: Partial | None) -> Partial | None:
    """Concatenate or stack arrays in which None marks the elements that are unknown at compile time, along the first
    axis. An input that is None instead of an array counts as an array of None."""
    found = [
        np.full(shape(value), None, object) if part is None else part
        for value, part in zip(op.inputs, parts, strict=True)
    ]
    return np.concatenate(found) if isinstance(op, ConcatenateOp) and found[0].ndim == 1 else np.stack(found)


def _taken(op: TakeOp, x: Partial | None, indices: Partial | None) -> Partial | None:
    if x is None or indices is None or x.ndim != 1 or any(each is None for each in indices.flat):
        return None
    places = indices.astype(np.int64)
    inside = ((places >= 0) & (places < x.size)).all()
    return np.asarray(x[places], object) if inside else None


def _sliced(op: StridedSliceOp, x: Partial | None) -> Partial | None:
    if x is None or x.ndim != 1:
        return None
    (begin,), (end,), (stride,) = map(int_values, (op.begin, op.end, op.strides))
    return x[begin : None if end < 0 else end : stride]


def _each(function: Callable[[Any, Any], Any]) -> Callable[..., Partial | None]:
    """Lift a function of two integers to a function of an op and two object arrays in which None stands for an unknown
    integer. It works elementwise: an element is None if one of its inputs is, and the whole result if an operand is
    None."""

    def found(op: Operation, a: Partial | None, b: Partial | None) -> Partial | None:
        if a is None or b is None:
            return None
        pairs = np.broadcast(a, b)
        numbers = [function(x, y) if isinstance(x, int) and isinstance(y, int) else None for x, y in pairs]
        return np.array([*numbers, None], object)[:-1].reshape(pairs.shape)

    return found


_RULES: Mapping[type, Callable[..., Partial | None]] = {
    ConstantOp: _constant,
    ShapeOfOp: _shape_of,
    CopyOp: _same,
    CastOp: _cast,
    ReshapeOp: _same,
    ExpandDimsOp: _same,
    SqueezeOp: _same,
    ConcatenateOp: _joined,
    StackOp: _joined,
    TakeOp: _taken,
    StridedSliceOp: _sliced,
    AddOp: _each(add),
    SubtractOp: _each(sub),
    MultiplyOp: _each(mul),
    MaximumOp: _each(max),
    MinimumOp: _each(min),
    FloorDivideOp: _each(lambda a, b: a // b if b else None),
}
