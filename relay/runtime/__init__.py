"""Run what was built. Imports nothing of the compiler: neither xdsl nor the rest of relay but its errors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from relay.runtime.executable import Executable, create, load
from relay.runtime.library import Library
from relay.runtime.specification import TensorSpec

if TYPE_CHECKING:
    from relay.runtime.external import External
    from relay.runtime.loaders import Native, accepts, register_loader

_HOME = {
    "External": "relay.runtime.external",
    "Native": "relay.runtime.loaders",
    "accepts": "relay.runtime.loaders",
    "register_loader": "relay.runtime.loaders",
}
"""What only executables with external functions need."""


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'relay.runtime' has no attribute {name!r}")


__all__ = ["Executable", "External", "Library", "Native", "TensorSpec", "accepts", "create", "load", "register_loader"]
