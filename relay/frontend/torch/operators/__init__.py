"""The rows of the table of PyTorch operators, one module per kind."""

from __future__ import annotations

from relay.frontend.importing.tables import fill
from relay.frontend.torch.table import REFUSED, TABLE, VIEWS, Convert, row

fill(__name__, __path__)

__all__ = ["REFUSED", "TABLE", "VIEWS", "Convert", "row"]
