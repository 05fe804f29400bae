"""The type of an op's meaning (a function of numpy arrays), and helpers shared by all meanings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.element_types import converted, is_extended, wider
from relay.dialects.op import tensor

Meaning = Callable[..., Array | tuple[Array, ...]]
"""`f(op, *operands)`: returns the result's array, or a tuple of arrays if the op has several results."""

Meanings = Mapping[type[Operation], Meaning]
"""A mapping from op class to the function that computes such an op's results in numpy."""

Op = TypeVar("Op", bound=Operation)


def ops_of(kind: type[Op]) -> list[type[Op]]:
    """The ops of `relay` that are of the class `kind`."""
    return [op for op in relay.Relay.operations if issubclass(op, kind)]


EXACT = relay.CastOp | relay.ReinterpretOp | relay.ReshapeOp | relay.TransposeOp
"""Ops whose meanings accept elements of any type, including types that numpy lacks."""


def apply(meaning: Meaning, op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Compute one op with `meaning`; return a tuple of arrays, also for results of rank 0.

    Operands of types that numpy lacks are converted to float32 or 8-bit integers, and the results rounded or wrapped
    once.
    """
    narrow = any(is_extended(operand.dtype) for operand in operands) and not isinstance(op, EXACT)
    results = meaning(op, *map(wider, operands)) if narrow else meaning(op, *operands)
    arrays = tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)
    if not narrow:
        return arrays
    types = [tensor(result).element_type for result in op.results]
    return tuple(np.asarray(converted(array, dtype_of(type))) for array, type in zip(arrays, types, strict=True))


def along(parameter: Array, axis: int, rank: int) -> Array:
    """Reshape a vector so that it lies along `axis` and broadcasts against a tensor of rank `rank`; arrays of any rank
    but 1 are returned unchanged."""
    if parameter.ndim != 1:
        return parameter
    shape = [1] * rank
    shape[axis] = parameter.size
    return parameter.reshape(shape)


def padded(array: Array, widths: Sequence[tuple[int, int]], **how: Any) -> Array:
    """The array in C order, with (before, after) more elements along each axis as `numpy.pad` makes them; not copied if
    all widths are 0. The order decides in which order float sums are added."""
    array = np.asarray(array, order="C")
    return np.pad(array, widths, **how) if any(map(any, widths)) else array


def cell_slices(
    place: Sequence[int], counts: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[slice, ...]:
    """An index into data [n, spatial..., c] that selects the elements under the window's cell at index `place`, for all
    window positions; `counts` is the number of positions along each spatial axis."""
    numbers = zip(place, counts, strides, dilation, strict=True)
    return (slice(None), *(slice(i * d, i * d + (n - 1) * s + 1, s) for i, n, s, d in numbers))


def number(attr: IntegerAttr[Any] | None) -> int:
    """The value of an optional integer property; 0 if it is absent."""
    return 0 if attr is None else attr.value.data


def parameter(attr: Attribute, axis: int, rank: int) -> Array:
    """A quantization parameter as an array: a scalar, or a vector reshaped along `axis` that broadcasts against a
    tensor of rank `rank`."""
    return along(to_numpy(attr), axis, rank)
