from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

def load(data: bytes) -> dict[str, np.ndarray[Any, np.dtype[Any]]]: ...
def save(
    tensor_dict: Mapping[str, np.ndarray[Any, np.dtype[Any]]], metadata: dict[str, str] | None = None
) -> bytes: ...
def save_file(
    tensor_dict: Mapping[str, np.ndarray[Any, np.dtype[Any]]],
    filename: str | PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None: ...
