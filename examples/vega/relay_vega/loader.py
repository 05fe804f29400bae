"""Runs what `vega` made, by the C library. Imports nothing of the compiler."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from relay.runtime import Native, open_device

SOURCE = Path(__file__).with_name("vega.c")


@cache
def library() -> ctypes.CDLL:
    """The vendor's library, compiled for this process."""
    with TemporaryDirectory() as folder:
        made = Path(folder) / "libvega.so"
        subprocess.run(["cc", "-std=c99", "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(made)], check=True)
        return ctypes.CDLL(str(made))


def load(
    artifact: bytes, symbol: str, params: Mapping[str, np.ndarray], inputs: Sequence[Any], outputs: Sequence[Any]
) -> Native:
    return open_device(library(), "vega", artifact, symbol, params)
