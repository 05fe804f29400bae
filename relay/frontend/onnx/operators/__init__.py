"""The rows of the table of ONNX operators, one module per kind."""

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
