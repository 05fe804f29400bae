"""The rows of the table of ONNX operators, one module per kind."""

from __future__ import annotations

from relay.frontend.importing.tables import fill
from relay.frontend.onnx.table import TABLE, row

fill(__name__, __path__)

__all__ = ["TABLE", "row"]
