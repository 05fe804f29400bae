"""The spelling of types and numbers in C."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType
from xdsl.ir import Attribute

from relay.dialects.op import is_integer
from relay.errors import Unsupported

FLOATS: dict[type[Attribute], str] = {Float32Type: "float", Float64Type: "double"}
INDEX_BITS = 32
TYPES = {
    "bool": "uint8_t",
    "float32": "float",
    "float64": "double",
    **{name: f"{name}_t" for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
}
"""The C types of the elements of arrays, by the names of their dtypes."""


def bits(type: Attribute) -> int:
    """Return the bits of an integer or index type; 0 for a float."""
    return INDEX_BITS if isinstance(type, IndexType) else type.width.data if is_integer(type) else 0


def type_name(type: Attribute) -> str:
    """Return the C spelling of a scalar type: integers are signed, a boolean is an `int`. Raises Unsupported."""
    if (width := bits(type)) in (1, 8, 16, 32, 64):
        return "int" if width == 1 else f"int{width}_t"
    if (name := FLOATS.get(type.__class__)) is None:
        raise Unsupported(f"c: numbers of type {type}", "have no type in C99", "cast them to f32, or integers")
    return name


def memory_name(type: Attribute) -> str:
    """Return the C spelling of an array element's type: booleans are bytes."""
    return "uint8_t" if bits(type) == 1 else type_name(type)


def range_of(type: Attribute) -> tuple[int, int]:
    """Return the lowest and the highest number of an integer type."""
    width = bits(type)
    return (0, 1) if width == 1 else (-(1 << width - 1), (1 << width - 1) - 1)


def integer_literal(value: int) -> str:
    """Return a decimal literal; numbers for which C has no literal are spelled by their macro names."""
    names = {-(1 << 31): "INT32_MIN", -(1 << 63): "INT64_MIN"}
    if value in names or abs(value) < 1 << 31:
        return names.get(value, str(value))
    if 0 < value < 1 << 32:
        return f"{value}u"
    return f"INT64_C({value})" if value < 1 << 63 else f"UINT64_C({value})"


def float_literal(value: float, double: bool) -> str:
    """Return the shortest decimal literal that reads back as the same number; infinities and NaN by their names in
    math.h."""
    if not np.isfinite(value):
        return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    if double:
        return repr(float(value))
    text = str(np.float32(value))
    return f"{text if '.' in text or 'e' in text else text + '.0'}f"
