"""Reads untrusted flatbuffers: every access is checked, every error is `Malformed` with a byte offset.

A flatbuffer consists of tables that refer to each other by offset. A table starts with a signed offset back to its
vtable, which says where in the table each field is; strings and vectors start with their length. Offsets may point
anywhere, and several to the same place, so the work that a file causes is not bounded by its size: `Reader` counts the
work and stops at a fixed multiple of the file's size. Source: the FlatBuffers internals document.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from relay.errors import Malformed
from relay.frontend.tflite.schema import Fields, Kind

_SCALARS: dict[Kind, struct.Struct] = {
    "bool": struct.Struct("<B"),
    "int8": struct.Struct("<b"),
    "uint8": struct.Struct("<B"),
    "uint16": struct.Struct("<H"),
    "int32": struct.Struct("<i"),
    "int64": struct.Struct("<q"),
    "uint32": struct.Struct("<I"),
    "uint64": struct.Struct("<Q"),
    "float32": struct.Struct("<f"),
}
_OFFSET = struct.Struct("<I")
_VTABLE_OFFSET = struct.Struct("<i")
_VTABLE_HEAD = struct.Struct("<HH")

_MAX_DEPTH = 16
_WORK_PER_BYTE = 4
"""The maximum work per byte of a file, which bounds how often a file may refer to the same bytes. Work is roughly the
number of bytes read, with a fixed addition for each table and vector; files from TFLite's converters need less than 2
per byte outside of the weights, which are not read."""
_WORK_MIN = 1 << 16
_TABLE_WORK = 32
_VECTOR_WORK = 4


class Reader:
    """The bytes of a file, and the remaining amount of work they may cause. `where` is the file's name in errors."""

    def __init__(self, data: memoryview, where: str) -> None:
        self.data = data
        self.where = where
        self.work_left = max(_WORK_PER_BYTE * len(data), _WORK_MIN)
        self._vtables: dict[int, tuple[int, tuple[int, ...]]] = {}

    def root(self, fields: Fields, identifier: bytes, path: str) -> Table:
        """The root table of a file that has this identifier (4 bytes at byte 4)."""
        if len(self.data) < 8:
            raise self.malformed(0, f"{len(self.data)} bytes are too few for a flatbuffer", "is the file complete?")
        found = bytes(self.data[4:8])
        if found != identifier:
            raise self.malformed(4, f"the file identifier is {found!r}, not {identifier!r}", "is this the right file?")
        return self.table(self.follow(0, path), fields, path, 0)

    def malformed(self, offset: int, what: str, hint: str = "") -> Malformed:
        return Malformed(f"{self.where}: byte {offset}", what, hint)

    def check(self, offset: int, size: int, path: str) -> None:
        """Raise Malformed unless the file has `size` bytes at `offset`."""
        if offset < 0 or offset + size > len(self.data):
            raise self.malformed(
                offset,
                f"{path}: {size} bytes here are outside the file of {len(self.data)} bytes",
                "the file is truncated or damaged",
            )

    def work(self, amount: int, offset: int, path: str) -> None:
        self.work_left -= amount
        if self.work_left < 0:
            raise self.malformed(offset, f"{path}: the file refers to the same bytes too many times")

    def follow(self, offset: int, path: str) -> int:
        """The target of the offset stored at `offset`."""
        self.check(offset, 4, path)
        distance: int = _OFFSET.unpack_from(self.data, offset)[0]
        if distance == 0:
            raise self.malformed(offset, f"{path}: an offset points at itself")
        target = offset + distance
        self.check(target, 4, path)
        return target

    def vector(self, offset: int, item_size: int, path: str) -> tuple[int, int]:
        """The position of the first byte and the length of the vector or string at `offset`."""
        length: int = _OFFSET.unpack_from(self.data, offset)[0]
        self.check(offset + 4, length * item_size, path)
        self.work(_VECTOR_WORK, offset, path)
        return offset + 4, length

    def table(self, offset: int, fields: Fields, path: str, depth: int) -> Table:
        if depth > _MAX_DEPTH:
            raise self.malformed(offset, f"{path}: tables are nested more than {_MAX_DEPTH} deep")
        vtable = offset - _VTABLE_OFFSET.unpack_from(self.data, offset)[0]
        if vtable not in self._vtables:
            self._vtables[vtable] = self._read_vtable(vtable, path)
        size, slots = self._vtables[vtable]
        self.check(offset, size, path)
        self.work(_TABLE_WORK + size + 2 * len(slots), offset, path)
        return Table(self, offset, size, slots, fields, path, depth)

    def _read_vtable(self, offset: int, path: str) -> tuple[int, tuple[int, ...]]:
        """The size in bytes of a table that refers to the vtable at `offset`, and the position of each field in such a
        table (0: absent)."""
        self.check(offset, 4, path)
        size, table_size = _VTABLE_HEAD.unpack_from(self.data, offset)
        if size < 4 or size % 2 or table_size < 4:
            raise self.malformed(offset, f"{path}: a vtable of {size} bytes for tables of {table_size} bytes")
        self.check(offset, size, path)
        self.work(size, offset, path)
        return table_size, struct.unpack_from(f"<{size // 2 - 2}H", self.data, offset + 4)


