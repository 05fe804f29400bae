"""The rows of the table of PyTorch operators, one module per kind."""

from relay.frontend.torch.operators import (
    control,
    creation,
    elementwise,
    indexing,
    movement,
    nn,
    quantized,
    recurrent,
    reduce,
)
from relay.frontend.torch.table import REFUSED, TABLE, VIEWS, Convert, row

__all__ = [
    "REFUSED", "TABLE", "VIEWS", "Convert", "control", "creation", "elementwise", "indexing", "movement", "nn",
    "quantized", "recurrent", "reduce", "row",
]  # fmt: skip
