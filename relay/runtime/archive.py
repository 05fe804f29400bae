"""The file of a saved executable: graph (JSON), code (a shared object), constants, and the artifacts of external
compilers."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from io import UnsupportedOperation
from mmap import mmap
from os import PathLike
from typing import IO, Any, NamedTuple, TypeVar, cast, get_origin

import numpy as np

from relay.errors import InvalidArgument, Malformed
from relay.files import open_file
from relay.mapping import contents
from relay.runtime import container, processor, tensors
from relay.runtime.memory import ALIGNMENT, Array, address, aligned_bytes

Part = TypeVar("Part")


class Saved(NamedTuple):
    """The parts of an executable. `constants`: the bytes that native code reads, of which `params` are views at the
    planned offsets; None if the params are stored elsewhere."""

    graph: dict[str, Any]
    code: bytes
    params: dict[str, Array]
    constants: Array | None
    artifacts: dict[str, bytes]
    claims: bytes = b""
    """The claims that `relay.validation` checks; empty if there are none."""


def pack(saved: Saved) -> bytes:
    """The bytes of the file of a saved executable."""
    return b"".join(pieces(saved))


def pieces(saved: Saved) -> list[bytes | memoryview]:
    """The bytes of the file in pieces, without copying constants."""
    offsets = {row["name"]: int(row["offset"]) for row in saved.graph["constants"]}
    parts: dict[str, container.Part] = {
        "graph.json": json.dumps(saved.graph).encode(),
        "code.so": saved.code,
        "constants.safetensors": tensors.pieces(saved.params, offsets, int(saved.graph["constants_bytes"])),
    }
    if saved.artifacts:
        parts["artifacts.json"] = json.dumps(list(saved.artifacts)).encode()
        parts.update({f"artifacts/{number}": data for number, data in enumerate(saved.artifacts.values())})
    if saved.claims:
        parts["claims"] = saved.claims
    return container.pieces(parts)


def path_of(path: object) -> str:
    """Return the path as a string. Raises InvalidArgument for anything that is not a path."""
    if not isinstance(path, str | PathLike):
        raise InvalidArgument("path", f"{path!r} is none", "give the name of a file")
    named = os.fsdecode(cast("str | PathLike[str]", path))
    if not os.path.basename(named) or "\0" in named:
        raise InvalidArgument(f"path {named!r}", "names no file")
    return named


Source = str | PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""A saved executable: a path, its bytes, or a binary file object."""


def aligned(data: bytes | bytearray | memoryview | mmap) -> Array:
    """The bytes at a multiple of 64, as `unpack` needs them; copied unless they are read-only and aligned already."""
    given = np.frombuffer(data, np.uint8)
    if not given.flags.writeable and address(given) % ALIGNMENT == 0:
        return given
    memory = aligned_bytes(len(data))
    memory[:] = given
    return memory


def read(source: Source) -> tuple[dict[str, memoryview], str]:
    """Read the parts of a saved executable, as views of its bytes, and the name that errors use for it.

    Raises Malformed if the file is not a saved executable or damaged, InvalidArgument if it cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return container.unpack(aligned(source).data, "<bytes>"), "<bytes>"
    if not isinstance(source, str | PathLike) and hasattr(source, "read"):
        try:
            data = cast(object, source.read())
        except (UnicodeDecodeError, UnsupportedOperation):
            data = None
        if not isinstance(data, bytes):
            raise InvalidArgument("load", f"{source!r} gives no bytes", "open it with 'rb'")
        return container.unpack(aligned(data).data, "<bytes>"), "<bytes>"
    path = path_of(source)
    try:
        with open_file(path) as file:
            if file.read(len(container.MAGIC)) != container.MAGIC:  # of any size
                raise Malformed(path, "is no saved executable")
            file.seek(0)
            memory = aligned(contents(file))
    except OSError as error:
        raise InvalidArgument(path, f"cannot be read: {error.strerror}") from None
    except MemoryError:
        raise InvalidArgument(path, "cannot be read: its bytes do not fit into memory") from None
    return container.unpack(memory.data, path), path


def unpack(data: Array, where: str, here: bool = True) -> Saved:
    """Decode an executable from a file's bytes, whose address must be a multiple of 64. `here`: check that this CPU can
    run the code. Raises Malformed and InvalidArgument as `saved` does."""
    return saved(container.unpack(data.data, where), where, here)


def saved(parts: Mapping[str, memoryview], where: str, here: bool = True) -> Saved:
    """Decode an executable from a file's parts. The code may be for any machine if it is not to run `here`.

    Raises Malformed if they are not what `pack` writes, InvalidArgument if this CPU lacks a feature that it needs.
    """
    try:
        graph = json_of(parts["graph.json"], dict[str, Any])
        params, constants = tensors.unpack(np.frombuffer(parts["constants.safetensors"], np.uint8), where)
        if constants.size < int(graph["constants_bytes"]):
            raise ValueError("constants are missing")
        if not {"triple", "cpu"} <= {*graph["target"]} or not isinstance(graph["kernels"], list):
            raise ValueError("it does not say what it is for")
        symbols = json_of(parts["artifacts.json"], list[str]) if graph.get("externals") else []
        artifacts = {symbol: bytes(parts[f"artifacts/{i}"]) for i, symbol in enumerate(symbols)}
        found = Saved(graph, bytes(parts["code.so"]), params, constants, artifacts, bytes(parts.get("claims", b"")))
    except container.WRONG as error:
        raise Malformed(where, f"is no saved executable: {error}") from None
    if here:
        check_host(graph, where)
    return found


def json_of(part: memoryview, kind: type[Part]) -> Part:
    """Parse a JSON part of the file. Raises ValueError unless it has this type."""
    value = json.loads(bytes(part))
    if not isinstance(value, get_origin(kind) or kind):
        raise ValueError(f"a part is no {kind}")
    return cast(Part, value)


def check_host(graph: Mapping[str, Any], where: str) -> None:
    """Raise InvalidArgument if the code is for another machine, or needs features that this one lacks."""
    if (why := foreign(graph, where)) is not None:
        raise InvalidArgument(where, why)


def foreign(graph: Mapping[str, Any], where: str) -> str | None:
    """Why this machine cannot run the code; None if it can, or if the code is for a GPU, which is looked for when the
    model first runs. Raises Malformed if the graph does not name the machine."""
    if "device" in graph:
        return None
    try:
        triple, needed = str(graph["target"]["triple"]), frozenset(str(name) for name in graph["target"]["features"])
    except (LookupError, TypeError):
        raise Malformed(where, "does not say what machine its code is for") from None
    return unfit(triple, needed)


def unfit(triple: str, features: frozenset[str]) -> str | None:
    """Why this machine cannot run code that is compiled for `triple` and needs `features` (LLVM's names); None if it
    can."""
    here = platform.machine()
    if triple.split("-")[0] != here or "linux" not in triple:
        return f"is code for {triple}; this machine is {here} with {platform.system()}"
    missing = processor.lacks(features)
    return f"needs CPU features that are not here: {', '.join(missing)}" if missing else None
