"""Reads a `.pt2` archive: a zip file with the graph as JSON and each weight as raw bytes.

PyTorch is not needed, and nothing is unpickled: a weight that is stored as a pickle is refused. Uncompressed entries,
as PyTorch writes them, are views of the file's bytes. Source: torch/export/pt2_archive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.dialects.builtin import bf16

from relay.dialects.attributes import Array
from relay.dialects.element_types import dtype_of
from relay.errors import Malformed, Unsupported
from relay.frontend.importing.archives import Json, Zip
from relay.frontend.importing.options import MAX_ELEMENTS

MAJOR = 8
"""The major version of the graph's schema; minor versions only add fields."""
DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8), 2: np.dtype(np.int8), 3: np.dtype(np.int16), 4: np.dtype(np.int32), 5: np.dtype(np.int64),
    6: np.dtype(np.float16), 7: np.dtype(np.float32), 8: np.dtype(np.float64), 12: np.dtype(np.bool_),
    28: np.dtype(np.uint16),
}  # fmt: skip
"""The element types by their numbers in the schema, except bfloat16."""
BFLOAT16 = 13
DTYPE_NAMES = {9: "complex32", 10: "complex64", 11: "complex128", 29: "float8_e4m3fn", 30: "float8_e5m2"}


class Archive:
    """A file of `torch.export.save`: `program` is the exported program as JSON; `weights` has the description of each
    weight and constant by name, and `array` reads one of them."""

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self.zip = Zip(data, file, "give a file that torch.export.save wrote")
        self.entries = self.zip.entries
        names = [name for name in self.entries if name.rpartition("/")[2] == "archive_format"]
        if not names:
            if any(name.endswith("/data.pkl") for name in self.entries):
                what, hint = "is a pickle of torch.save, which is never loaded", "torch.export.save(program, path)"
                raise Unsupported(file, what, f"export the module, and save it by {hint}")
            if any(name.endswith("serialized_exported_program.json") for name in self.entries):
                what = "was written by a PyTorch before 2.8, whose archives hold pickles"
                raise Unsupported(file, what, "load and save it again with a newer PyTorch")
            raise Malformed(file, "has no entry archive_format", "give a file that torch.export.save wrote")
        self.root = names[0][: -len("archive_format")]
        self.program = self.model()
        self.weights = {**self.index("weights", "model_weights"), **self.index("constants", "model_constants")}

    def model(self) -> Json:
        """The program in the archive, which must be its only one."""
        start = f"{self.root}models/"
        names = [name for name in self.entries if name.startswith(start) and name.endswith(".json")]
        if len(names) != 1:
            raise Unsupported(self.file, f"holds {len(names)} programs", "save one program in a file")
        if (byteorder := self.entries.get(f"{self.root}byteorder")) is not None:
            order = bytes(self.zip.bytes(byteorder))
            if order != b"little":
                raise Unsupported(self.file, f"its byte order is {order[:20]!r}", "save it on a little-endian machine")
        program = self.zip.json(names[0])
        version = program.get("schema_version")
        major: object = cast(Json, version).get("major") if isinstance(version, dict) else None
        if major != MAJOR:
            what = f"the graph's schema is of version {version}"
            raise Unsupported(self.file, what, f"save it with a PyTorch whose major version of the schema is {MAJOR}")
        return program

    def index(self, folder: str, name: str) -> dict[str, tuple[str, Json]]:
        """The folder in the archive and the description of each weight, by the weight's name, as listed in the file
        `NAME_config.json`; empty if there is no such file."""
        path = f"{self.root}data/{folder}/{name}_config.json"
        if path not in self.entries:
            return {}
        config = self.zip.json(path).get("config")
        if not isinstance(config, dict):
            raise Malformed(self.file, f"{path} has no config")
        return {key: (f"{self.root}data/{folder}/", row) for key, row in cast("dict[str, Json]", config).items()}

    def array(self, name: str) -> Array:
        """The weight of this name, as an array that shares the file's bytes."""
        where = f"{self.file}: weight {name!r}"
        if name not in self.weights:
            raise Malformed(where, "is not in the archive")
        folder, row = self.weights[name]
        try:
            if row.get("use_pickle"):
                hint = "unwrap tensor subclasses before the export (torchao: unwrap_tensor_subclass)"
                raise Unsupported(where, "is stored as a pickle, which is never loaded", hint)
            meta: Json = row["tensor_meta"]
            dtype, sizes = dtype_of_number(meta["dtype"], where), integers(meta["sizes"])
            strides, offset = integers(meta["strides"]), integers([meta["storage_offset"]])[0]
            entry = self.entries[f"{folder}{row['path_name']}"]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Malformed(where, f"is not described: {type(error).__name__} {error}") from None
        data = self.zip.bytes(entry)
        if len(sizes) != len(strides) or min((*sizes, *strides, offset), default=0) < 0 or prod(sizes) > MAX_ELEMENTS:
            raise Malformed(where, f"has the shape {sizes}, strides {strides} and offset {offset}")
        if not prod(sizes):
            return np.zeros(sizes, dtype)
        reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if (offset + reach + 1) * dtype.itemsize > len(data):
            raise Malformed(where, f"of shape {sizes} is longer than its {len(data)} bytes")
        flat = np.frombuffer(data, np.uint8, (reach + 1) * dtype.itemsize, offset * dtype.itemsize)
        flat = flat != 0 if dtype == np.bool_ else flat.view(dtype)
        return as_strided(flat, sizes, [stride * dtype.itemsize for stride in strides], writeable=False)


def integers(sizes: Sequence[Mapping[str, object]]) -> list[int]:
    """Sizes that are integers. Raises ValueError for symbolic ones."""
    found = [size.get("as_int") for size in sizes]
    if not all(isinstance(size, int) for size in found):
        raise ValueError(f"sizes {found}")
    return cast("list[int]", found)


def dtype_of_number(number: object, where: str) -> np.dtype[Any]:
    """The element type with this number in the schema."""
    if number == BFLOAT16:
        return dtype_of(bf16)
    found = DTYPES.get(number) if isinstance(number, int) else None
    if found is None:
        name = DTYPE_NAMES.get(number, number) if isinstance(number, int) else number
        raise Unsupported(where, f"has the element type {name}", "booleans, integers and floats are supported")
    return found
