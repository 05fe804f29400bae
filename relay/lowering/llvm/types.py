"""The spelling of types and numbers in LLVM IR, and the layout of memrefs in memory."""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType
from xdsl.ir import Attribute

from relay.dialects.amx import TileType
from relay.dialects.attributes import dtype_of
from relay.dialects.op import is_integer
from relay.errors import Unsupported
from relay.lowering.shaped import is_buffer, is_vector, scalar_of

FLOATS: dict[type[Attribute], tuple[str, str]] = {
    BFloat16Type: ("bfloat", "bf16"),
    Float16Type: ("half", "f16"),
    Float32Type: ("float", "f32"),
    Float64Type: ("double", "f64"),
}
"""The name of each float type, and its name in mangled intrinsics."""


def type_name(type: Attribute) -> str:
    """Return the LLVM spelling of a type: `i32`, `float`, `<16 x i32>`, `ptr` for a memref, `i64` for an index,
    `x86_amx` for a tile. Raises Unsupported."""
    if is_vector(type):
        return f"<{lanes(type)} x {type_name(type.element_type)}>"
    if is_integer(type):
        return f"i{type.width.data}"
    if type.__class__ is IndexType:
        return "i64"
    if is_buffer(type):
        return "ptr"
    if type.__class__ in FLOATS:
        return FLOATS[type.__class__][0]
    if isinstance(type, TileType):
        return "x86_amx"
    raise Unsupported(f"llvm-ir: type {type}", "has no LLVM form here")


def lanes(type: Attribute) -> int:
    """Return the length of a vector; 1 for a scalar. Raises Unsupported for a vector of another rank than 1."""
    if not is_vector(type):
        return 1
    dims = type.get_shape()
    if len(dims) != 1:
        raise Unsupported(f"llvm-ir: type {type}", "is a vector of another rank than 1")
    return dims[0]


def suffix(type: Attribute) -> str:
    """Return the mangling of a type in an overloaded intrinsic: `v16i32`, `f32`."""
    if is_vector(type):
        return f"v{lanes(type)}{suffix(type.element_type)}"
    return FLOATS[type.__class__][1] if type.__class__ in FLOATS else type_name(type)


def literal(value: float | int | bool, type: Attribute) -> str:
    """Return a number as a literal of LLVM IR; floats by the bits of the equal double."""
    if type.__class__ in FLOATS:
        number = struct.unpack("<f", struct.pack("<f", value))[0] if isinstance(type, Float32Type) else float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if type_name(type) == "i1":
        return "true" if value else "false"
    return str(int(value))


def memory_type(name: str) -> str:
    """Return the type of a scalar or vector in memory: booleans are bytes."""
    return "i8" if name == "i1" else name.replace(" x i1>", " x i8>")


def alignment(type: Attribute) -> int:
    """Return the alignment in bytes that an access may assume: that of one element."""
    return dtype_of(scalar_of(type)).itemsize
