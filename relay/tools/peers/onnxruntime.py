"""Runs a model with ONNX Runtime's CPU provider, from the `.onnx` file beside the model's file and of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from relay.tools.peers import Array, Session, Skipped

PACKAGE = "onnxruntime"


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """Load the model; `InferenceSession.run_with_iobinding()` is timed. Raises Skipped if there is no .onnx file."""
    path = model.with_suffix(".onnx")
    if not path.exists():
        raise Skipped(f"there is no {path.name}")
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for port, array in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_cpu_input(port.name, np.ascontiguousarray(array))
    for port in session.get_outputs():
        binding.bind_output(port.name)
    return Session(lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu)
