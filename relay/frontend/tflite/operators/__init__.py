"""The operators by kind. `TABLE` is full once this package is imported."""

from __future__ import annotations

from relay.frontend.tflite.operators import (
    activation,
    arithmetic,
    convolution,
    dense,
    float_functions,
    image,
    matmul,
    pooling,
    quantize,
    recurrent,
    reduce,
    shape,
    slicing,
    transposed,
)
from relay.frontend.tflite.table import TABLE

__all__ = [
    "TABLE",
    "activation",
    "arithmetic",
    "convolution",
    "dense",
    "float_functions",
    "image",
    "matmul",
    "pooling",
    "quantize",
    "recurrent",
    "reduce",
    "shape",
    "slicing",
    "transposed",
]
