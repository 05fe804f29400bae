"""The operators by kind. Importing this package fills the table."""

from __future__ import annotations

from relay.frontend.tflite.operators import (
    activation,
    arithmetic,
    convolution,
    dense,
    image,
    pooling,
    quantize,
    recurrent,
    reduce,
    shape,
    slicing,
)

__all__ = [
    "activation",
    "arithmetic",
    "convolution",
    "dense",
    "image",
    "pooling",
    "quantize",
    "recurrent",
    "reduce",
    "shape",
    "slicing",
]
