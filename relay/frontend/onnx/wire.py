"""The bytes of a ModelProto: `saved`, all of them; `detached`, without large weights, which then refer to the file's
bytes.

protobuf would copy every weight when it parses, and again when the weight is read. The wire format is a sequence of
nested fields with a tag and a length: only the messages that contain tensors are walked, and long raw data is replaced
by an `external_data` entry. Source: https://protobuf.dev/programming-guides/encoding, onnx.proto3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError

from relay.errors import InvalidArgument, Malformed

if TYPE_CHECKING:
    import onnx

LARGE = 1024
"""The size in bytes from which a weight is cut out of the ModelProto's bytes and replaced by a reference to the
file."""
_NESTED: dict[str, dict[int, str]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor"},
    "Function": {7: "Node"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
    "Tensor": {},
}
"""The fields of each message that contain messages in which tensors may be nested."""
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_DEEPEST = 64


def detached(data: memoryview, file: str) -> bytes:
    """The model's bytes with every raw data of at least `LARGE` bytes replaced by external data of location "" with its
    `offset` and `length` in the given bytes. Raises Malformed."""
    try:
        return b"".join(_rewritten(data, 0, len(data), "Model", 0))
    except (IndexError, ValueError) as error:
        raise Malformed(file, f"is not an ONNX model: {error}") from None


def _rewritten(data: memoryview, start: int, end: int, message: str, depth: int) -> list[bytes | memoryview]:
    """Return consecutive parts of the protobuf message `data[start:end]`, a `message` such as "Graph" at nesting depth
    `depth`, in which large raw data of tensors is replaced by a reference to the file. A message without such data is
    returned as a single part."""
    if depth > _DEEPEST:
        raise ValueError("messages are nested too deeply")
    nested = _NESTED[message]
    parts: list[bytes | memoryview] = []
    last_fields: list[bytes | memoryview] = []
    """The contents of non-repeated fields; of one that is written twice, protobuf uses the last."""
    copied = start
    """The start of the next part that is copied unchanged."""
    for number, at, first, last in _fields(data, start, end):
        if last - first < LARGE:
            continue
        if message == "Tensor" and number == _RAW_DATA:
            parts.append(data[copied:at])
            last_fields.append(_reference(first, last - first))
        elif number in nested:
            inner = _rewritten(data, first, last, nested[number], depth + 1)
            if len(inner) == 1:
                continue
            size = sum(map(len, inner))
            parts += [data[copied:at], _varint(number << 3 | 2), _varint(size), *inner]
        else:
            continue
        copied = last
    return [*parts, data[copied:end], *last_fields]


def _fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The number, tag position, and content start and end of each length-delimited field."""
    at = start
    while at < end:
        begin = at
        tag, at = _read_varint(data, at, end)
        kind = tag & 7
        if kind == 0:
            _, at = _read_varint(data, at, end)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            size, at = _read_varint(data, at, end)
            if at + size <= end:
                yield tag >> 3, begin, at, at + size
            at += size
        else:
            raise ValueError(f"byte {begin} begins no field")
        if at > end:
            raise ValueError(f"the field at byte {begin} is longer than what it is in")


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError(f"the number at byte {at} does not end")


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _reference(offset: int, length: int) -> bytes:
    """The fields of a TensorProto whose data is at this position of the file."""
    entries = {"location": "", "offset": str(offset), "length": str(length)}
    rows = (_field(1, key.encode()) + _field(2, value.encode()) for key, value in entries.items())
    return b"".join(_field(_EXTERNAL_DATA, row) for row in rows) + _varint(_DATA_LOCATION << 3) + _varint(1)


def saved(model: onnx.ModelProto) -> tuple[bytes, str]:
    """The bytes of a model in memory, and its name in errors. Raises InvalidArgument beyond protobuf's 2 GiB."""
    try:
        return model.SerializeToString(), model.graph.name or "<ModelProto>"
    except (EncodeError, ValueError) as error:  # the second by protobuf in Python
        hint = "save it with external data and give the path"
        raise InvalidArgument("from_onnx", f"the model cannot be serialised: {error}", hint) from None
