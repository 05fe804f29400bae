"""Large arrays in memory-mapped files: model files, saved executables, and weights during a build.

The kernel may drop the pages of a mapped file at any time and reads them again when they are used. A build moves the
large arrays that it computes into unnamed files (`spilled`) and gives pages back between weights (`release`), so that
it needs memory for a few weights at a time instead of all. These files are created in the cache's folder; without a
cache, or where a file cannot be created, arrays stay in memory.
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
"""The size in bytes from which a file is mapped instead of read."""
SPILLED = 1 << 18
"""The size in bytes from which an array that a build computes is moved to a file."""
SEGMENT = 1 << 30
"""The size in bytes of the address space of a file in which a build stores arrays; several arrays share a file, and
only the parts that are written take disk space."""
UNRELEASED = 64 << 20
"""The number of bytes of mapped files that a build reads or writes before it gives the files' pages back to the
operating system."""
_PAGE = 4096


class NamelessFile:
    """A mapped temporary file without a name, deleted with the last array in it. Raises OSError."""

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
        """The number of bytes that have not been allocated yet."""
        return self.size - self._used

    def take(self, size: int) -> npt.NDArray[Any]:
        """Allocate the next bytes of the file, from the start of a page. Raises OSError if the disk is full (without
        the check, writing would end the process)."""
        import numpy as np

        start = self._used
        os.posix_fallocate(self._file, start, size)
        self._used = min(start + -(-size // _PAGE) * _PAGE, self.size)
        return np.frombuffer(self.memory, np.uint8, size, start)


class Build:
    """The files that a build has mapped; new ones are created in `folder`, if it is not None."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.maps: list[mmap] = []
        self.unreleased = 0
        self._file: NamelessFile | None = None

    def room(self, size: int) -> npt.NDArray[Any]:
        """Return an array of `size` bytes, mapped to a nameless file in `self.folder`, that starts at a page. Raises
        OSError if the folder is None, or the file cannot be created."""
        if self.folder is None:
            raise OSError("there is no folder")
        if self._file is None or self._file.left < size:
            self._file = NamelessFile(self.folder, max(size, SEGMENT))
            self.maps.append(self._file.memory)
        return self._file.take(size)

    def used(self, size: int) -> None:
        """Record that this many bytes were read or written, and give pages back to the kernel after every `UNRELEASED`
        bytes."""
        self.unreleased += size
        if self.unreleased >= UNRELEASED:
            self.release()

    def release(self) -> None:
        """Give the pages of all mapped files back to the kernel."""
        self.unreleased = 0
        for each in self.maps:
            each.madvise(MADV_DONTNEED)


_BUILD: ContextVar[Build | None] = ContextVar("_BUILD", default=None)


@contextmanager
def build_files(folder: Path | None) -> Generator[None]:
    """A context for a build that limits the memory of large models: in it, `spilled` copies arrays to temporary files
    in the folder, and the pages of files that `contents` maps are returned to the operating system after use."""
    token = _BUILD.set(Build(folder))
    try:
        yield
    finally:
        _BUILD.reset(token)


def contents(file: BufferedReader) -> bytes | mmap:
    """All bytes of an open file, mapped if there are at least `LARGE`. Raises OSError."""
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
    """During a build, record that this many bytes of mapped files were read or written and are not needed soon."""
    if (build := _BUILD.get()) is not None:
        build.used(size)


def release() -> None:
    """During a build, give the pages of its mapped files back to the kernel, which reads them again when they are
    used."""
    if (build := _BUILD.get()) is not None:
        build.release()


def pieces(data: bytes | mmap | memoryview) -> Iterator[memoryview]:
    """Iterate over the bytes in pieces; the pages of a piece may be given back when the next piece is requested."""
    view = memoryview(data)
    for start in range(0, len(view), UNRELEASED):
        piece = view[start : start + UNRELEASED]
        yield piece
        used(len(piece))


def room(size: int) -> npt.NDArray[Any] | None:
    """Allocate page-aligned bytes in a memory-mapped temporary file of the current build (see `build_files`). Returns
    None outside of a build, for fewer than `SPILLED` bytes, and if no file can be created."""
    build = _BUILD.get()
    if build is None or size < SPILLED:
        return None
    try:
        return build.room(size)
    except OSError:
        return None


def spilled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of the array in a file of the current build; the array itself if it is small, or already a view of a
    file's bytes."""
    if array.nbytes < SPILLED or _is_of_file(array) or (found := room(array.nbytes)) is None:
        return array
    found = found.view(array.dtype).reshape(array.shape)
    found[...] = array
    used(array.nbytes)
    return found


def _is_of_file(array: npt.NDArray[Any]) -> bool:
    """Whether the array's memory is a mapped file, or bytes read from a file."""
    owner: object = array
    while (base := getattr(owner, "base", None)) is not None:
        owner = base
    return isinstance(owner.obj if isinstance(owner, memoryview) else owner, mmap | bytes)
