"""Runs .tflite files by LiteRT in this process. Imports nothing of the compiler."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile

from ai_edge_litert.interpreter import Interpreter, OpResolverType

from relay.runtime.memory import Array, Form
from relay.runtime.programs import threads_of

STDERR = 2
_lock = threading.Lock()


@contextmanager
def without_information() -> Generator[None]:
    """A context during which lines that begin with INFO do not reach the standard error stream; other lines are written
    at its end.

    LiteRT announces there that it uses XNNPACK, and has no option to suppress it.
    """
    with _lock, TemporaryFile() as caught:
        try:
            kept = os.dup(STDERR)
        except OSError:  # standard error is closed
            yield
            return
        os.dup2(caught.fileno(), STDERR)
        try:
            yield
        finally:
            os.dup2(kept, STDERR)
            os.close(kept)
            caught.seek(0)
            for line in caught:
                if not line.startswith(b"INFO: "):
                    os.write(STDERR, line)


class Session:
    """A TFLite interpreter for one artifact, called with input and output arrays; concurrent calls are serialized.
    Inputs and outputs are copied, since an interpreter has its own memory."""

    def __init__(self, artifact: bytes, resolver: OpResolverType, threads: int) -> None:
        with without_information():
            self._interpreter = Interpreter(
                model_content=artifact, num_threads=threads, experimental_op_resolver_type=resolver
            )
            self._interpreter.allocate_tensors()
        self._lock = threading.Lock()
        self._inputs = [row["index"] for row in self._interpreter.get_input_details()]
        self._outputs = [row["index"] for row in self._interpreter.get_output_details()]

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        with self._lock:
            for number, array in zip(self._inputs, inputs, strict=True):
                self._interpreter.set_tensor(number, array)
            self._interpreter.invoke()
            for number, array in zip(self._outputs, outputs, strict=True):
                array[...] = self._interpreter.get_tensor(number)


def load(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
) -> Session:
    """Load a .tflite file to be run by XNNPACK; LiteRT's optimised kernels compute the ops that XNNPACK does not
    take."""
    return Session(artifact, OpResolverType.BUILTIN, threads_of(params))


def load_reference(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
) -> Session:
    """Load a .tflite file to be run by LiteRT's reference kernels."""
    return Session(artifact, OpResolverType.BUILTIN_REF, 1)
