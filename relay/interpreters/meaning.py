"""What the meaning of an op is: a function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.element_types import converted, is_extended, wider
from relay.dialects.op import tensor

Meaning = Callable[..., Array | tuple[Array, ...]]
"""`f(op, *operands)`: the result's array, or a tuple of them for an op of several results."""

Meanings = Mapping[type[Operation], Meaning]
"""A row per op."""

EXACT = relay.CastOp | relay.ReinterpretOp | relay.ReshapeOp | relay.TransposeOp
"""Ops whose meanings take numbers of any dtype as they are."""


def apply(meaning: Meaning, op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """The results of one op, as arrays also where they have rank 0.

    Numbers of dtypes that numpy lacks are computed with in float32, or in 8 bits, and rounded (or wrapped) once.
    """
    narrow = any(is_extended(operand.dtype) for operand in operands) and not isinstance(op, EXACT)
    results = meaning(op, *map(wider, operands)) if narrow else meaning(op, *operands)
    arrays = tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)
    if not narrow:
        return arrays
    types = [tensor(result).element_type for result in op.results]
    return tuple(np.asarray(converted(array, dtype_of(type))) for array, type in zip(arrays, types, strict=True))


def along(parameter: Array, axis: int, rank: int) -> Array:
    """A scalar or a vector along `axis`, shaped so that it broadcasts against a tensor of that rank; another shape as
    it is."""
    if parameter.ndim != 1:
        return parameter
    shape = [1] * rank
    shape[axis] = parameter.size
    return parameter.reshape(shape)


def number(attr: IntegerAttr[Any] | None) -> int:
    """An optional integer property; 0 if absent."""
    return 0 if attr is None else attr.value.data


def parameter(attr: Attribute, axis: int, rank: int) -> Array:
    """A quantisation parameter's numbers, shaped so that they broadcast against a tensor of that rank."""
    return along(to_numpy(attr), axis, rank)
