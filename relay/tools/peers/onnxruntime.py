"""ONNX Runtime's CPU provider, on the `.onnx` file of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from relay.tools.peers import Array, Session, Skipped

PACKAGE = "onnxruntime"


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """`InferenceSession.run()` timed."""
    path = model.with_suffix(".onnx")
    if not path.exists():
        raise Skipped(f"there is no {path.name}")
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    feed = dict(zip(names, inputs, strict=True))
    return Session(lambda: session.run(None, feed), lambda: session.run(None, feed))
