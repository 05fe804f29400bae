from collections.abc import Sequence
from typing import Any

import numpy as np

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int
    def add_session_config_entry(self, key: str, value: str) -> None: ...

class NodeArg:
    name: str

class IOBinding:
    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: np.dtype[Any],
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None: ...
    def bind_output(
        self,
        name: str,
        device_type: str = ...,
        device_id: int = ...,
        element_type: np.dtype[Any] | None = ...,
        shape: Sequence[int] | None = ...,
        buffer_ptr: int | None = ...,
    ) -> None: ...

class InferenceSession:
    def __init__(
        self,
        path_or_bytes: str | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str] | None = None,
    ) -> None: ...
    def get_inputs(self) -> list[NodeArg]: ...
    def get_outputs(self) -> list[NodeArg]: ...
    def io_binding(self) -> IOBinding: ...
    def run_with_iobinding(self, iobinding: IOBinding) -> None: ...
    def run(
        self, output_names: Sequence[str] | None, input_feed: dict[str, np.ndarray[Any, np.dtype[Any]]]
    ) -> list[np.ndarray[Any, np.dtype[Any]]]: ...
