"""Decides how many neighbours along the last dimension a thread computes at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from relay.dialects.attributes import dtype_of
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.scheduling.affine import coefficients
from relay.lowering.scheduling.body import can_lift
from relay.lowering.scheduling.padding import Padding
from relay.lowering.shaped import buffer_of, is_buffer, layout, shape_of

BYTES = 16
"""The largest number of bytes that one instruction of a thread can load or store."""


class Narrow(Exception):
    """Raised where elements cannot be computed several at a time."""


def lanes_of(nest: Nest, producers: Mapping[SSAValue, Producer], least: int) -> tuple[int, int]:
    """Return two numbers of neighbouring elements that one thread computes: the largest possible one, and that one
    halved until at least `least` threads have work or an access has only 4 bytes. Both are 1 if neighbours are not
    contiguous in every buffer that is read or written."""
    order = nest.output_dims
    if not order:
        return 1, 1
    try:
        accesses = [*wide_accesses(nest, producers, order[-1]), *map(buffer_of, nest.op.outputs)]
    except Narrow:
        return 1, 1
    return widest(nest.shape, accesses, least)


def lanes_of_copy(copy: Padding, least: int) -> tuple[int, int]:
    """Return two numbers of neighbouring elements that one thread copies at once, for a padded copy: the most that one
    access can have, and that number halved until at least `least` threads have work, as far as possible. Both are 1 if
    the last dimension is padded."""
    if not copy.shape or pads_last(copy):
        return 1, 1
    return widest(copy.shape, [buffer_of(copy.buffer), buffer_of(copy.source)], least)


def pads_last(copy: Padding) -> bool:
    """Whether the last dimension is padded."""
    return bool(copy.low[-1]) or copy.shape[-1] != shape_of(copy.source)[-1]


def widest(shape: Sequence[int], accesses: Sequence[MemRefType], least: int) -> tuple[int, int]:
    """Return two numbers of elements that are neighbours along the last dimension: the most that one thread can access
    in each of the buffers `accesses` with one instruction; and that number halved until at least `least` threads have
    work, but not below 4 bytes per access."""
    size = min(dtype_of(type.element_type).itemsize for type in accesses)
    lanes = most = fitting(shape[-1], accesses, BYTES // size)
    while lanes > 1 and lanes * size > 4 and prod(shape) // lanes < least:
        lanes //= 2
    return most, lanes


def fitting(size: int, accesses: Sequence[MemRefType], most: int) -> int:
    """Return the largest of the numbers of lanes `most`, `most` / 2, `most` / 4, ... that divides the size of the
    dimension, and with which each of the buffers can be accessed."""
    while most > 1 and (size % most or not all(fits(type, most) for type in accesses)):
        most //= 2
    return most


def fits(type: MemRefType, lanes: int) -> bool:
    """Whether all rows (along the last dimension) of a buffer of this type are contiguous and start at a multiple of
    `lanes` elements."""
    strides, offset = layout(type)
    return bool(strides) and strides[-1] == 1 and all(s % lanes == 0 for s in strides[:-1]) and offset % lanes == 0


def wide_accesses(nest: Nest, producers: Mapping[SSAValue, Producer], last: int) -> Iterator[MemRefType]:
    """Yield the types of the buffers of which a thread reads vectors of neighbours, if it computes several neighbours
    along dimension `last`. Raises Narrow if the nest cannot be computed in vectors."""
    block = nest.op.body.block
    if not can_lift(block):
        raise Narrow
    for value, map, argument in zip(nest.op.inputs, nest.maps, block.args, strict=False):
        if any(argument.uses) and is_buffer(value.type) and is_wide(map, last):
            yield from reads(value, producers)


def reads(value: SSAValue, producers: Mapping[SSAValue, Producer]) -> Iterator[MemRefType]:
    """Yield the types of the buffers from which a thread reads vectors to compute neighbours along the value's last
    dimension. Raises Narrow if these cannot be computed in vectors."""
    match producers.get(value):
        case Padding() as padded:
            if pads_last(padded):
                raise Narrow
            yield from reads(padded.source, producers)
        case Nest() as nest:
            order: Sequence[int] | None = nest.output_dims
            assert order
            yield from wide_accesses(nest, producers, order[-1])
        case None:
            yield buffer_of(value)


def is_wide(map: AffineMap, last: int) -> bool:
    """Return True if dimension `last` is the map's last result and no other result depends on it, False if no result
    depends on it; raise Narrow otherwise."""
    results = list(map.results)
    for position, result in enumerate(results):
        if isinstance(result, AffineDimExpr) and result.position == last and position == len(results) - 1:
            continue
        linear = coefficients(result)
        if linear is None or linear[0].get(last, 0):
            raise Narrow
    return bool(results) and isinstance(results[-1], AffineDimExpr) and results[-1].position == last
