"""A folder of compiled code by key, for builds to come: safe under several writers, bounded, never needed.

`RELAY_CACHE_DIR` names the folder; `off` means that there is none. By default it is `relay` in `XDG_CACHE_HOME`, or in
`~/.cache`. `RELAY_CACHE_BYTES` bounds it (default: 1 GiB): what was not used for longest goes first.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

FOLDER, LIMIT = "RELAY_CACHE_DIR", "RELAY_CACHE_BYTES"
DEFAULT_LIMIT = 1 << 30
SUM_BYTES = 32
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
        path = self.folder / key
        try:
            found = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # a file system that is read only
            os.utime(path)
        if sha256(memoryview(found)[SUM_BYTES:]).digest() != found[:SUM_BYTES]:
            with suppress(OSError):
                path.unlink()
            return None
        return found[SUM_BYTES:]

    def put(self, key: str, data: bytes) -> None:
        """Keep the bytes, if that can be done: nobody sees half of them, and a full disk is no error."""
        scratch = self.folder / f".{key}.{os.getpid()}.{threading.get_ident()}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(scratch, "wb", opener=_private) as file:
                file.write(sha256(data).digest() + data)
            scratch.replace(self.folder / key)
        except OSError:
            with suppress(OSError):
                scratch.unlink()
        else:
            self.trim()

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
        status = folder.stat()
    except FileNotFoundError:
        return Store(folder, _limit())
    except OSError:
        return None
    safe = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return Store(folder, _limit()) if safe else None


def _limit() -> int:
    given = os.environ.get(LIMIT, "")
    return int(given) if given.isdecimal() else DEFAULT_LIMIT


def key_of(kind: str, *parts: str | bytes) -> str:
    """A key of these parts, each told from the next."""
    digest = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return f"{kind}-{digest.hexdigest()}"
