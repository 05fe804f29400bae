"""Runs a model with LiteRT (TensorFlow Lite) and its XNNPACK delegate."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from relay.tools.peers import Array, Session, Skipped

PACKAGE = "ai-edge-litert"


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """Load the model; `Interpreter.invoke()` is timed, which uses XNNPACK by default. Raises Skipped for other formats
    than .tflite."""
    if model.suffix != ".tflite":
        raise Skipped("reads .tflite only")
    interpreter = import_module("ai_edge_litert.interpreter").Interpreter(str(model), num_threads=threads)
    details = interpreter.get_input_details()
    for detail, array in zip(details, inputs, strict=True):
        if list(detail["shape"]) != list(array.shape):
            interpreter.resize_tensor_input(detail["index"], list(array.shape))
    interpreter.allocate_tensors()
    for detail, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    numbers = [detail["index"] for detail in interpreter.get_output_details()]
    return Session(interpreter.invoke, lambda: [interpreter.get_tensor(number) for number in numbers])
