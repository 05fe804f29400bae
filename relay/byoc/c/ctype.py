"""What the IR's element types are in C: the type, the type in which it wraps, the letters in names, literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from relay.dialects.attributes import dtype_of
from relay.errors import RelayError, Unsupported


@dataclass(frozen=True, slots=True)
class CType:
    """A scalar type of C."""

    name: str
    """`int8_t`."""
    short: str
    """`i8`: in the names of kernels."""
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.dtype.itemsize

    @property
    def kind(self) -> str:
        """numpy's: "i" signed, "u" unsigned, "f" float, "b" boolean."""
        return self.dtype.kind

    @property
    def wrap(self) -> str:
        """The type in which sums and products are taken modulo 2^bits; a float's own."""
        return self.name if self.kind == "f" else "uint64_t" if self.size == 8 else "uint32_t"

    @property
    def range(self) -> tuple[int, int]:
        """Lowest and highest number of an integer type."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def literal(self, value: Any) -> str:
        """The value as a constant expression of this type, or one that converts to it without loss."""
        if self.kind == "f":
            return float_literal(self.dtype, float(value))
        return integer_literal(int(value))


TYPES: dict[np.dtype[Any], CType] = {
    np.dtype(name): CType(c, short, np.dtype(name))
    for name, c, short in (
        ("bool", "uint8_t", "b8"),
        *((f"int{n}", f"int{n}_t", f"i{n}") for n in (8, 16, 32, 64)),
        *((f"uint{n}", f"uint{n}_t", f"u{n}") for n in (8, 16, 32, 64)),
        ("float32", "float", "f32"),
        ("float64", "double", "f64"),
    )
}

I16, I32, I64 = (TYPES[np.dtype(name)] for name in ("int16", "int32", "int64"))
F32, F64 = (TYPES[np.dtype(name)] for name in ("float32", "float64"))


def ctype(type: Attribute, where: str) -> CType:
    """The C type of an element type. Raises Unsupported for those that C99 does not have."""
    try:
        return TYPES[dtype_of(type)]
    except (KeyError, RelayError):
        raise Unsupported(where, f"elements of {type} are not supported by c", "it takes integers, f32, f64") from None


def integer_literal(value: int) -> str:
    """Decimal; the numbers that C has no constant for are spelled by their names."""
    names = {-(1 << 31): "INT32_MIN", -(1 << 63): "INT64_MIN"}
    if value in names:
        return names[value]
    if -(1 << 31) < value < 1 << 31:
        return str(value)
    if value < 1 << 32 and value > 0:
        return f"{value}u"
    return f"INT64_C({value})" if value < 1 << 63 else f"UINT64_C({value})"


def float_literal(dtype: np.dtype[Any], value: float) -> str:
    """The shortest decimal that reads back as the same number; infinities and NaN by their names in math.h."""
    if not np.isfinite(value):
        return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    if dtype == np.float64:
        return repr(float(value))
    text = str(np.float32(value))
    return f"{text if '.' in text or 'e' in text else text + '.0'}f"
