"""Files are written: all of one or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import cast

from relay.errors import InvalidArgument


def folder_of(path: object) -> Path:
    """The path of a folder. Raises InvalidArgument for what is none."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument("export", f"{path!r} is no folder", "give its path")
    return Path(cast("str | os.PathLike[str]", path))


def write_folder(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write the files into the folder, which is made; their paths. Raises InvalidArgument where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(str(folder), f"cannot be made: {error.strerror or error}") from None
    for name, content in files.items():
        replace_file(folder / name, content)
    return [folder / name for name in files]


def replace_file(path: str | Path, data: bytes) -> None:
    """Put a file in place at once, so that nobody sees half of it; never one in place of a device or a pipe. Raises
    InvalidArgument where it cannot be."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidArgument(str(path), "cannot be written: it is there, and no file")
    folder, name = os.path.split(path)
    scratch = Path(folder, f".{name}.{os.getpid()}.{get_ident()}")
    try:
        with open(scratch, "xb") as file:
            file.write(data)
        os.replace(scratch, path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink()
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror or error}") from None
