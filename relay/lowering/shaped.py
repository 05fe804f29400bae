"""The shaped types of levels 2 and 3, by kind: xDSL's classes are generic in their element type, checks are not."""

from __future__ import annotations

from functools import cache
from typing import TypeGuard

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, SSAValue

Buffer = MemRefType[Attribute]
Vector = VectorType[Attribute]


@cache
def vector_of(element: Attribute, lanes: int) -> Vector:
    """The type of a vector of one dimension, made once: making it costs as much as making an operation."""
    return VectorType(element, [lanes])


@cache
def memref_type(element: Attribute, *shape: int) -> Buffer:
    """The type of a memref without a layout, made once."""
    return MemRefType(element, shape)


def is_buffer(type: Attribute) -> TypeGuard[Buffer]:
    """Whether the type is a ranked memref. (`isinstance` asks classes of attributes, which takes ten times as long.)"""
    return type.__class__ is MemRefType


def is_vector(type: Attribute) -> TypeGuard[Vector]:
    """Whether the type is a vector."""
    return type.__class__ is VectorType


def buffer_of(value: SSAValue) -> Buffer:
    """The type of a value that is a memref."""
    type = value.type
    if not is_buffer(type):
        raise ValueError(f"expected a memref, got {type}")
    return type


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a value that is a memref."""
    return buffer_of(value).get_shape()


def scalar_of(type: Attribute) -> Attribute:
    """The element type of a vector; any other type as it is."""
    return type.element_type if is_vector(type) else type
