"""The rows of the table of operators, each in the file of its kind."""

from relay.frontend.onnx.operators import (
    attention,
    constants,
    control,
    elementwise,
    indexing,
    movement,
    nn,
    optimized,
    quantized,
    recurrent,
    reduce,
    resizing,
    selection,
)
from relay.frontend.onnx.table import TABLE, row

__all__ = [
    "TABLE", "attention", "constants", "control", "elementwise", "indexing", "movement", "nn", "optimized", "quantized",
    "recurrent", "reduce", "resizing", "row", "selection",
]  # fmt: skip