class Table:
    """A table of a file; its fields are read by their schema names when they are used, with defaults for absent
    ones."""

    __slots__ = ("_depth", "_fields", "_reader", "_size", "_slots", "offset", "path")

    def __init__(
        self, reader: Reader, offset: int, size: int, slots: tuple[int, ...], fields: Fields, path: str, depth: int
    ) -> None:
        self._reader = reader
        self._size = size
        self._slots = slots
        self._fields = fields
        self._depth = depth
        self.offset = offset
        self.path = path

    def _find(self, name: str, size: int) -> int:
        """The position in the file, in bytes, of this table's field `name`, which has `size` bytes; 0 if the table does
        not contain the field. Raises Malformed if the field lies outside the table."""
        slot = self._fields[name].slot
        if slot >= len(self._slots):
            return 0
        within = self._slots[slot]
        if within == 0:
            return 0
        if within < 4 or within + size > self._size:
            raise self._reader.malformed(self.offset, f"{self.path}.{name}: the field lies outside its table")
        return self.offset + within

    def _target(self, name: str) -> int:
        """The position to which an offset field points; 0 if it is absent."""
        offset = self._find(name, 4)
        return self._reader.follow(offset, f"{self.path}.{name}") if offset else 0

    def _vector(self, name: str) -> tuple[int, int]:
        """The position and length of a vector of scalars; length 0 if it is absent."""
        target = self._target(name)
        size = _SCALARS[self._fields[name].of].size
        return self._reader.vector(target, size, f"{self.path}.{name}") if target else (0, 0)

    def integer(self, name: str) -> int:
        field = self._fields[name]
        scalar = _SCALARS[field.kind]
        offset = self._find(name, scalar.size)
        return scalar.unpack_from(self._reader.data, offset)[0] if offset else int(field.default)

    def boolean(self, name: str) -> bool:
        return self.integer(name) != 0

    def real(self, name: str) -> float:
        field = self._fields[name]
        offset = self._find(name, 4)
        value: float = _SCALARS[field.kind].unpack_from(self._reader.data, offset)[0] if offset else field.default
        if not math.isfinite(value):
            raise self._reader.malformed(offset, f"{self.path}.{name}: {value} is not a finite number")
        return value

    def enum(self, name: str) -> str:
        """The name of an enum field's value."""
        names = self._fields[name].names
        value = self.integer(name)
        if not 0 <= value < len(names):
            known = ", ".join(names)
            raise self._reader.malformed(
                self.offset, f"{self.path}.{name}: {value} is not the number of one of {known}"
            )
        return names[value]

    def string(self, name: str) -> str:
        """The text of the field, "" if it is absent. Invalid UTF-8 is converted to backslash escapes."""
        target = self._target(name)
        if not target:
            return ""
        path = f"{self.path}.{name}"
        start, length = self._reader.vector(target, 1, path)
        self._reader.work(length, start, path)
        return str(self._reader.data[start : start + length], "utf-8", "backslashreplace")

    def octets(self, name: str) -> memoryview:
        """A view of a vector of bytes."""
        start, length = self._vector(name)
        return self._reader.data[start : start + length]

    def integers(self, name: str) -> tuple[int, ...]:
        """The elements of a vector of int32."""
        data = self.raw(name)
        return struct.unpack(f"<{len(data) // 4}i", data)

    def booleans(self, name: str) -> tuple[bool, ...]:
        return tuple(byte != 0 for byte in self.raw(name))

    def raw(self, name: str) -> memoryview:
        """The bytes of a vector of scalars, for callers that process it element by element. The elements count towards
        the limit of `Reader.work`, above which the file is refused."""
        start, length = self._vector(name)
        self._reader.work(length, start, self.path)
        return self._reader.data[start : start + length * _SCALARS[self._fields[name].of].size]

    def has(self, name: str) -> bool:
        """Whether the file stores this offset field."""
        return self._find(name, 4) != 0

    def table(self, name: str, fields: Fields) -> Table | None:
        """The table (or the member of the union) to which the field points; None if it is absent."""
        target = self._target(name)
        return self._reader.table(target, fields, f"{self.path}.{name}", self._depth + 1) if target else None

    def tables(self, name: str, fields: Fields) -> Iterator[Table]:
        """Each table of a vector of tables."""
        target = self._target(name)
        if not target:
            return
        path = f"{self.path}.{name}"
        start, length = self._reader.vector(target, 4, path)
        for index in range(length):
            item = f"{path}[{index}]"
            yield self._reader.table(self._reader.follow(start + 4 * index, item), fields, item, self._depth + 1)
