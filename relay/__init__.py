"""relay: a compiler for pre-quantised models, built on xDSL. `relay.build(mod_or_path)` is the one call."""

from __future__ import annotations

from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.module import IRModule

__version__ = "0.1.0"

__all__ = ["IRModule", "InvalidArgument", "Malformed", "RelayError", "Unsupported", "__version__"]
