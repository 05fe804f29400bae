"""External compilers ("bring your own codegen"): what a plug-in derives from, and how it is found.

Every name is imported when it is first used: loaders live below this package and run without the compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relay.byoc.compiler import Artifact, Compiler, Refusal
    from relay.byoc.registry import find, names, register

_HOME = {
    "Artifact": "relay.byoc.compiler",
    "Compiler": "relay.byoc.compiler",
    "Refusal": "relay.byoc.compiler",
    "find": "relay.byoc.registry",
    "names": "relay.byoc.registry",
    "register": "relay.byoc.registry",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'relay.byoc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = ["Artifact", "Compiler", "Refusal", "find", "names", "register"]
