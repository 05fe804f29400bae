"""A whole model on the emulator: upload, all launches, download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.lowering.gpu.emulator.bulk import Mapped
from relay.lowering.gpu.emulator.machine import Emulator, aligned
from relay.lowering.gpu.tensor_maps import MAP_BYTES


def memory_of(graph: Mapping[str, Any], params: Mapping[str, Array], inputs: Sequence[Array]) -> list[Array]:
    """Return the memory of each argument of @main: inputs, outputs, constants, arena."""
    found: list[Array] = []
    for value in inputs:
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        found.append(aligned(flat.size))
        found[-1][:] = flat
    for row in graph["outputs"]:
        found.append(aligned(prod(row["shape"]) * np.dtype(row["dtype"]).itemsize))
    constants = aligned(int(graph["constants_bytes"]))
    for row in graph["constants"]:
        flat = np.ascontiguousarray(params[row["name"]]).reshape(-1).view(np.uint8)
        constants[row["offset"] : row["offset"] + flat.size] = flat
    return [*found, constants, aligned(int(graph["device"]["arena_bytes"]))]


def run_model(
    graph: Mapping[str, Any], emulator: Emulator, params: Mapping[str, Array], inputs: Sequence[Array]
) -> list[Array]:
    """Return the outputs of a model that was built for a GPU, from its graph, kernels and constants. States are inputs,
    too. Raises Unsupported if the host has work between launches."""
    if "steps" in graph["device"]:
        raise Unsupported("run_model", "the host decides, or calls functions, between the model's launches")
    memory = memory_of(graph, params, inputs)
    for row in graph["device"]["launches"]:
        buffers: list[Array] = [memory[slot][offset:] for slot, offset in row["arguments"]]
        maps = {int(map["argument"]): Mapped(buffers[int(map["argument"])], map) for map in row.get("maps", ())}
        for number in maps:
            buffers[number] = aligned(MAP_BYTES)
        emulator.launch(row["kernel"], row["grid"][0], row["block"][0], buffers, row["shared"], maps)
    first = len(inputs)
    return [
        memory[first + number].view(row["dtype"]).reshape(row["shape"]).copy()
        for number, row in enumerate(graph["outputs"])
    ]
