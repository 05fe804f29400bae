"""Records what Keras gives for small models and random weights: the cases that `test_keras_layers.py` replays.

    KERAS_BACKEND=jax python -m tests.numeric.keras_recording tests/numeric/keras_cases.tar.xz

Needs keras and jax beside relay. A case is a `.keras` file, and its inputs and outputs as `.npz`.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from relay.runtime.arrays import npz_of
from tests.numeric.keras_calls import Row, rows

BATCH, STEPS = 2, 6
"""Of inputs whose first size, or another one, is open."""


def model_of(name: str, row: Row) -> Any:
    """The model with random weights, quantized if the row says so."""
    keras: Any = import_module("keras")
    inputs = [keras.Input(shape, dtype=row.dtype, name=f"x{i}") for i, shape in enumerate(row.shapes)]
    model = keras.Model(inputs if len(inputs) > 1 else inputs[0], row.build(*inputs), name=name)
    randomized(model, np.random.default_rng(len(name)))
    if row.quantized:
        model.quantize("int8")
    return model


def randomized(model: Any, rng: Any, size: float = 0.5) -> None:
    """Random weights; variances are positive."""
    for weight in model.weights:
        if "float" in str(weight.dtype):
            drawn: Any = rng.standard_normal(weight.shape) * size
            drawn = drawn**2 + 0.5 if "variance" in weight.path else drawn
            weight.assign(drawn.astype(np.float32))


def results(model: Any, inputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """What Keras gives, in the order of the module's results."""
    tree: Any = import_module("keras").tree
    found: Any = model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)
    return [np.asarray(each) for each in tree.flatten(found)]


def case(name: str, row: Row) -> tuple[bytes, bytes]:
    rng = np.random.default_rng(len(name) + 1)
    shapes = [(BATCH, *(STEPS if size is None else size for size in shape)) for shape in row.shapes]
    inputs = [
        rng.standard_normal(shape).astype(row.dtype)
        if "float" in row.dtype
        else rng.integers(0, 2 if row.dtype == "bool" else 6, shape).astype(row.dtype)
        for shape in shapes
    ]
    model = model_of(name, row)
    arrays = {f"in{i}": each for i, each in enumerate(inputs)}
    arrays |= {f"out{i:02}": each for i, each in enumerate(results(model, inputs))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.keras"
        model.save(path)
        return path.read_bytes(), npz_of(arrays)


def main(path: str, *only: str) -> None:
    found = rows()
    with tarfile.open(path, "w:xz") as archive:
        for name in sorted(only or found):
            try:
                files = case(name, found[name])
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {error}")
                continue
            for suffix, data in zip(("keras", "npz"), files, strict=True):
                entry = tarfile.TarInfo(f"{name}.{suffix}")
                entry.size = len(data)
                archive.addfile(entry, BytesIO(data))
    print(f"{len(found)} cases, {Path(path).stat().st_size} bytes")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
