"""Runs a model with OpenVINO's CPU plug-in; float models run in float32, since the plug-in's default may be bfloat16 or
8-bit data."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from relay.tools.peers import Array, Session

PACKAGE = "openvino"


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """Load the model; `start_async(); wait()` is timed."""
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }
    if model.suffix == ".onnx" and not rounds_data(model):
        options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    openvino = import_module("openvino")
    core = openvino.Core()
    read = core.read_model(str(model))
    if read.is_dynamic():
        read.reshape({number: list(array.shape) for number, array in enumerate(inputs)})
    compiled = core.compile_model(read, "CPU", options)
    request = compiled.create_infer_request()
    for number, array in enumerate(inputs):
        request.set_input_tensor(number, openvino.Tensor(np.ascontiguousarray(array)))

    def call() -> None:
        request.start_async()
        request.wait()

    return Session(call, lambda: [request.get_output_tensor(n).data.copy() for n in range(len(compiled.outputs))])


def rounds_data(model: Path) -> bool:
    """Whether the nodes of an ONNX file allow rounding data to 8 bits in products with few-bit weights
    (`accuracy_level` 4)."""
    graph = import_module("onnx").load(str(model), load_external_data=False).graph
    return any(each.name == "accuracy_level" and each.i == 4 for node in graph.node for each in node.attribute)
