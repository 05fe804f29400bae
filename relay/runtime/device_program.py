"""A model on a device: constants are uploaded once; a run is one graph of an upload, launches, a download."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

ALIGNMENT = 256


class Driver(Protocol):
    """What is needed of a driver; see `relay.runtime.cuda_driver.CudaDriver`."""

    def enter(self) -> None: ...
    def allocate(self, size: int) -> int: ...
    def free(self, address: int) -> None: ...
    def allocate_host(self, size: int) -> int: ...
    def free_host(self, address: int) -> None: ...
    def upload(self, to: int, start: int, size: int, stream: int) -> None: ...
    def download(self, to: int, start: int, size: int, stream: int) -> None: ...
    def load(self, code: bytes) -> int: ...
    def unload(self, module: int) -> None: ...
    def function(self, module: int, name: str, shared: int) -> int: ...
    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        buffers: Sequence[int],
    ) -> None: ...
    def stream(self) -> int: ...
    def free_stream(self, stream: int) -> None: ...
    def wait(self, stream: int) -> None: ...
    def begin(self, stream: int) -> None: ...
    def end(self, stream: int) -> int: ...
    def replay(self, graph: int, stream: int) -> None: ...
    def free_graph(self, graph: int) -> None: ...


class DeviceProgram:
    """Runs a model on a device; one run at a time."""

    def __init__(self, driver: Driver, code: bytes, graph: Mapping[str, Any]):
        self.driver = driver
        driver.enter()
        self.launches = [dict(row) for row in graph["device"]["launches"]]
        sizes = [bytes_of(row) for row in graph["inputs"]]
        self.inputs = len(sizes)
        sizes += [bytes_of(row) for row in graph["outputs"]]
        self.sizes = sizes
        self.offsets, self.total = offsets_of(sizes)
        self.constants_bytes = int(graph["constants_bytes"])
        self.module = driver.load(code)
        self.stream = driver.stream()
        self.staging = driver.allocate_host(self.total)
        self.tensors = driver.allocate(self.total)
        self.constants = driver.allocate(self.constants_bytes)
        self.arena = driver.allocate(int(graph["device"]["arena_bytes"]))
        memory = [self.tensors, self.constants, self.arena]
        self.graphs: list[int] = []
        self.close = weakref.finalize(
            self, release, driver, self.graphs, memory, self.staging, self.module, self.stream
        )

    def __call__(self, table: int) -> None:
        """One run: the table has the host's addresses of inputs, outputs, and constants."""
        self.driver.enter()
        addresses = (ctypes.c_uint64 * (len(self.sizes) + 1)).from_address(table)
        if not self.graphs:
            self.driver.upload(self.constants, addresses[len(self.sizes)], self.constants_bytes, self.stream)
            self.driver.wait(self.stream)
            self.graphs.append(self.record())
        for number in range(self.inputs):
            ctypes.memmove(self.staging + self.offsets[number], addresses[number], self.sizes[number])
        self.driver.replay(self.graphs[0], self.stream)
        self.driver.wait(self.stream)
        for number in range(self.inputs, len(self.sizes)):
            ctypes.memmove(addresses[number], self.staging + self.offsets[number], self.sizes[number])

    def record(self) -> int:
        """The whole run as a graph."""
        driver, stream = self.driver, self.stream
        functions = {
            row["kernel"]: driver.function(self.module, row["kernel"], int(row["shared"])) for row in self.launches
        }
        places = [self.tensors + offset for offset in self.offsets] + [self.constants, self.arena]
        given = self.offsets[self.inputs] if self.inputs < len(self.sizes) else self.total
        driver.begin(stream)
        driver.upload(self.tensors, self.staging, given, stream)
        for row in self.launches:
            buffers: list[int] = [places[slot] + offset for slot, offset in row["arguments"]]
            driver.launch(functions[row["kernel"]], row["grid"], row["block"], int(row["shared"]), stream, buffers)
        driver.download(self.staging + given, self.tensors + given, self.total - given, stream)
        return driver.end(stream)


def bytes_of(row: Mapping[str, Any]) -> int:
    """The size of an input or output."""
    return prod(row["shape"]) * np.dtype(row["dtype"]).itemsize


def offsets_of(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where tensors lie behind each other, and where the last one ends."""
    found: list[int] = []
    end = 0
    for size in sizes:
        found.append(end)
        end += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    return found, end


def release(
    driver: Driver, graphs: Sequence[int], memory: Sequence[int], staging: int, module: int, stream: int
) -> None:
    """Give everything back."""
    driver.enter()
    driver.wait(stream)
    for graph in graphs:
        driver.free_graph(graph)
    for address in memory:
        driver.free(address)
    driver.free_host(staging)
    driver.unload(module)
    driver.free_stream(stream)
