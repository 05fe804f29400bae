"""Run what was built. Imports nothing of the compiler: neither xdsl nor the rest of relay but its errors."""

from relay.runtime.executable import Executable, create, load
from relay.runtime.library import Library
from relay.runtime.specification import TensorSpec

__all__ = ["Executable", "Library", "TensorSpec", "create", "load"]
