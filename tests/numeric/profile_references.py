"""The runtimes behind the numerics profiles, each a class: a model's bytes, then inputs to outputs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.numeric.litert_models import Array


class Micro:
    """TensorFlow Lite Micro (the wheel `tflite-micro`). Raises RuntimeError or ValueError for what it refuses."""

    def __init__(self, model: bytes) -> None:
        runtime: Any = importlib.import_module("tflite_micro.python.tflite_micro.runtime")
        self._interpreter: Any = runtime.Interpreter.from_bytes(model)

    def run(self, feeds: Sequence[Array], outputs: int) -> list[Array]:
        """The outputs; variables keep what the last run left in them."""
        for number, array in enumerate(feeds):
            self._interpreter.set_input(array, number)
        self._interpreter.invoke()
        return [np.array(self._interpreter.get_output(number)) for number in range(outputs)]


class Delegated:
    """LiteRT as it comes: XNNPACK takes what it can. Raises RuntimeError or ValueError for what it refuses."""

    def __init__(self, model: bytes) -> None:
        litert: Any = importlib.import_module("ai_edge_litert.interpreter")
        self._interpreter: Any = litert.Interpreter(model_content=model, num_threads=1)
        self._interpreter.allocate_tensors()

    def run(self, feeds: Sequence[Array], outputs: int) -> list[Array]:
        interpreter = self._interpreter
        for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
