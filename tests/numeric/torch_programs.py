"""`.pt2` archives written without PyTorch: graphs of a few calls, for tests of the importer."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np

from relay.dialects.attributes import Array

Json = dict[str, Any]
NUMBERS = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "bool": 12,
}  # fmt: skip
"""Element types in the schema."""


def tensor(name: str) -> Json:
    return {"as_tensor": {"name": name}}


def described(shape: Sequence[int | str], dtype: str) -> Json:
    """A tensor's entry in the graph; a text is the symbol of an open size."""
    sizes = [
        {"as_int": each} if isinstance(each, int) else {"as_expr": {"expr_str": f"Symbol('{each}', integer=True)"}}
        for each in shape
    ]
    strides = [
        int(np.prod([each for each in shape[axis + 1 :] if isinstance(each, int)])) for axis in range(len(shape))
    ]
    return {
        "dtype": NUMBERS[dtype], "sizes": sizes, "strides": [{"as_int": each} for each in strides],
        "storage_offset": {"as_int": 0}, "layout": 7,
    }  # fmt: skip


def invoke(target: str, arguments: Mapping[str, Json], *outputs: str) -> Json:
    """A node; `torch.ops` stands before operators of ATen and others."""
    inputs = [{"name": name, "arg": arg, "kind": 1} for name, arg in arguments.items()]
    return {
        "target": f"torch.ops.{target}",
        "inputs": inputs,
        "outputs": [tensor(o) for o in outputs],
        "name": outputs[0],
    }


def archive(
    nodes: Sequence[Json],
    inputs: Mapping[str, tuple[Sequence[int | str], str]],
    outputs: Sequence[str],
    types: Mapping[str, tuple[Sequence[int | str], str]] | None = None,
    weights: Mapping[str, Array] | None = None,
    buffers: Sequence[str] = (),
    **program: Any,
) -> bytes:
    """The bytes of an archive. `types` are those of tensors that no input is; some weights are buffers."""
    constants: Mapping[str, Array] = weights or {}
    known: dict[str, tuple[Sequence[int | str], str]] = {**inputs, **(types or {})}
    known |= {name: (each.shape, each.dtype.name) for name, each in constants.items()}
    kinds = {name: "buffer" if name in buffers else "parameter" for name in constants}
    specs: list[Json] = [{kind: {"arg": {"name": n}, f"{kind}_name": n}} for n, kind in kinds.items()]
    specs += [{"user_input": {"arg": tensor(name)}} for name in inputs]
    graph = {
        "inputs": [tensor(name) for name in known], "outputs": [tensor(name) for name in outputs], "nodes": nodes,
        "tensor_values": {name: described(*each) for name, each in known.items()}, "sym_int_values": {},
    }  # fmt: skip
    signature = {"input_specs": specs, "output_specs": [{"user_output": {"arg": tensor(name)}} for name in outputs]}
    config = {n: {"path_name": n, "use_pickle": False, "tensor_meta": described(*known[n])} for n in constants}
    whole = {
        "graph_module": {"graph": graph, "signature": signature}, "schema_version": {"major": 8, "minor": 20},
        "range_constraints": {}, **program,
    }  # fmt: skip
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": config}))
        for name, array in constants.items():
            file.writestr(f"m/data/weights/{name}", array.tobytes())
        file.writestr("m/models/model.json", json.dumps(whole))
        file.writestr("m/archive_format", "pt2")
        file.writestr("m/byteorder", "little")
    return data.getvalue()
