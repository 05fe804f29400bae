"""What numpy's types are in C: the type, and its literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relay.lowering.c.types import float_literal, integer_literal


@dataclass(frozen=True, slots=True)
class CType:
    """A scalar type of C."""

    name: str
    """`int8_t`."""
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.dtype.itemsize

    @property
    def kind(self) -> str:
        """numpy's: "i" signed, "u" unsigned, "f" float, "b" boolean."""
        return self.dtype.kind

    def literal(self, value: Any) -> str:
        """The value as a constant expression of this type, or one that converts to it without loss."""
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
"""By their names."""
F32 = TYPES[np.dtype("float32")]
