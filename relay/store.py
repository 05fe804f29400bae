"""A folder of compiled code by key, for builds to come: safe under several writers, bounded, never needed.

What is read is run. So a file is taken only if it and the folder belong to this user, if nobody else may write to them,
and if it was written under the key that it is looked up by: it begins with the SHA-256 of the key and the data.

`RELAY_CACHE_DIR` names the folder; `off` means that there is none. By default it is `relay` in `XDG_CACHE_HOME`, or in
`~/.cache`. `RELAY_CACHE_BYTES` bounds it (default: 1 GiB): what was not used for longest goes first.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from relay.mapping import contents, pieces, used

FOLDER, LIMIT = "RELAY_CACHE_DIR", "RELAY_CACHE_BYTES"
DEFAULT_LIMIT = 1 << 30
SUM_BYTES = 64
"""The SHA-256, and zeros: what is mapped begins at a multiple of 64 bytes."""
OURS = re.compile(r"\w+-[0-9a-f]{64}|\.\w+-[0-9a-f]{64}\.\d+\.\d+")
"""Names of what is kept, as `key_of` makes them, and of what is being written."""


class Entry(NamedTuple):
    """A file that is kept."""

    used: float
    """When it was last used, in seconds."""
    size: int
    path: str


@dataclass(frozen=True)
class Store:
    """Bytes by key (a name for a file), under a folder of which `limit` bytes may be used."""

    folder: Path
    limit: int = DEFAULT_LIMIT

    def get(self, key: str) -> bytes | None:
        """What was put under the key; None if nothing was, or it is damaged or cannot be read."""
        found = self.view(key)
        return None if found is None else bytes(found)

    def view(self, key: str) -> memoryview | None:
        """The same as a view of bytes that are mapped if they are many."""
        try:
            found = self._read(key)
        except (OSError, MemoryError):
            return None
        path = self.folder / key
        with suppress(OSError):  # a file system that is read only
            os.utime(path)
        data = memoryview(found)[SUM_BYTES:]
        if _sum(key, data) != found[:SUM_BYTES]:
            with suppress(OSError):
                path.unlink()
            return None
        return data

    def _read(self, key: str) -> bytes | mmap:
        """The file of the key. Raises OSError, also if somebody else owns it or the folder, or may write to them."""
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
        """Keep the bytes in their order, if that can be done: nobody sees half of them, a full disk is no error."""
        scratch = self.folder / f".{key}.{os.getpid()}.{threading.get_ident()}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(scratch, "wb", opener=_private) as file:
                file.write(_sum(key, *data))
                for part in data:
                    file.write(part)
                    used(len(part))
            scratch.replace(self.folder / key)
            self.trim()
        except OSError:
            pass
        finally:  # an interrupt leaves nothing behind either; what is in place is there no more
            with suppress(OSError):
                scratch.unlink()

    def entries(self) -> list[Entry]:
        """What is kept, oldest use first; files that no store puts there are none of ours."""
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
        """Delete what was not used for longest while more than `limit` bytes are kept."""
        self._delete(self.limit)

    def clear(self) -> tuple[int, int]:
        """Delete what is kept; how many entries were, and their bytes."""
        return self._delete(-1)

    def _delete(self, limit: int) -> tuple[int, int]:
        """Delete the oldest entries until at most so many bytes are left; their number and bytes."""
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
    """What a file begins with."""
    digest = sha256(key.encode() + b"\0")
    for part in data:
        for piece in pieces(part):
            digest.update(piece)
    return digest.digest().ljust(SUM_BYTES, b"\0")


def _only_ours(status: os.stat_result) -> bool:
    """Whether this user owns it and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _private(path: str, flags: int) -> int:
    """Open a file that only this user can write to, whatever the process's mask says."""
    return os.open(path, flags, 0o600)


def store() -> Store | None:
    """The store that the environment names; None if it names none, or others than this user can write to it: what
    lies there is run."""
    asked = os.environ.get(FOLDER)
    if asked == "off":
        return None
    try:
        folder = Path(
            asked or os.path.join(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "relay")
        ).absolute()
    except RuntimeError:  # nobody's home
        return None
    try:
        safe = _only_ours(folder.stat())
    except FileNotFoundError:
        safe = True  # it will be made
    except OSError:
        return None
    return Store(folder, _limit()) if safe else None


def _limit() -> int:
    given = os.environ.get(LIMIT, "")
    return int(given) if given.isdecimal() else DEFAULT_LIMIT


def key_of(kind: str, *parts: str | bytes | mmap) -> str:
    """A key of these parts, each told from the next."""
    digest = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        for piece in pieces(data):
            digest.update(piece)
    return f"{kind}-{digest.hexdigest()}"
