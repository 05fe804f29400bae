"""The rows of the table of layers, each in the file of its kind."""

from relay.frontend.keras.operators import (
    activations,
    attention,
    convolution,
    core,
    elementwise,
    movement,
    normalization,
    recurrent,
)
from relay.frontend.keras.table import REFUSED, TABLE

__all__ = [
    "REFUSED", "TABLE", "activations", "attention", "convolution", "core", "elementwise", "movement", "normalization",
    "recurrent",
]  # fmt: skip
