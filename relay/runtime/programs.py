"""Artifacts as a program and arrays, and loaders that run them in Python: the base of an external compiler's runtime.

`pack` encodes a JSON-serializable program and named arrays; `unpack` decodes them, and rejects bytes that are damaged
or belong to another compiler. A subclass of `ProgramLoader` is a loader. The bytes: `MAGIC`, the length of the header
(8 bytes, little-endian), the CRC-32 of all that follows (4 bytes), the header as JSON, and the arrays, each at a
multiple of 64 bytes from the start.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from relay.errors import Malformed
from relay.runtime.memory import ALIGNMENT, Array, Form, dtype_named

MAGIC = b"relay-program 1\n"
START = len(MAGIC) + 12


def pack(kind: str, program: object, arrays: Mapping[str, Array] | None = None) -> bytes:
    """The bytes of an artifact. `kind` is the format of the program, usually the compiler's name and a version;
    `program` is any value that `json.dumps` accepts (tuples become lists). Raises TypeError or ValueError for other
    values."""
    blob, places = bytearray(), dict[str, tuple[int, str, tuple[int, ...]]]()
    for name, array in (arrays or {}).items():
        blob += bytes(-len(blob) % ALIGNMENT)
        places[name] = len(blob), array.dtype.name, array.shape
        blob += np.ascontiguousarray(array).tobytes()
    header = json.dumps({"kind": kind, "program": program, "arrays": places}, separators=(",", ":")).encode()
    header += b" " * (-(START + len(header)) % ALIGNMENT)
    sizes = len(header).to_bytes(8, "little") + crc32(blob, crc32(header)).to_bytes(4, "little")
    return MAGIC + sizes + header + bytes(blob)


def unpack(kind: str, artifact: bytes, where: str = "artifact") -> tuple[Any, dict[str, Array]]:
    """The program and the arrays of an artifact; the arrays are read-only views of its bytes.

    Raises Malformed, naming `where`, for bytes that are damaged or of another kind.
    """
    if not artifact.startswith(MAGIC) or len(artifact) < START:
        raise Malformed(where, f"is no program of {kind}", "build the model again")
    start = START + int.from_bytes(artifact[len(MAGIC) : START - 4], "little")
    if crc32(memoryview(artifact)[START:]) != int.from_bytes(artifact[START - 4 : START], "little"):
        raise Malformed(where, f"is a damaged program of {kind}: its checksum differs", "build the model again")
    header = json.loads(artifact[START:start])
    if header["kind"] != kind:
        raise Malformed(where, f"is a program of {header['kind']}, not of {kind}", "build the model again")
    arrays = {
        name: np.frombuffer(artifact, dtype_named(dtype), prod(shape), start + offset).reshape(shape)
        for name, (offset, dtype, shape) in header["arrays"].items()
    }
    return header["program"], arrays


def threads_of(params: Mapping[str, Array]) -> int:
    """The number of threads that a compiler requested by the constant `threads` of `Artifact.params`; 1 without it."""
    return int(params.get("threads", np.int32(1)))


class ProgramLoader(ABC):
    """A program that `pack` wrote, ready to run in Python. A compiler's loader is a subclass: `relay.runtime.loaders`
    calls it with the arguments below, and calls the instance for each run.

    A subclass sets `kind`, prepares data for all runs in `prepare`, and computes in `__call__`. An exception of
    `prepare` becomes Malformed when the executable is loaded, one of `__call__` a RelayError of the run; both name the
    function.
    """

    kind: ClassVar[str]
    """The format of the program, as given to `pack`."""

    def __init__(
        self, artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
    ) -> None:
        self.params = params
        """The constants that the compiler left to the executable, by name."""
        self.program, self.arrays = unpack(self.kind, artifact, f"external function {symbol}")
        self.prepare()

    def prepare(self) -> None:
        """Called once, when the executable is loaded; does nothing unless overridden."""
        return

    @abstractmethod
    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute and fill the outputs. If the compiler asked for a workspace (scratch memory), it is the last array of
        `outputs`. Several threads may call this method at the same time."""
