"""The operators by kind. `TABLE` is full once this package is imported."""

from __future__ import annotations

from relay.frontend.tflite.operators import (
    activation,
    arithmetic,
    control,
    convolution,
    creation,
    dense,
    elementwise,
    float_functions,
    image,
    matmul,
    movement,
    pooling,
    quantised_binary,
    quantised_functions,
    quantised_products,
    quantised_words,
    quantize,
    recurrent,
    recurrent_sequences,
    reduce,
    shape,
    slicing,
    spectral,
    transposed,
)
from relay.frontend.tflite.table import TABLE, join

join()

__all__ = [
    "TABLE",
    "activation",
    "arithmetic",
    "control",
    "convolution",
    "creation",
    "dense",
    "elementwise",
    "float_functions",
    "image",
    "matmul",
    "movement",
    "pooling",
    "quantised_binary",
    "quantised_functions",
    "quantised_products",
    "quantised_words",
    "quantize",
    "recurrent",
    "recurrent_sequences",
    "reduce",
    "shape",
    "slicing",
    "spectral",
    "transposed",
]
