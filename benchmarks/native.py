"""The memory a compiled model runs on, and its entry points, as close to C as ctypes comes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from relay.runtime import Executable
from relay.runtime.memory import address, aligned_bytes
from relay.tools.peers import Array


class Memory:
    """Inputs, outputs, constants and arena of a model, and the table of their addresses: keep it while it is used."""

    def __init__(self, executable: Executable, inputs: Sequence[Array] | None = None):
        graph, params = executable.graph, executable.params
        constants, arena = aligned_bytes(graph["constants_bytes"]), aligned_bytes(graph["arena_bytes"])
        for entry in graph["constants"]:
            data = np.ascontiguousarray(params[entry["name"]]).reshape(-1).view(np.uint8)
            constants[entry["offset"] : entry["offset"] + data.size] = data
        given = inputs or [np.zeros(spec.shape, spec.dtype) for spec in executable.inputs]
        self.inputs = [np.array(array, spec.dtype) for array, spec in zip(given, executable.inputs, strict=True)]
        self.outputs = [np.zeros(spec.shape, spec.dtype) for spec in executable.outputs]
        self.blocks = [*self.inputs, *self.outputs, constants, arena]
        self.table = (ctypes.c_uint64 * (len(self.blocks) + 1))(*map(address, self.blocks))  # the last: no threads

    @property
    def pointer(self) -> int:
        """The address that an entry point takes."""
        return ctypes.addressof(self.table)
