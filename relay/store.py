"""A cache folder of compiled code by key: safe with several writers, bounded in size, and optional.

Cached code is executed. A file is therefore only read if it and the folder belong to this user, if nobody else may
write to them, and if it was written under the key that is looked up: it begins with the SHA-256 of the key and the
data.

`RELAY_CACHE_DIR` names the folder; `off` disables the cache. The default is `relay` in `XDG_CACHE_HOME`, or in
`~/.cache`. `RELAY_CACHE_BYTES` limits its size (default: 1 GiB); the least recently used entries are deleted first,
about once for each 1/64 of the limit that is written, since this lists the whole folder.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import zlib
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from relay.errors import InvalidArgument
from relay.mapping import contents, pieces, used

FOLDER, LIMIT = "RELAY_CACHE_DIR", "RELAY_CACHE_BYTES"
DEFAULT_LIMIT = 1 << 30
SUM_BYTES = 64
"""The size of a file's header in bytes: the SHA-256 and zeros, so that mapped data begin at a multiple of 64 bytes."""
TRIMS = 64
"""How often the folder is trimmed, on average, while as many bytes are written as may be used."""
OURS = re.compile(r"\w+-[0-9a-f]{64}|\.\w+-[0-9a-f]{64}\.\d+\.\d+")
"""Matches the file names of entries, as `key_of` makes them, and of entries that are being written."""


class Entry(NamedTuple):
    """A file of the cache."""

    used: float
    """The time of the last use, in seconds since the epoch."""
    size: int
    path: str


@dataclass(frozen=True)
class Store:
    """The bytes of compiled code by key (a file name), in a folder of which `limit` bytes may be used."""

    folder: Path
    limit: int = DEFAULT_LIMIT

    def get(self, key: str) -> bytes | None:
        """The bytes stored under the key; None if there are none, or they are damaged or cannot be read."""
        found = self.view(key)
        return None if found is None else bytes(found)

    def view(self, key: str) -> memoryview | None:
        """The bytes stored under the key, mapped into memory if the file is large; None in the same cases as for
        `get`."""
        try:
            found = self._read(key)
        except (OSError, MemoryError):
            return None
        path = self.folder / key
        with suppress(OSError):  # the file system may be read-only
            os.utime(path)
        data = memoryview(found)[SUM_BYTES:]
        if _sum(key, data) != found[:SUM_BYTES]:
            with suppress(OSError):
                path.unlink()
            return None
        return data

    def _read(self, key: str) -> bytes | mmap:
        """Open and read the key's file. Raises OSError, also if the file or the folder belongs to somebody else or is
        writable by others."""
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            check = os.fstat(folder)
            descriptor = os.open(key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not (_only_ours(check) and _only_ours(status) and stat.S_ISREG(status.st_mode)):
                raise PermissionError(f"{self.folder / key} is not only this user's")
            return contents(file)

    def put(self, key: str, *data: bytes | memoryview) -> None:
        """Store the concatenated bytes under the key, atomically. Failing to write, as on a full disk, is no error."""
        scratch = self.folder / f".{key}.{os.getpid()}.{threading.get_ident()}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(scratch, "wb", opener=_private) as file:
                file.write(_sum(key, *data))
                for part in data:
                    file.write(part)
                    used(len(part))
                size = file.tell()
            scratch.replace(self.folder / key)
            if zlib.crc32(key.encode()) * self.limit < TRIMS * size << 32:  # by key: processes share no count
                self.trim()
        except OSError:
            pass
        finally:  # after an interrupt, too; a file that was renamed no longer exists under this name
            with suppress(OSError):
                scratch.unlink()

    def entries(self) -> list[Entry]:
        """The stored entries, least recently used first; other files in the folder are ignored."""
        found: list[Entry] = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if not OURS.fullmatch(entry.name):
                    continue
                with suppress(OSError):
                    status = entry.stat()
                    found.append(Entry(status.st_mtime, status.st_size, entry.path))
        return sorted(found)

    def trim(self) -> None:
        """Delete the least recently used entries until at most `limit` bytes are stored."""
        self._delete(self.limit)

    def clear(self) -> tuple[int, int]:
        """Delete all entries. Returns their number and their size in bytes."""
        return self._delete(-1)

    def _delete(self, limit: int) -> tuple[int, int]:
        """Delete the least recently used entries until at most `limit` bytes are left. Returns the number and bytes
        deleted."""
        found = self.entries()
        count, deleted, total = 0, 0, sum(entry.size for entry in found)
        for entry in found:
            if total - deleted <= limit:
                break
            with suppress(OSError):
                os.unlink(entry.path)
                count, deleted = count + 1, deleted + entry.size
        return count, deleted


def _sum(key: str, *data: bytes | memoryview) -> bytes:
    """The header of a file: the SHA-256 of the key and the data, padded to `SUM_BYTES`."""
    digest = sha256(key.encode() + b"\0")
    for part in data:
        for piece in pieces(part):
            digest.update(piece)
    return digest.digest().ljust(SUM_BYTES, b"\0")


def _only_ours(status: os.stat_result) -> bool:
    """Whether this user owns the file and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _private(path: str, flags: int) -> int:
    """An opener for `open` that creates a file with mode 0600, regardless of the process's umask."""
    return os.open(path, flags, 0o600)


def store() -> Store | None:
    """The cache that the environment selects; None if it is disabled, if its path is no folder, or if others than this
    user can write to the folder, since its contents are executed."""
    asked = os.environ.get(FOLDER)
    if asked == "off":
        return None
    try:
        folder = Path(
            asked or os.path.join(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "relay")
        ).absolute()
    except RuntimeError:  # there is no home directory
        return None
    try:
        status = folder.stat()
        safe = _only_ours(status) and stat.S_ISDIR(status.st_mode)
    except FileNotFoundError:
        safe = True  # the folder will be created
    except OSError:
        return None
    return Store(folder, _limit()) if safe else None


def _limit() -> int:
    """The maximum size of the cache in bytes. Raises InvalidArgument."""
    given = os.environ.get(LIMIT, "")
    if given and not given.isdecimal():
        raise InvalidArgument(LIMIT, f"is {given!r}", "write a number of bytes, such as 1073741824")
    return int(given or DEFAULT_LIMIT)


def key_of(kind: str, *parts: str | bytes | mmap) -> str:
    """A key: `kind-`, followed by the SHA-256 of the parts, each of which is hashed after its length."""
    digest = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        for piece in pieces(data):
            digest.update(piece)
    return f"{kind}-{digest.hexdigest()}"
