"""Run what was built. Imports nothing of the compiler: neither xdsl nor the rest of relay but its errors."""

from relay.runtime.executable import Executable, create, load
from relay.runtime.external import External
from relay.runtime.library import Library
from relay.runtime.loaders import Native, accepts, register_loader
from relay.runtime.specification import TensorSpec

__all__ = ["Executable", "External", "Library", "Native", "TensorSpec", "accepts", "create", "load", "register_loader"]
