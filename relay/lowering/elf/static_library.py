"""Wraps an object as a static library: an archive with the index of symbols that linkers use.

Source: ar(5), the format of System V and GNU.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

MAGIC = b"!<arch>\n"
MEMBER = "model.o/"


def static_library(code: bytes, symbols: Sequence[str]) -> bytes:
    """Return the archive of one object; `symbols`: the names of its symbols that the index lists; a linker includes the
    object if it needs one of them."""
    names = b"".join(name.encode() + b"\0" for name in symbols)
    size = 4 + 4 * len(symbols) + len(names)
    at = len(MAGIC) + 60 + size + size % 2
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[at] * len(symbols)) + names
    return MAGIC + _member("/", index) + _member(MEMBER, code)


def _member(name: str, data: bytes) -> bytes:
    """Return a header and the data, padded to an even size; times and owners are 0, so that equal objects give equal
    libraries."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
    return header.encode() + data + b"\n" * (len(data) % 2)
