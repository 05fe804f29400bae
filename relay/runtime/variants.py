"""The file format of an executable whose tensor sizes are given at run time. The file has a variant for each set of
sizes, and one block of constants, where a constant that several variants use is stored once, under the hash of its
type, shape and bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from relay.errors import Malformed, RelayError
from relay.runtime import archive, container, tensors
from relay.runtime.interface import Interface, Key
from relay.runtime.memory import Array

TABLE = "dynamic.json"


def pieces(interface: Interface, saved: Mapping[Key, archive.Saved]) -> Sequence[bytes | memoryview]:
    """Encode an executable with open sizes as a file: return the file's bytes in consecutive pieces, so that constants
    are not copied. `saved`: the variants by the sizes, and the input values, for which each was built."""
    block: dict[str, Array] = {}
    rows: list[dict[str, Any]] = []
    codes: dict[str, bytes] = {}
    for number, (key, parts) in enumerate(saved.items()):
        names: dict[str, str] = {}
        for name, array in parts.params.items():
            names[name] = hash_of(array)
            block[names[name]] = array
        values = [data.hex() for data in key.values]
        rows.append({"sizes": key.sizes, "values": values, "graph": parts.graph, "params": names})
        rows[-1]["artifacts"] = list(parts.artifacts)
        codes |= {f"code/{number}": parts.code, f"claims/{number}": parts.claims}
        codes |= {f"artifacts/{number}/{i}": data for i, data in enumerate(parts.artifacts.values())}
    table = {**interface.to_json(), "variants": rows}
    constants = tensors.pieces(block, {}, 0)
    return container.pieces({TABLE: json.dumps(table).encode(), "constants.safetensors": constants, **codes})


def hash_of(array: Array) -> str:
    """The key of a constant: a hash of dtype, shape and bytes."""
    data = np.ascontiguousarray(array)
    digest = sha256(f"{data.dtype} {array.shape} ".encode())
    digest.update(data.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def unpack(
    parts: Mapping[str, memoryview], where: str, here: bool = True
) -> tuple[Interface, dict[Key, Callable[[], archive.Saved]]]:
    """Decode a file's parts to the interface and a loader for each variant. Raises Malformed, or InvalidArgument if
    this machine lacks a feature that the code needs; with `here=False`, code for any machine is accepted."""
    try:
        table = archive.json_of(parts[TABLE], dict[str, Any])
        interface = Interface.from_json(table)
        block, _ = tensors.unpack(np.frombuffer(parts["constants.safetensors"], np.uint8), where)
        made: dict[Key, Callable[[], archive.Saved]] = {}
        for number, row in enumerate(table["variants"]):
            if here:
                archive.check_host(row["graph"], where)
            params = {str(name): block[digest] for name, digest in row["params"].items()}
            artifacts = {str(name): f"artifacts/{number}/{i}" for i, name in enumerate(row["artifacts"])}
            key = Key(tuple(map(int, row["sizes"])), tuple(map(bytes.fromhex, row["values"])))
            made[key] = partial(_saved, parts, row["graph"], number, params, artifacts)
            if not {f"code/{number}", f"claims/{number}", *artifacts.values()} <= parts.keys():
                raise ValueError("code is missing")
            interface.checked(key)
    except RelayError:
        raise
    except container.WRONG as error:
        raise Malformed(where, f"is no saved executable: {error}") from None
    return interface, made


def _saved(
    parts: Mapping[str, memoryview],
    graph: dict[str, Any],
    number: int,
    params: dict[str, Array],
    artifacts: Mapping[str, str],
) -> archive.Saved:
    found = {name: bytes(parts[part]) for name, part in artifacts.items()}
    code, claims = (bytes(parts[f"{kind}/{number}"]) for kind in ("code", "claims"))
    return archive.Saved(graph, code, params, None, found, claims)
