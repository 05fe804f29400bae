"""The C types of numpy dtypes, and literals of these types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relay.lowering.c.types import float_literal, integer_literal


@dataclass(frozen=True, slots=True)
class CType:
    """A scalar C type."""

    name: str
    """The type's name in C, such as `int8_t`."""
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.dtype.itemsize

    @property
    def kind(self) -> str:
        """numpy's kind of the type: "i" signed, "u" unsigned, "f" float, "b" boolean."""
        return self.dtype.kind

    def literal(self, value: Any) -> str:
        """A C constant expression for the value, of this type or of a type that converts to it without loss."""
        if self.kind == "f":
            return float_literal(float(value), self.size == 8)
        return integer_literal(int(value))


TYPES: dict[np.dtype[Any], CType] = {
    np.dtype(name): CType(c, np.dtype(name))
    for name, c in (
        ("bool", "uint8_t"),
        *((f"{name}{n}", f"{name}{n}_t") for n in (8, 16, 32, 64) for name in ("int", "uint")),
        ("float32", "float"),
        ("float64", "double"),
    )
}
NAMED = {type.name: type for type in TYPES.values() if type.kind != "b"}
"""The types by their names in C."""
F32 = TYPES[np.dtype("float32")]
