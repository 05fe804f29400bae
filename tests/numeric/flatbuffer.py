"""A writer of flatbuffers, for tables described as `relay.frontend.tflite.schema` describes them.

A buffer is written from front to back: a table, then what it refers to, whose offsets are put in once they are known.
Source: the FlatBuffers binary format.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.frontend.tflite.schema import Field, Fields, Kind

Scalar = bool | int | float


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table's fields, and a value for each of those that are there; None is as good as absent."""

    fields: Fields
    values: Mapping[str, Value] = field(default_factory=dict[str, "Value"])


Value = Scalar | str | Array | Table | Sequence[Table] | None
"""Vectors of numbers are arrays, vectors of tables sequences."""

_FORMATS: dict[Kind, str] = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int32": "i",
    "int64": "q",
    "uint32": "I",
    "uint64": "Q",
    "float32": "f",
}
BYTES_ALIGNMENT = 16
"""Of vectors of bytes, the weights: `force_align` of the schema's Buffer.data."""


def serialize(root: Table, identifier: bytes) -> bytes:
    """The file of this table. Raises InvalidArgument where it would exceed the 2 GiB that offsets reach."""
    writer = _Writer(identifier)
    writer.refer(0, writer.table(root))
    if len(writer.data) >= 1 << 31:
        raise InvalidArgument("flatbuffer", f"{len(writer.data)} bytes exceed 2 GiB", "give it fewer weights")
    return bytes(writer.data)


class _Writer:
    def __init__(self, identifier: bytes) -> None:
        self.data = bytearray(4) + identifier

    def align(self, size: int, ahead: int = 0) -> int:
        """Pad until the position plus `ahead` is a multiple of `size`; the position."""
        self.data += bytes(-(len(self.data) + ahead) % size)
        return len(self.data)

    def refer(self, at: int, target: int) -> None:
        """Put in the offset from a field to what it refers to."""
        struct.pack_into("<I", self.data, at, target - at)

    def table(self, table: Table) -> int:
        """The position of the table. Fields lie by size, the largest first; those of their default are left out."""
        present = [
            (table.fields[name], value)
            for name, value in table.values.items()
            if value is not None and not (isinstance(value, Scalar) and value == table.fields[name].default)
        ]
        present.sort(key=lambda item: (-_size(item[0]), item[0].slot))
        places: list[tuple[int, Field, Value]] = []
        end = 4
        for row, value in present:
            end += -end % _size(row)
            places.append((end, row, value))
            end += _size(row)
        slots = [0] * (1 + max((row.slot for row, _ in present), default=-1))
        for place, row, _ in places:
            slots[row.slot] = place
        vtable = struct.pack(f"<{2 + len(slots)}H", 4 + 2 * len(slots), end, *slots)
        at = self.align(8, len(vtable)) + len(vtable)
        self.data += vtable + struct.pack("<i", len(vtable)) + bytes(end - 4)
        for place, row, value in places:
            if row.kind in _FORMATS:
                struct.pack_into(f"<{_FORMATS[row.kind]}", self.data, at + place, value)
            else:
                self.refer(at + place, self.child(row, value))
        return at

    def child(self, row: Field, value: Value) -> int:
        """The position of a string, vector or table."""
        match value:
            case str():
                return self.string(value)
            case Table():
                return self.table(value)
            case np.ndarray():
                return self.numbers(np.ascontiguousarray(value, _numpy_type(row.of)))
            case Sequence():
                return self.tables(value)
            case _:
                raise InvalidArgument("flatbuffer", f"{value!r} is no {row.kind}")

    def string(self, text: str) -> int:
        encoded = text.encode()
        at = self.align(4)
        self.data += struct.pack("<I", len(encoded)) + encoded + b"\0"
        return at

    def numbers(self, array: Array) -> int:
        at = self.align(BYTES_ALIGNMENT if array.itemsize == 1 else max(4, array.itemsize), 4)
        self.data += struct.pack("<I", array.size)
        self.data += array.data.cast("B") if array.size else b""
        return at

    def tables(self, tables: Sequence[Table]) -> int:
        at = self.align(4)
        self.data += struct.pack("<I", len(tables)) + bytes(4 * len(tables))
        for index, table in enumerate(tables):
            self.refer(at + 4 + 4 * index, self.table(table))
        return at


def _size(row: Field) -> int:
    """Bytes of the field inside its table."""
    return struct.calcsize(_FORMATS.get(row.kind, "I"))


def _numpy_type(kind: Kind) -> np.dtype[np.generic]:
    return np.dtype("<" + _FORMATS[kind])
