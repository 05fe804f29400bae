"""The functions that import TFLite operators, in one module for each kind of operator. Importing this package enters
all of them in `TABLE`."""

from __future__ import annotations

from relay.frontend.importing.tables import fill
from relay.frontend.tflite.table import TABLE, join

fill(__name__, __path__)
join()

__all__ = ["TABLE"]
