"""Arrays in the format of safetensors, at chosen offsets.

The format: 8 bytes with the size of a JSON header, the header `{name: {dtype, shape, data_offsets}}`, then the data
without holes. So the padding between two arrays is stored as a tensor of its own, `__padding.N`; names of arrays that
start with two underscores get two more, since the format keeps `__metadata__` for itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from relay.errors import Malformed, Unsupported
from relay.runtime.memory import ALIGNMENT, Array

PADDING = "__padding."
DTYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
KINDS = {short: np.dtype(name) for name, short in DTYPES.items()}


def pack(arrays: Mapping[str, Array], offsets: Mapping[str, int], size: int) -> bytes:
    """Encode the arrays: those in `offsets` at these offsets within the first `size` bytes, the others after them at
    multiples of 64."""
    return b"".join(pieces(arrays, offsets, size))


def pieces(arrays: Mapping[str, Array], offsets: Mapping[str, int], size: int) -> list[bytes | memoryview]:
    """The arrays encoded as safetensors, as pieces to be joined, so that no array is copied: those in `offsets` at
    these offsets within the first `size` bytes of the data, the others after them at multiples of 64."""
    placed = sorted((offset, name) for name, offset in offsets.items())
    end = size
    for name in arrays:
        if name not in offsets:
            end = -(-end // ALIGNMENT) * ALIGNMENT
            placed.append((end, name))
            end += arrays[name].nbytes
    data, header = list[bytes | memoryview](), dict[str, dict[str, Any]]()
    last = 0
    for offset, name in [*placed, (end, "")]:
        if offset > last:
            row = {"dtype": "U8", "shape": [offset - last], "data_offsets": [last, offset]}
            header[f"{PADDING}{len(header)}"] = row
            data.append(bytes(offset - last))
            last = offset
        if name:
            array = np.ascontiguousarray(arrays[name])
            if array.dtype.name not in DTYPES:
                raise Unsupported(f"constant '{name}'", f"of {array.dtype} cannot be saved")
            last = offset + array.nbytes
            data.append(array.reshape(-1).view(np.uint8).data)
            row = {"dtype": DTYPES[array.dtype.name], "shape": [*arrays[name].shape], "data_offsets": [offset, last]}
            header[f"__{name}" if name.startswith("__") else name] = row
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return [len(text).to_bytes(8, "little") + text, *data]


def unpack(part: Array, where: str) -> tuple[dict[str, Array], Array]:
    """Decode the bytes of a file in the format of safetensors. Returns the arrays by name, as read-only views, and the
    bytes of the data part. Raises Malformed if the bytes end before the header does, and errors of Python for a header
    that is not of this format."""
    size = int.from_bytes(part[:8].tobytes(), "little")
    if size + 8 > part.size:
        raise Malformed(where, "holds no constants")
    header = cast(dict[str, dict[str, Any]], json.loads(part[8 : 8 + size].tobytes()))
    data = part[8 + size :]
    data.flags.writeable = False
    found: dict[str, Array] = {}
    for name, row in header.items():
        if name.startswith(PADDING):
            continue
        start, end = row["data_offsets"]
        array = data[start:end].view(KINDS[row["dtype"]]).reshape(row["shape"])
        found[name[2:] if name.startswith("__") else name] = array
    return found, data
