"""relay: a compiler for pre-quantised models, built on xDSL. `relay.build(model)` is the one call.

Every name is imported when it is first used, so that `import relay` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relay import byoc, frontend, interpreters, qnn, quantize, runtime, transform
    from relay.byoc.composition import build_external_compiler
    from relay.compile.entry import build
    from relay.compile.pipeline import default_pipeline, optimize
    from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
    from relay.module import IRModule
    from relay.passes.build_config import BuildConfig

__version__ = "0.1.0"

_HOME = {
    "BuildConfig": "relay.passes.build_config",
    "build": "relay.compile.entry",
    "build_external_compiler": "relay.byoc.composition",
    "default_pipeline": "relay.compile.pipeline",
    "optimize": "relay.compile.pipeline",
    "IRModule": "relay.module",
    "InvalidArgument": "relay.errors",
    "Malformed": "relay.errors",
    "RelayError": "relay.errors",
    "Unsupported": "relay.errors",
}
_MODULES = ("byoc", "errors", "frontend", "interpreters", "qnn", "quantize", "runtime", "transform")


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"relay.{name}")
    raise AttributeError(f"module 'relay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])


__all__ = [
    "BuildConfig",
    "IRModule",
    "InvalidArgument",
    "Malformed",
    "RelayError",
    "Unsupported",
    "__version__",
    "build",
    "build_external_compiler",
    "byoc",
    "default_pipeline",
    "frontend",
    "interpreters",
    "optimize",
    "qnn",
    "quantize",
    "runtime",
    "transform",
]
