"""The C types of numpy dtypes, and literals of these types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relay.lowering.c.types import TYPES as NAMES
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


TYPES: dict[np.dtype[Any], CType] = {np.dtype(dtype): CType(name, np.dtype(dtype)) for dtype, name in NAMES.items()}
NAMED = {type.name: type for type in TYPES.values() if type.kind != "b"}
"""The types by their names in C."""
F32 = TYPES[np.dtype("float32")]
