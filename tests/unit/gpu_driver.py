"""A driver whose device is the emulator: what `relay.runtime.device_program` asks of NVIDIA's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.gpu.emulator import Emulator

emulated = cache(Emulator)
"""What one driver compiled, others run."""


class EmulatedDriver:
    """Memory of the device is memory of its own; what is asked for while something is written down, is not done."""

    name = "emulator"

    def __init__(self, text: str, capability: tuple[int, int] = (9, 0)):
        self.emulator = emulated(text)
        self.capability = capability
        self.memory: dict[int, Array] = {}
        self.handles: dict[int, object] = {}
        self.graphs: dict[int, list[Callable[[], object]]] = {}
        self.recording: list[Callable[[], object]] | None = None
        self.calls: list[str] = []

    def enter(self) -> None:
        self.calls.append("enter")

    def allocate(self, size: int) -> int:
        raw = np.full(size + 512, 0xA5, np.uint8)
        start = raw.ctypes.data + -raw.ctypes.data % 256
        self.memory[start] = raw
        return start

    def free(self, address: int) -> None:
        del self.memory[address]

    allocate_host, free_host = allocate, free

    def do(self, name: str, action: Callable[[], object]) -> None:
        """Do something, or write it down."""
        self.calls.append(name)
        if self.recording is None:
            action()
        else:
            self.recording.append(action)

    def upload(self, to: int, start: int, size: int, stream: int) -> None:
        self.do("upload", lambda: ctypes.memmove(to, start, size))

    download = upload

    def load(self, code: bytes) -> int:
        assert b".visible .entry" in code
        return self.handle(code)

    def handle(self, what: object) -> int:
        """A number for an object."""
        number = len(self.handles) + 1
        self.handles[number] = what
        return number

    def unload(self, module: int) -> None:
        del self.handles[module]

    def function(self, module: int, name: str, shared: int) -> int:
        assert module in self.handles
        return self.handle(name)

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        buffers: Sequence[int],
    ) -> None:
        name = self.handles[function]
        assert isinstance(name, str) and list(grid[1:]) == list(block[1:]) == [1, 1]
        arrays = [self.rest(address) for address in buffers]
        self.do("launch", lambda: self.emulator.launch(name, grid[0], block[0], arrays, shared))

    def rest(self, address: int) -> Array:
        """The memory from an address to the end of what was allocated."""
        for start, raw in self.memory.items():
            end = raw.ctypes.data + raw.nbytes
            if start <= address < end:
                return raw[address - raw.ctypes.data :]
        raise AssertionError(f"{address} is no memory of the device")

    def stream(self) -> int:
        return self.handle("stream")

    def free_stream(self, stream: int) -> None:
        del self.handles[stream]

    def wait(self, stream: int) -> None:
        self.calls.append("wait")

    def begin(self, stream: int) -> None:
        self.recording = []

    def end(self, stream: int) -> int:
        assert self.recording is not None
        number = self.handle("graph")
        self.graphs[number], self.recording = self.recording, None
        return number

    def replay(self, graph: int, stream: int) -> None:
        self.calls.append("replay")
        for action in self.graphs[graph]:
            action()

    def free_graph(self, graph: int) -> None:
        del self.handles[graph], self.graphs[graph]
