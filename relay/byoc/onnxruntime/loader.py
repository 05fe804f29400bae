"""Runs ONNX models by ONNX Runtime in this process. Imports nothing of the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnxruntime

from relay.runtime.memory import Array, Form
from relay.runtime.programs import threads_of

ERRORS = 3
"""The log severity from which messages are shown: errors, but no warnings."""


class Session:
    """A model as a session, on `params["threads"]` threads, by default 1; several threads may call it at once. It works
    on the caller's tensors without copies."""

    def __init__(
        self, artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads_of(params)
        options.inter_op_num_threads = 1
        options.log_severity_level = ERRORS
        self._session = onnxruntime.InferenceSession(artifact, options, providers=["CPUExecutionProvider"])
        self._inputs = [row.name for row in self._session.get_inputs()]
        self._outputs = [row.name for row in self._session.get_outputs()]

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        binding = self._session.io_binding()
        for name, array in zip(self._inputs, inputs, strict=True):
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in zip(self._outputs, outputs, strict=True):
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self._session.run_with_iobinding(binding)
