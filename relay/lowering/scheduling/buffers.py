"""Memref types, typed."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue


def is_buffer(value: SSAValue) -> bool:
    """Whether the value is a memref (and no scalar)."""
    return isinstance(value.type, MemRefType)


def type_of(value: SSAValue) -> MemRefType[Attribute]:
    """The memref's type."""
    type: Attribute = value.type
    if not isinstance(type, MemRefType):
        raise TypeError(f"{type} is no memref")
    return cast(MemRefType[Attribute], type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The memref's shape."""
    return type_of(value).get_shape()
