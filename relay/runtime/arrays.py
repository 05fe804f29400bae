"""Reads arrays by name from .npz files, and writes them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO

import numpy as np

from relay.errors import Malformed
from relay.runtime.memory import Array


def arrays_of(file: str, hint: str = "numpy.savez(FILE, **inputs) writes one") -> dict[str, Array]:
    """Read the arrays of an .npz file by name. Raises Malformed for any other file, and OSError."""
    try:
        with np.load(file, allow_pickle=False) as data:
            return {name: np.array(data[name]) for name in data.files}
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        raise Malformed(file, "is no .npz file", hint) from None


def npz_of(arrays: Mapping[str, Array]) -> bytes:
    """Encode an .npz file with these arrays; unlike `numpy.savez` it accepts every name."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as whole:
        for name, array in arrays.items():
            with whole.open(f"{name}.npy", "w") as part:
                np.lib.format.write_array(part, array, allow_pickle=False)
    return buffer.getvalue()
