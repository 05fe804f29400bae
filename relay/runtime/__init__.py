"""Runs executables: loads them, binds arrays, divides work among threads. May import errors and other small modules,
but neither xdsl nor the compiler."""

from __future__ import annotations

from relay.doors import door
from relay.runtime.executable import Executable, create
from relay.runtime.library import Library
from relay.runtime.loading import load
from relay.runtime.specification import TensorSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay.runtime.dynamic import DynamicExecutable
    from relay.runtime.external import External
    from relay.runtime.loaders import Native, accepts, open_device, register_loader
    from relay.runtime.loading import load as load_module
    from relay.runtime.programs import ProgramLoader, pack, unpack
    from relay.runtime.stream import Stream


# Written by `python docs/generate.py`; do not edit what follows: it is made of the imports above.
__getattr__, __dir__ = door(__name__, {
    "relay.runtime.dynamic": "DynamicExecutable",
    "relay.runtime.external": "External",
    "relay.runtime.loaders": "Native accepts open_device register_loader",
    "relay.runtime.loading": "load_module=load",
    "relay.runtime.programs": "ProgramLoader pack unpack",
    "relay.runtime.stream": "Stream",
})  # fmt: skip

__all__ = [
    "DynamicExecutable", "Executable", "External", "Library", "Native", "ProgramLoader", "Stream", "TensorSpec",
    "accepts", "create", "load", "load_module", "open_device", "pack", "register_loader", "unpack",
]  # fmt: skip
