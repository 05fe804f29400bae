"""Large arrays in files that are mapped into memory: model files, saved executables, and weights during a build.

The kernel may drop the pages of a mapped file at any time, and reads them again when they are used. A build moves the
large arrays that it makes into files without a name (`spilled`), and gives pages back between weights (`release`): it
needs memory for a few weights, not for all of them. The files lie in the cache's folder; without a cache, or where a
file cannot be made, arrays stay in memory.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from relay.files import read_rest, too_large

if TYPE_CHECKING:
    import numpy.typing as npt

LARGE = 16 << 20
"""Bytes from which a file is mapped instead of read."""
SPILLED = 1 << 18
"""Bytes from which an array that a build makes is moved to a file."""
SEGMENT = 1 << 30
"""Bytes of address space of a file that such arrays share. The disk has room for those that are written only."""
UNRELEASED = 64 << 20
"""Bytes that are used until pages are given back."""
_PAGE = 4096


class NamelessFile:
    """A file without a name, mapped; it is gone with the last array in it. Raises OSError."""

    def __init__(self, folder: Path, size: int):
        from tempfile import TemporaryFile  # here: programs that only run what was built do not need it

        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.truncate(size)
            self.memory, self._file = mmap(file.fileno(), size), os.dup(file.fileno())
        finalize(self.memory, os.close, self._file)
        self.size, self._used = size, 0

    @property
    def left(self) -> int:
        """Bytes that are not taken."""
        return self.size - self._used

    def take(self, size: int) -> npt.NDArray[Any]:
        """The next bytes, from the start of a page. Raises OSError where the disk has no room: to write there without
        asking would end the process."""
        import numpy as np

        start = self._used
        os.posix_fallocate(self._file, start, size)
        self._used = min(start + -(-size // _PAGE) * _PAGE, self.size)
        return np.frombuffer(self.memory, np.uint8, size, start)


class Build:
    """The files that a build has mapped; those that it makes lie in the folder, if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.maps: list[mmap] = []
        self.unreleased = 0
        self._file: NamelessFile | None = None

    def room(self, size: int) -> npt.NDArray[Any]:
        """Bytes in a file. Raises OSError."""
        if self.folder is None:
            raise OSError("there is no folder")
        if self._file is None or self._file.left < size:
            self._file = NamelessFile(self.folder, max(size, SEGMENT))
            self.maps.append(self._file.memory)
        return self._file.take(size)

    def used(self, size: int) -> None:
        """So many bytes were read or written."""
        self.unreleased += size
        if self.unreleased >= UNRELEASED:
            self.release()

    def release(self) -> None:
        """Give all pages back to the kernel."""
        self.unreleased = 0
        for each in self.maps:
            each.madvise(MADV_DONTNEED)


_BUILD: ContextVar[Build | None] = ContextVar("_BUILD", default=None)


@contextmanager
def build_files(folder: Path | None) -> Generator[None]:
    """Inside, `spilled` moves arrays to files in the folder, and pages of what `contents` maps are given back."""
    token = _BUILD.set(Build(folder))
    try:
        yield
    finally:
        _BUILD.reset(token)


def contents(file: BufferedReader) -> bytes | mmap:
    """All bytes of an open file, mapped if they are many. Raises OSError."""
    size = os.fstat(file.fileno()).st_size
    if size < LARGE:
        return read_rest(file)
    if size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise too_large(size)
    found = mmap(file.fileno(), 0, access=ACCESS_READ)
    if (build := _BUILD.get()) is not None:
        build.maps.append(found)
    return found


def used(size: int) -> None:
    """In a build: so many bytes of mapped files were read or written, and are not needed soon."""
    if (build := _BUILD.get()) is not None:
        build.used(size)


def release() -> None:
    """In a build: give the pages of its mapped files back to the kernel, which reads them again when they are used."""
    if (build := _BUILD.get()) is not None:
        build.release()


def pieces(data: bytes | mmap | memoryview) -> Iterator[memoryview]:
    """The bytes from the first to the last, none of which is needed when the next ones are asked for."""
    view = memoryview(data)
    for start in range(0, len(view), UNRELEASED):
        piece = view[start : start + UNRELEASED]
        yield piece
        used(len(piece))


def room(size: int) -> npt.NDArray[Any] | None:
    """Bytes in a file of the build, from the start of a page; None outside of a build, for few bytes, and where there
    can be no file."""
    build = _BUILD.get()
    if build is None or size < SPILLED:
        return None
    try:
        return build.room(size)
    except OSError:
        return None


def spilled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in a file of the build; the array itself if it is small, or a view of a file's bytes already."""
    if array.nbytes < SPILLED or _is_of_file(array) or (found := room(array.nbytes)) is None:
        return array
    found = found.view(array.dtype).reshape(array.shape)
    found[...] = array
    used(array.nbytes)
    return found


def _is_of_file(array: npt.NDArray[Any]) -> bool:
    """Whether the numbers lie in a file that is mapped, or was read as a whole."""
    owner: object = array
    while (base := getattr(owner, "base", None)) is not None:
        owner = base
    return isinstance(owner.obj if isinstance(owner, memoryview) else owner, mmap | bytes)
