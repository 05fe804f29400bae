"""The result of a build: a graph, machine code and constants, as a file, as object code, or in parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import UnsupportedOperation
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relay.doors import door
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.files import folder_of, replace_file, write_folder
from relay.mapping import room, used
from relay.runtime import archive
from relay.runtime.container import WRONG
from relay.runtime.library import Library
from relay.runtime.memory import Array, aligned_bytes
from relay.runtime.specification import TensorSpec

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import SupportsWrite

EXPORTED = ("o", "a", "so")
"""The kinds of files that `export` writes: an object, a static library, a shared library."""
MOST_BYTES = 1 << 47
"""The size of a 47-bit address space in bytes, which an arena cannot reach."""


@contextmanager
def reading_graph(what: str = "is") -> Generator[None]:
    """In a `with` block that reads a graph, raise Malformed in place of the errors that a graph of another form causes.
    `what` begins the message `{what} not what relay.build writes`: for example, "externals are"."""
    try:
        yield
    except RelayError:
        raise
    except WRONG as error:
        raise Malformed("graph", f"{what} not what relay.build writes: {error!r}") from None


class Artifact:
    """A compiled model as a build made it. Raises Malformed for a graph that is not relay.build's, InvalidArgument for
    constants that are not the graph's."""

    def __init__(
        self,
        graph: str | Mapping[str, Any],
        library: Library,
        params: Mapping[str, Array],
        constants: Array | None = None,
        claims: bytes = b"",
    ):
        """`graph`: the description of inputs, outputs, constants and memory, as JSON text or its value; `library`: the
        machine code; `params`: the constants by name. `constants`: the bytes that native code reads, if `params` are
        views of them already. `claims`: compressed JSON that states what each kernel of the machine code computes,
        which `relay certify` checks."""
        self._params = dict(params)
        self.library, self.claims = library, claims
        with reading_graph():
            self._graph = cast(dict[str, Any], json.loads(graph)) if isinstance(graph, str) else dict(graph)
            self.inputs = [TensorSpec.from_json(entry) for entry in self._graph["inputs"]]
            self.outputs = [TensorSpec.from_json(entry) for entry in self._graph["outputs"]]
            self._constants = self._assemble() if constants is None else constants
            self._arena_bytes = int(self._graph["arena_bytes"])
            self._length = int(self._graph.get("length", 0))  # at most; 0 where it is known
            if not 0 <= self._arena_bytes < MOST_BYTES:
                raise ValueError(f"an arena of {self._arena_bytes} bytes")

    def _assemble(self) -> Array:
        """Copy the constants to their planned offsets, and make `params` views of them."""
        size = int(self._graph["constants_bytes"])
        if (blob := room(size)) is None:
            blob = aligned_bytes(size)
        for entry in self._graph["constants"]:
            name, shape, dtype, offset = entry["name"], entry["shape"], np.dtype(entry["dtype"]), int(entry["offset"])
            array = np.require(self._param(name), requirements=["C"])
            if list(array.shape) != list(shape) or array.dtype != dtype:
                wrong = f"is {array.dtype}{list(array.shape)}; {dtype}{list(shape)} is needed"
                raise InvalidArgument(f"params['{name}']", wrong)
            flat = array.reshape(-1).view(np.uint8)
            blob[offset : offset + flat.size] = flat
            used(flat.size)
            self._params[name] = blob[offset : offset + flat.size].view(dtype).reshape(array.shape)
            self._params[name].flags.writeable = False
        return blob

    @property
    def constants(self) -> Array:
        """The bytes of all constants, at their planned offsets."""
        return self._constants

    def constants_digest(self) -> bytes:
        """The SHA-256 of the constants and their offsets."""
        digest = sha256(json.dumps(self._graph["constants"]).encode())
        digest.update(self._constants.data)
        return digest.digest()

    def share_constants(self, other: Artifact) -> None:
        """Use another executable's memory for equal constants. Must be called before the first run."""
        if "device" not in self._graph:
            self._constants = other._constants
            shared = {row["name"] for row in self._graph["constants"]}
            self._params |= {name: array for name, array in other._params.items() if name in shared}

    def _param(self, name: str) -> Array:
        if name not in self._params:
            raise InvalidArgument(f"params['{name}']", "is missing")
        return self._params[name]

    def __iter__(self) -> Iterator[Any]:
        """Unpack as `graph, lib, params = executable`, for TVM's interface."""
        return iter((json.dumps(self._graph), self.library, dict(self._params)))

    def to_json(self) -> dict[str, Any]:
        """The inputs, outputs, target, number of kernels, and sizes in bytes, as numbers, strings and lists."""
        return {
            "target": self._graph["target"],
            "inputs": self._graph["inputs"],
            "outputs": self._graph["outputs"],
            "kernels": len(self._graph["kernels"]),
            "bytes": {
                "code": len(self.library.code),
                "constants": self._graph["constants_bytes"],
                "arena": self._arena_bytes,
            },
        }

    def __repr__(self) -> str:
        lines = [f"  {spec.kind:6} {spec}" for spec in (*self.inputs, *self.outputs)]
        return "\n".join([self._head(), *lines])

    def _repr_html_(self) -> str:
        from html import escape  # here: for notebooks only

        rows = [("", "name", "type", "shape", "scale", "zero point")]
        rows += [spec.cells() for spec in (*self.inputs, *self.outputs)]
        table = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return f"<p>{escape(self._head())}</p><table>{table}</table>"

    def _head(self) -> str:
        """The heading of the notebook view: target and sizes."""
        row = self.to_json()
        target, sizes = row["target"], ", ".join(f"{size} bytes of {name}" for name, size in row["bytes"].items())
        return f"Executable for {target['triple']} ({target['cpu']}): {row['kernels']} kernels, {sizes}"

    @property
    def graph(self) -> dict[str, Any]:
        """The description of the compiled program: kernels, buffers, offsets, inputs and outputs, as in its JSON."""
        return self._graph

    @property
    def params(self) -> dict[str, Array]:
        """The constants in compiled form (weights packed), by name."""
        return dict(self._params)

    def get_source(self, kind: str = "ll") -> str:
        """The text the code was made from: "mlir" (before translation), "ll" (LLVM IR) or "asm"."""
        if kind not in self.library.sources:
            known = ", ".join(sorted(self.library.sources)) or "none"
            raise InvalidArgument(f"get_source({kind!r})", "is not there", f"the sources are: {known}")
        return self.library.sources[kind]()

    def save(self, file: str | PathLike[str] | SupportsWrite[bytes]) -> None:
        """Write one file that `relay.runtime.load` reads: graph, code for the target, constants, and the artifacts of
        external compilers. `file` is a path, or a file open for writing bytes. Raises InvalidArgument if it cannot be
        written."""
        if not isinstance(file, str | PathLike) and callable(write := getattr(file, "write", None)):
            try:
                write(self.to_bytes())
            except (TypeError, UnsupportedOperation):
                raise InvalidArgument("save", f"{file!r} takes no bytes", "open it with 'wb'") from None
            return
        replace_file(archive.path_of(file), *self.pieces())

    export_library = save
    """TVM's name of `save`."""

    def export(self, folder: str | PathLike[str], name: str = "relay_model", kind: str = "o") -> list[Path]:
        """Write files for use from C and C++, and return their paths: `NAME.o`, object code for the target with the
        weights inside, `NAME.h`, its declarations, `NAME.md`, a description, and `NAME.cmake`, a library for CMake.
        With `kind` "a", `libNAME.a` replaces the object, with "so" `libNAME.so`, for Linux and Android on x86-64 and
        aarch64.

        The code needs no runtime; it is linked with the C library and libm. If external compilers made parts,
        `NAME_regions.c` starts their devices by the vendors' C functions (see docs/bring_your_own_codegen.md). Raises
        Unsupported if a part has no such functions, the executable is for a GPU or for sequences of any length, or it
        was loaded from a file; InvalidArgument if the name is no identifier of C or the files cannot be written.
        """
        target = folder_of(folder)
        if "device" in self._graph:
            raise Unsupported("export", "a GPU's code has no object files", "save(path) writes one file")
        if self._length:
            hint = "build for a length: relay.build(..., shapes={...})"
            raise Unsupported("export", f"the code is for any length up to {self._length}", hint)
        if self.library.export is None:
            raise Unsupported("export", "what was loaded from a file cannot be exported", "build it again")
        if kind not in EXPORTED:
            raise InvalidArgument("export", f"the kind {kind!r} is not known", f"known are {', '.join(EXPORTED)}")
        return write_folder(target, self.library.export(name, kind))

    def certify(self, bits: int = 64) -> Any:
        """Check the machine code against the formulas that the compiler claims for it. Returns a
        `relay.validation.Report` that lists which parts are proved, tested (a wrong coefficient of a sum is missed with
        a probability below 2^-bits) and not checked. See docs/certificates.md."""
        return certify(self.to_bytes(), bits)

    def to_bytes(self) -> bytes:
        """The bytes of a saved file, which `relay.runtime.load` reads."""
        return b"".join(self.pieces())

    def pieces(self) -> Sequence[bytes | memoryview]:
        """The bytes of a saved file in pieces; large ones share the executable's memory."""
        return archive.pieces(self.parts())

    def parts(self) -> archive.Saved:
        """The parts of a saved file. Raises Unsupported for a target for which no shared objects are made."""
        library = self.library
        if not library.code:
            hint = "export(folder) writes its object code"
            raise Unsupported("save", f"no shared object for {self._graph['target']['triple']} is made", hint)
        return archive.Saved(self._graph, library.code, self._params, self._constants, library.artifacts, self.claims)


def certify(data: bytes, bits: int) -> Any:
    """Check the machine code of a saved executable by `relay.validation`, and return the certificate. `bits`: random
    tests go on until they miss a wrong coefficient with a probability below 2^-bits."""
    check, _ = door("relay.runtime", {"relay.validation": "certify"})
    return cast("Callable[[bytes, int], Any]", check("certify"))(data, bits)
