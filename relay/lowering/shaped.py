"""Functions on the types of memrefs and vectors: checks for them, sizes, strides. xDSL's classes of these types are
generic in the element type; `Buffer` and `Vector` stand for any element type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import dropwhile
from math import prod
from typing import NoReturn, TypeGuard, get_args

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects.attributes import dtype_of
from relay.errors import Unsupported
from relay.transforms.location import place

Buffer = MemRefType[Attribute]
Vector = VectorType[Attribute]
VIEWS = memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp
"""Ops that give a buffer, or a part of it, another type."""
KINDS_OF_VIEWS = frozenset(get_args(VIEWS))


class UnknownSize(Unsupported):
    """Raised where a size that is known only at run time is used as a number."""


class Extent(int):
    """A size known only at run time: `factor` times the length of the sequence.

    The integer itself is the largest possible size. Buffers have this size, and strides are computed from it. Loops
    over the size end at the run-time size (`LoopBuilder.loop`). Arithmetic that would lose the factor raises
    UnknownSize, so that a schedule for known sizes cannot mistake the maximum for the size.
    """

    factor: int

    def __new__(cls, maximum: int, factor: int = 1) -> Extent:
        self = super().__new__(cls, maximum)
        self.factor = factor
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and int(self) == int(other) and self.factor == other.factor

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.factor, Extent))

    def __mul__(self, other: int) -> int:
        return self._refuse(other) if isinstance(other, Extent) else Extent(int(self) * other, self.factor * other)

    def __rmul__(self, other: int) -> int:
        return self if other == 1 else self._refuse(other)

    def _refuse(self, *_: object) -> NoReturn:
        raise UnknownSize("schedule", "computes with a size that is known at run time only")

    __add__ = __radd__ = __sub__ = __rsub__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __divmod__ = __rdivmod__ = __truediv__ = __rtruediv__ = __neg__ = _refuse


def at_most(size: int) -> int:
    """Return the size as an integer; for one known only at run time, its maximum."""
    return int(size)


def elements(shape: tuple[int, ...]) -> int:
    """Return the number of elements from the first to the last one in memory. If only the leading size is an `Extent`
    (known only at run time), the result is an `Extent`. If another size is an `Extent`, the result is computed from the
    maximum sizes, because shorter rows leave gaps between them."""
    return prod(shape) if leads(shape) else prod(map(int, shape))


def leads(shape: tuple[int, ...]) -> bool:
    """Whether a buffer of this shape is contiguous in memory for all run-time sizes. Memory is allocated for the
    largest sizes, so this holds if all dimensions before one with a size known only at run time have size 1."""
    inner = dropwhile(lambda size: size == 1, shape)
    return not any(isinstance(size, Extent) for size in [*inner][1:])


@cache
def vector_of(element: Attribute, lanes: int) -> Vector:
    """Return the type of a one-dimensional vector; cached, because creating it costs as much as an op."""
    return VectorType(element, [lanes])


@cache
def memref_type(element: Attribute, *shape: int) -> Buffer:
    """Return the type of a memref without a layout, cached."""
    return MemRefType(element, shape)


def grouped(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """Return the property `reassociation` of ops that collapse or expand groups of dimensions."""
    return ArrayAttr([ArrayAttr([IntegerAttr(i, i64) for i in group]) for group in groups])


def is_buffer(type: Attribute) -> TypeGuard[Buffer]:
    """Whether the type is a ranked memref. (`isinstance` on attribute classes takes ten times as long.)"""
    return type.__class__ is MemRefType


def require_static(op: Operation) -> None:
    """Raise Unsupported for an op on a buffer with a size that its type does not state."""
    for value in op.operands:
        if is_buffer(value.type) and DYNAMIC_INDEX in value.type.get_shape():
            raise Unsupported(place(op), f"has the dynamic shape {value.type}", "give all buffers static shapes")


def is_vector(type: Attribute) -> TypeGuard[Vector]:
    """Whether the type is a vector."""
    return type.__class__ is VectorType


def buffer_of(value: SSAValue) -> Buffer:
    """Return the type of a value that is a memref. Raises ValueError for other values."""
    type = value.type
    if not is_buffer(type):
        raise ValueError(f"expected a memref, got {type}")
    return type


def root(value: SSAValue) -> SSAValue:
    """Return the buffer of which the value is a view or reshape, or the value itself."""
    while (op := value.owner).__class__ in KINDS_OF_VIEWS and isinstance(op, VIEWS):
        value = op.operands[0]
    return value


def size_of(type: Buffer) -> int:
    """Return the size in bytes of a static memref."""
    return prod(type.get_shape()) * dtype_of(type.element_type).itemsize


def layout(type: Buffer) -> tuple[list[int], int]:
    """Return the strides and the offset of a buffer, in elements. A view has the pointer of the buffer that it views,
    so the offset must be added to each address. Raises Unsupported if the layout is not static."""
    strides, offset = type.get_strides(), type.get_offset()
    known = [stride for stride in strides or () if stride is not None]
    if strides is None or len(known) != len(strides) or offset is None:
        raise Unsupported(f"llvm-ir: {type}", "has a layout that is not static")
    return known, offset


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a value that is a memref."""
    return buffer_of(value).get_shape()


def scalar_of(type: Attribute) -> Attribute:
    """Return the element type of a vector; any other type unchanged."""
    return type.element_type if is_vector(type) else type
