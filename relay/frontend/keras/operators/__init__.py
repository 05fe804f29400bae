"""The rows of the table of Keras layers and operations, one module per kind."""

from __future__ import annotations

from relay.frontend.importing.tables import fill
from relay.frontend.keras.table import REFUSED, TABLE

fill(__name__, __path__)

__all__ = ["REFUSED", "TABLE"]
