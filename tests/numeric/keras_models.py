"""Recorded models of Keras, and models that are written here, without Keras, around the weights of a recorded one."""

from __future__ import annotations

import json
import lzma
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

Json = dict[str, Any]
WEIGHTS = "model.weights.h5"


def _recorded() -> dict[str, bytes]:
    data = lzma.decompress((Path(__file__).parent / "keras_cases.tar.xz").read_bytes())  # at once: in half the time
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        files = ((each.name, archive.extractfile(each)) for each in archive.getmembers())
        return {name: file.read() for name, file in files if file is not None}


CASES = _recorded()
"""By name: `.keras` files, and `.npz` files of their inputs and outputs."""


def parts(data: bytes) -> dict[str, bytes]:
    """The entries of an archive."""
    with ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(entries: dict[str, bytes], method: int = 0) -> bytes:
    stream = BytesIO()
    with ZipFile(stream, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return stream.getvalue()


def archive(model: Json, weights: str = "identity") -> bytes:
    """A file of a model with the weights of a recorded one."""
    return zipped({"config.json": json.dumps(model).encode(), WEIGHTS: parts(CASES[f"{weights}.keras"])[WEIGHTS]})


def tensor(
    name: str, number: int = 0, place: int = 0, shape: Sequence[int | None] = (), dtype: str = "float32"
) -> Json:
    """An argument that is the result of a layer."""
    config = {"shape": list(shape), "dtype": dtype, "keras_history": [name, number, place]}
    return {"class_name": "__keras_tensor__", "config": config}


def row(kind: str, config: Json, nodes: Sequence[Json] = (), module: str = "keras.layers") -> Json:
    return {
        "module": module,
        "class_name": kind,
        "config": config,
        "inbound_nodes": list(nodes),
        "name": config["name"],
    }


def functional(rows: Sequence[Json], inputs: Any, outputs: Any, name: str = "model") -> Json:
    config = {"name": name, "layers": list(rows), "input_layers": inputs, "output_layers": outputs}
    return row("Functional", config, module="keras")


def inputs(*shapes: Sequence[int | None], dtype: str = "float32") -> list[Json]:
    return [
        row("InputLayer", {"name": f"x{i}", "batch_shape": list(shape), "dtype": dtype})
        for i, shape in enumerate(shapes)
    ]


def one(
    kind: str,
    *shapes: Sequence[int | None],
    weights: str = "identity",
    ops: bool = False,
    dtype: str = "float32",
    kwargs: Json | None = None,
    more: Sequence[Any] = (),
    **config: Any,
) -> bytes:
    """A model of one layer, or of one operation of `keras.ops`, called on all inputs and `more`."""
    tensors = [tensor(f"x{i}", shape=shape, dtype=dtype) for i, shape in enumerate(shapes)]
    node = {"args": [*tensors, *more], "kwargs": kwargs or {}}
    layer = row(kind, {"name": "y", **config}, [node], "keras.src.ops.numpy" if ops else "keras.layers")
    rows = [*inputs(*shapes, dtype=dtype), layer]
    return archive(functional(rows, [[f"x{i}", 0, 0] for i in range(len(shapes))], [["y", 0, 0]]), weights)
