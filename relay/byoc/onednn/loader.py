"""Runs programs of `onednn` through the C library. Imports nothing of the compiler."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from relay.byoc.onednn.library import Library
from relay.byoc.onednn.primitives import Memories, build
from relay.byoc.onednn.program import KIND, Program
from relay.runtime import programs
from relay.runtime.memory import Array, aligned_bytes


class Session(programs.ProgramLoader):
    """A program with its primitives, which work on the caller's tensors without copies. Concurrent calls are
    serialized, since primitives write intermediate results to the session's memory."""

    kind: ClassVar[str] = KIND

    def prepare(self) -> None:
        program, threads = Program.of(self.program, self.arrays), programs.threads_of(self.params)
        self._threads = threads
        self._library = Library()
        self._lock = threading.Lock()
        outside = {*program.inputs, *program.outputs}
        self._buffers = [
            np.array(program.constants[number]) if number in program.constants else aligned_bytes(size)
            for number, size in enumerate(program.sizes)
        ]
        self._memories = Memories(self._library, [buffer.ctypes.data for buffer in self._buffers])
        former = self._library.limit(threads)
        self._primitives = [build(self._library, self._memories, step) for step in program.steps]
        if former:
            self._library.limit(former)
        for number in outside:
            self._buffers[number] = np.empty(0, np.uint8)
        self._numbers = [*program.inputs, *program.outputs]

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        library = self._library
        with self._lock:
            for number, array in zip(self._numbers, (*inputs, *outputs), strict=True):
                self._memories.move(number, array.ctypes.data)
            former = library.limit(self._threads)
            for primitive in self._primitives:
                library.execute(primitive.handle, primitive.count, primitive.arguments)
            library.wait()
            if former:
                library.limit(former)
