"""The container of a saved executable: named parts in one file, each with its SHA-256.

Bytes 0-7 are `MAGIC`, 8-11 the format version, 12-15 the size of the table, 16-47 the SHA-256 of the table; then the
table, JSON `[[name, offset, size, sha256], ...]`, and the parts, each at a multiple of 64 bytes. Numbers are
little-endian. Equal parts give equal bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import cast

import numpy as np

from relay.errors import Malformed
from relay.mapping import pieces as pieces_of

MAGIC = b"\x93RELAY\r\n"
"""The first bytes of the file. The first one is not text; the last two show whether line ends were converted."""
VERSION = 2
HEADER = struct.Struct("<8sII32s")
ALIGNMENT = 64
LONGEST_TABLE = 1 << 24
WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions that malformed JSON raises: numbers out of range, wrong types, missing keys, nesting too deep."""


Part = bytes | Sequence[bytes | memoryview]
"""The bytes of a part, or pieces of them in order."""


def is_saved(path: str) -> bool:
    """Whether the file is a saved executable; False if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def pack(parts: Mapping[str, Part]) -> bytes:
    """Encode the container of these parts, in their order."""
    return b"".join(pieces(parts))


def pieces(parts: Mapping[str, Part]) -> list[bytes | memoryview]:
    """Encode the container in pieces: large parts are not copied."""
    rows_of = {name: [part] if isinstance(part, bytes) else part for name, part in parts.items()}
    sizes = {name: sum(map(len, row)) for name, row in rows_of.items()}
    sums = {name: _digest(row).hex() for name, row in rows_of.items()}
    offsets, table = [0] * len(parts), b""
    for _ in range(8):  # the table's size depends on the offsets, and they on it
        rows = [[name, offset, sizes[name], sums[name]] for name, offset in zip(parts, offsets, strict=True)]
        table = json.dumps(rows).encode()
        found, end = list[int](), HEADER.size + len(table)
        for size in sizes.values():
            found.append(-(-end // ALIGNMENT) * ALIGNMENT)
            end = found[-1] + size
        if found == offsets:
            break
        offsets = found
    file: list[bytes | memoryview] = [HEADER.pack(MAGIC, VERSION, len(table), sha256(table).digest()) + table]
    end = HEADER.size + len(table)
    for offset, (name, row) in zip(offsets, rows_of.items(), strict=True):
        file += [bytes(offset - end), *row]
        end = offset + sizes[name]
    return file


def _digest(row: Sequence[bytes | memoryview]) -> bytes:
    """The SHA-256 of pieces."""
    digest = sha256()
    for part in row:
        for piece in pieces_of(part):
            digest.update(piece)
    return digest.digest()


def unpack(file: memoryview, where: str) -> dict[str, memoryview]:
    """The parts, as views of the file. Raises Malformed if it is not a container, has another version, or is
    damaged."""
    if len(file) < HEADER.size or file[: len(MAGIC)].tobytes() != MAGIC:
        raise Malformed(where, "is no saved executable")
    _, version, size, digest = HEADER.unpack_from(file)
    if version != VERSION:
        raise Malformed(where, f"is of format version {version}; this is {VERSION}", "build the model again")
    table = file[HEADER.size : HEADER.size + size]
    if size > LONGEST_TABLE or len(table) != size or sha256(table).digest() != digest:
        raise Malformed(where, "is damaged: its table is not what was written")
    parts: dict[str, memoryview] = {}
    end = HEADER.size + size
    try:
        for name, offset, length, digest in cast(list[tuple[str, int, int, str]], json.loads(bytes(table))):
            part = file[offset : offset + length]
            if offset < 0 or len(part) != length or _digest([part]).hex() != digest:
                raise Malformed(where, f"is damaged: its part {name} is not what was written")
            if np.asarray(file[end:offset]).any():  # a crafted file may leave gigabytes between its parts
                raise Malformed(where, f"is damaged: the bytes before its part {name} are not zeros")
            parts[name], end = part, max(end, offset + length)
    except WRONG as error:
        raise Malformed(where, f"is no saved executable: {error}") from None
    if end != len(file):
        raise Malformed(where, f"is damaged: {len(file) - end} bytes follow its last part")
    return parts
