"""The functions that import TFLite operators, in one module for each kind of operator. Importing this package enters
all of them in `TABLE`."""

from __future__ import annotations

from relay.frontend.tflite.operators import (
    activation,
    arithmetic,
    control,
    convolution,
    creation,
    dense,
    detection,
    elementwise,
    float_functions,
    hybrid,
    image,
    matmul,
    movement,
    pooling,
    quantised_binary,
    quantised_functions,
    quantize,
    recurrent,
    recurrent_floats,
    recurrent_sequences,
    reduce,
    shape,
    slicing,
    spectral,
    tflm,
    transposed,
    tvm,
    xnnpack,
)  # fmt: skip
from relay.frontend.tflite.table import TABLE, join

# Written by `python docs/generate.py`; do not edit: files are found.
join()

__all__ = [
    "TABLE", "activation", "arithmetic", "control", "convolution", "creation", "dense", "detection", "elementwise",
    "float_functions", "hybrid", "image", "matmul", "movement", "pooling", "quantised_binary", "quantised_functions",
    "quantize", "recurrent", "recurrent_floats", "recurrent_sequences", "reduce", "shape", "slicing", "spectral",
    "tflm", "transposed", "tvm", "xnnpack",
]  # fmt: skip
