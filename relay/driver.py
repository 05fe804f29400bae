"""Names that stood here up to 0.1, each with a warning that names its new place. Goes with 0.3."""

from __future__ import annotations

import warnings
from importlib import import_module

_HOME = {
    "assemble": "relay.compile.assemble",
    "build": "relay.compile.entry",
    "compile_model": "relay.compile.model",
    "default_pipeline": "relay.compile.pipeline",
    "graph_passes": "relay.compile.pipeline",
    "import_model": "relay.frontend",
    "lowering_passes": "relay.compile.pipeline",
    "optimize": "relay.compile.pipeline",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'relay.driver' has no attribute {name!r}")
    known = "relay" if name in ("build", "default_pipeline", "optimize") else _HOME[name]
    warnings.warn(f"relay.driver.{name} is deprecated: write {known}.{name}", DeprecationWarning, stacklevel=2)
    return getattr(import_module(_HOME[name]), name)
