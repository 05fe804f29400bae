"""Reading of files, except those that may be endless, and atomic writing of files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, BytesIO
from mmap import mmap
from pathlib import Path
from threading import get_ident
from typing import Self, cast

from relay.errors import InvalidArgument


class NamedBytes(bytes):
    """The bytes of a file with the file's name, for use in locations and errors."""

    name: str

    def __new__(cls, data: bytes | mmap, name: str) -> Self:
        self = super().__new__(cls, data)
        self.name = name
        return self


def name_of(model: object) -> str:
    """The name of a model in locations: the file name of its path or of its `NamedBytes`, or `<bytes>`."""
    if isinstance(model, bytes | bytearray | memoryview | mmap):
        return model.name if isinstance(model, NamedBytes) else "<bytes>"
    return os.path.basename(os.fspath(cast("str | os.PathLike[str]", model)))


def open_file(path: str | os.PathLike[str], pipe: bool = False) -> BufferedReader:
    """Open a file for reading. A pipe is only opened if `pipe` is true, because reading from one may block for ever.
    Raises OSError, also for devices."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if pipe else os.O_NONBLOCK))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    file = os.fdopen(descriptor, "rb")
    empty = stat.S_ISCHR(mode) and os.path.realpath(path) == os.devnull
    if not (stat.S_ISREG(mode) or empty or (pipe and stat.S_ISFIFO(mode))):
        file.close()
        what = "it is a pipe" if stat.S_ISFIFO(mode) else "it is a device"
        raise OSError(errno.EINVAL, what, os.fspath(path))
    return file


def read_file(path: str | os.PathLike[str], pipe: bool = False) -> bytes:
    """Read all bytes of a file. Raises OSError, also for devices and (without `pipe`) pipes, and for a file that does
    not fit into memory."""
    with open_file(path, pipe) as file:
        return read_rest(file)


def read_rest(file: BufferedReader | BytesIO) -> bytes:
    """Read all remaining bytes of an open file. Raises OSError, also if they do not fit into memory."""
    try:
        return file.read()
    except MemoryError:
        raise too_large(file.seek(0, os.SEEK_END)) from None


def too_large(size: int) -> OSError:
    """The OSError for a file of `size` bytes that does not fit into memory."""
    return OSError(errno.ENOMEM, f"its {size} bytes do not fit into memory")


def folder_of(path: object) -> Path:
    """The path of a folder. Raises InvalidArgument if the value is no path."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument("export", f"{path!r} is no folder", "give its path")
    return Path(cast("str | os.PathLike[str]", path))


def write_folder(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write the files into the folder, creating it if necessary. Returns their paths. Raises InvalidArgument if that
    fails."""
    made = not folder.exists()
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(str(folder), f"cannot be made: {error.strerror or error}") from None
        replace_files({folder / name: content for name, content in files.items()})
    except BaseException:  # including KeyboardInterrupt
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise
    return [folder / name for name in files]


def replace_file(path: str | Path, *data: bytes | memoryview) -> None:
    """Write one file, whose content is given in pieces, to a temporary name and then rename it, so that no reader sees
    a partly written file. Raises InvalidArgument if writing fails."""
    replace_files({Path(path): data})


def replace_files(files: Mapping[Path, bytes | Sequence[bytes | memoryview]]) -> None:
    """Write all files to temporary names and then rename them, so that no reader sees a partly written file. Never
    replaces a device or a pipe. Raises InvalidArgument if writing fails."""
    written: list[Path] = []
    path = Path()
    try:
        for path, data in files.items():
            if path.exists() and not path.is_file():
                raise InvalidArgument(str(path), "cannot be written: it is there, and no file")
            scratch = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}")
            written.append(scratch)  # recorded before the file exists, since an interrupt may follow at once
            with open(scratch, "xb") as file:
                file.writelines([data] if isinstance(data, bytes) else data)
                file.flush()
                os.fsync(file.fileno())
        for path, scratch in zip(files, written, strict=True):
            os.replace(scratch, path)
    except OSError as error:
        if isinstance(error, FileExistsError):  # the file belongs to another process
            written.pop()
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror or error}") from None
    finally:
        for scratch in written:  # renamed files no longer exist under these names
            with suppress(OSError):
                scratch.unlink()
