"""The file of a saved executable: a zip archive of the graph (JSON), object code, constants (npz) and the artifacts of
external compilers."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from typing import Any, TypeVar, cast, get_origin

import numpy as np

from relay.errors import InvalidArgument, Malformed
from relay.runtime.memory import Array

FORMAT = 1
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What reading a damaged archive raises."""

Part = TypeVar("Part")


def write(
    path: str | PathLike[str],
    graph: Mapping[str, Any],
    code: bytes,
    params: Mapping[str, Array],
    artifacts: Mapping[str, bytes],
) -> None:
    """Write the parts; constants and artifacts by number, since their names may hold anything."""
    arrays = io.BytesIO()
    np.savez(arrays, *params.values())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("format", str(FORMAT))
        archive.writestr("graph.json", json.dumps(graph))
        archive.writestr("code.o", code)
        archive.writestr("params.json", json.dumps(list(params)))
        archive.writestr("params.npz", arrays.getvalue())
        if artifacts:
            archive.writestr("artifacts.json", json.dumps(list(artifacts)))
            for number, data in enumerate(artifacts.values()):
                archive.writestr(f"artifacts/{number}", data)


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], bytes, dict[str, Array], dict[str, bytes]]:
    """The parts of a saved executable, for a machine like this one.

    Raises Malformed if the file is none of ours or damaged, InvalidArgument if this CPU lacks a feature it needs.
    """
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                if archive.read("format").decode() != str(FORMAT):
                    raise Malformed(str(path), "is of another format version", "build the model again")
                graph = json_of(archive, "graph.json", dict[str, Any])
                code = archive.read("code.o")
                names = json_of(archive, "params.json", list[str])
                with np.load(io.BytesIO(archive.read("params.npz")), allow_pickle=False) as arrays:
                    params = {name: arrays[f"arr_{i}"] for i, name in enumerate(names)}
                symbols = json_of(archive, "artifacts.json", list[str]) if graph.get("externals") else []
                artifacts = {symbol: archive.read(f"artifacts/{i}") for i, symbol in enumerate(symbols)}
        except DAMAGED as error:
            raise Malformed(str(path), f"is no saved executable: {error}") from None
    check_host(graph, str(path))
    return graph, code, params, artifacts


def json_of(archive: zipfile.ZipFile, name: str, kind: type[Part]) -> Part:
    """A part of the archive that is JSON of this kind."""
    value = json.loads(archive.read(name))
    if not isinstance(value, get_origin(kind) or kind):
        raise ValueError(f"{name} is no {kind}")
    return cast(Part, value)


def check_host(graph: Mapping[str, Any], where: str) -> None:
    """Raise InvalidArgument if the code is for another machine, or needs features that this one lacks."""
    import llvmlite.binding as llvm

    here = llvm.get_process_triple()
    try:
        triple, needed = str(graph["target"]["triple"]), {str(name) for name in graph["target"]["features"]}
    except (LookupError, TypeError):
        raise Malformed(where, "does not say what machine its code is for") from None
    if triple.split("-")[0] != here.split("-")[0]:
        raise InvalidArgument(where, f"is code for {triple}; this machine is {here}")
    features = {name for name, there in llvm.get_host_cpu_features().items() if there}
    missing = sorted(needed - features)
    if missing:
        raise InvalidArgument(where, f"needs CPU features that are not here: {', '.join(missing)}")
