"""`Zip`: the entries of an archive of untrusted origin, as views of its bytes where they are not compressed,
checked against the archive's CRC-32 when they are first read."""

from __future__ import annotations

import json
import lzma
import zlib
from io import BytesIO
from struct import error as StructError
from struct import unpack_from
from typing import Any, cast
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from relay.errors import Malformed

Json = dict[str, Any]
MOST_EXPANDED = 1 << 30
"""The limit, in bytes, of the total size of an archive's compressed entries after decompression."""
MOST_JSON = 1 << 26
"""The limit, in bytes, of an entry that is parsed as JSON, whose Python objects may take 25 times as much memory."""
_LOCAL_HEADER, _FIRST = 30, b"PK\x03\x04"
AGAIN = "copy or save the file again"
"""The hint of errors about a damaged file."""


class Zip:
    """The entries of an archive by name. Raises Malformed for bytes that are no archive; `hint` says what to give
    instead."""

    def __init__(self, data: bytes, file: str, hint: str) -> None:
        self.file, self.data = file, data
        self._expanded = 0
        self._checked: set[str] = set()
        try:
            self._zip = ZipFile(BytesIO(data))
            self.entries: dict[str, ZipInfo] = {each.filename: each for each in self._zip.infolist()}
        except (BadZipFile, OSError, ValueError, NotImplementedError, StructError) as error:
            if bytes(data[:4]) == _FIRST:
                raise Malformed(file, f"is cut off or damaged: {error}", AGAIN) from None
            raise Malformed(file, f"is no zip archive: {error}", hint) from None

    def bytes(self, entry: ZipInfo) -> memoryview:
        """The bytes of an entry: a view of the file if it is not compressed. The size of compressed entries is
        limited."""
        if entry.compress_type == ZIP_STORED and not entry.flag_bits & 1:
            try:
                name, extra = unpack_from("<HH", self.data, entry.header_offset + 26)
            except StructError:
                name = extra = 0
            start = entry.header_offset + _LOCAL_HEADER + name + extra
            found = memoryview(self.data)[start : start + entry.file_size]
            head = self.data[entry.header_offset : entry.header_offset + 4]
            if head != _FIRST or len(found) != entry.file_size:
                raise Malformed(self.file, f"the entry {entry.filename!r} is not inside the file", AGAIN)
            if entry.filename not in self._checked and zlib.crc32(found) != entry.CRC:
                raise Malformed(self.file, f"the entry {entry.filename!r} is damaged: its CRC-32 is another", AGAIN)
            self._checked.add(entry.filename)
            return found
        left = MOST_EXPANDED - self._expanded
        try:
            with self._zip.open(entry) as stream:
                data = stream.read(min(entry.file_size, left) + 1)
        except (
            *(BadZipFile, EOFError, OSError, ValueError, RuntimeError, NotImplementedError),
            *(zlib.error, lzma.LZMAError),
        ) as error:
            raise Malformed(self.file, f"the entry {entry.filename!r} cannot be read: {error}", AGAIN) from None
        self._expanded += len(data)
        if len(data) > left:
            what = f"its compressed entries come to more than {MOST_EXPANDED} bytes"
            raise Malformed(self.file, what, "save it again without compression")
        return memoryview(data)

    def json(self, name: str) -> Json:
        """The JSON object in the entry of this name. Raises Malformed."""
        entry = self.entries[name]
        if entry.file_size > MOST_JSON:
            raise Malformed(self.file, f"{name} has {entry.file_size} bytes; at most {MOST_JSON} are read")
        try:
            found: object = json.loads(bytes(self.bytes(entry)))
        except (ValueError, RecursionError, MemoryError) as error:
            raise Malformed(self.file, f"{name} is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise Malformed(self.file, f"{name} is no object")
        return cast(Json, found)
