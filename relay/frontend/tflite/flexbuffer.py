"""Reads options of custom operators: the numeric entries of a FlexBuffers map, by name.

Source: flatbuffers/include/flatbuffers/flexbuffers.h.
"""

from __future__ import annotations

from struct import unpack_from

_INT, _UINT, _FLOAT, _MAP, _BOOL = 1, 2, 3, 9, 26
_INDIRECT = {6: _INT, 7: _UINT, 8: _FLOAT}
"""The types of numbers that are stored elsewhere, by the type of an indirect reference."""
_FORMATS = {_INT: "bhiq", _UINT: "BHIQ", _FLOAT: " efd", _BOOL: "BHIQ"}
"""The struct formats of each type, by a width of 1, 2, 4 and 8 bytes."""
MOST = 256
"""The maximum number of entries of a map."""


def numbers(data: bytes) -> dict[str, int | float]:
    """The entries that are numbers or booleans; empty if there are no bytes. Raises ValueError, IndexError or
    struct.error for bytes that are no map."""
    if not data:
        return {}
    kind, width = data[-2] >> 2, data[-1]
    if kind != _MAP:
        raise ValueError("it is no map")
    start = _target(data, len(data) - 2 - width, width)
    width = 1 << (data[-2] & 3)
    count = _read(data, start - width, width)
    if count > MOST:
        raise ValueError(f"it has {count} entries")
    keys, key_width = _target(data, start - 3 * width, width), _read(data, start - 2 * width, width)
    found: dict[str, int | float] = {}
    for place in range(count):
        name = _target(data, keys + place * key_width, key_width)
        kind, at, size = data[start + count * width + place], start + place * width, width
        if kind >> 2 in _INDIRECT:
            at, size = _target(data, at, width), 1 << (kind & 3)
        kind = _INDIRECT.get(kind >> 2, kind >> 2)
        if kind in _FORMATS:
            found[data[name : data.index(0, name)].decode()] = _read(data, at, size, kind)
    return found


def _read(data: bytes, at: int, width: int, kind: int = _UINT) -> int:
    if at < 0 or width not in (1, 2, 4, 8):
        raise ValueError(f"a number of {width} bytes at {at}")
    return unpack_from(f"<{_FORMATS[kind][width.bit_length() - 1]}", data, at)[0]


def _target(data: bytes, at: int, width: int) -> int:
    """The position to which the offset at `at` refers: the stored number of bytes before `at`."""
    found = at - _read(data, at, width)
    if found < 0:
        raise ValueError(f"the offset at {at} leaves the bytes")
    return found
