"""Arrays by name, from a file of NumPy's."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping

import numpy as np

from relay.errors import Malformed
from relay.runtime.memory import Array


def arrays_of(file: str) -> Mapping[str, Array]:
    """The arrays of an .npz file by name. Raises Malformed for what is none; OSError."""
    try:
        with np.load(file, allow_pickle=False) as data:
            return {name: np.array(data[name]) for name in data.files}
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        raise Malformed(file, "is no .npz file", "numpy.savez(FILE, **inputs) writes one") from None
