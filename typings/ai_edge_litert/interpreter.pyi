from enum import Enum
from typing import Any

import numpy as np

class OpResolverType(Enum):
    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3

class Interpreter:
    def __init__(
        self,
        model_path: str | None = None,
        model_content: bytes | None = None,
        experimental_delegates: object = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = ...,
        experimental_preserve_all_tensors: bool = False,
    ) -> None: ...
    def allocate_tensors(self) -> None: ...
    def get_input_details(self) -> list[dict[str, Any]]: ...
    def get_output_details(self) -> list[dict[str, Any]]: ...
    def set_tensor(self, tensor_index: int, value: np.ndarray[Any, np.dtype[Any]]) -> None: ...
    def get_tensor(self, tensor_index: int) -> np.ndarray[Any, np.dtype[Any]]: ...
    def invoke(self) -> None: ...
