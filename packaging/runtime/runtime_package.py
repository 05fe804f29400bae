"""Makes the package `relay_mlir_runtime` of those files of `relay` that a run needs, their imports renamed.

Hatch runs it in a checkout for a wheel and for an sdist, which holds the package as it was written, so that a wheel is
made of that without a checkout. `write(FOLDER)` writes the package there.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RELAY = HERE.parents[1] / "relay"
PACKAGE = "relay_mlir_runtime"
PARTS = (
    "runtime",
    "validation",
    "doors.py",
    "errors.py",
    "files.py",
    "mapping.py",
    "tile_registers.py",
    "plug_ins.py",
    "sizes.py",
    "store.py",
    "tables.py",
)
"""Rooms and files that import nothing but each other (the linter holds that)."""
NAMED = re.compile(rf"\brelay\.(?=(?:{'|'.join(part.removesuffix('.py') for part in PARTS)})\b)")
DOOR = '''"""Runs models that relay-mlir compiled and saved, without it: `load("model.relay").run(image)`."""

from {package}.errors import InvalidArgument, Malformed, RelayError, Unsupported
from {package}.runtime import Executable, TensorSpec, load

__version__ = "{version}"
__all__ = ["Executable", "InvalidArgument", "Malformed", "RelayError", "TensorSpec", "Unsupported", "load"]
'''


def version() -> str:
    """The version, of the checkout's relay or of the sdist's package."""
    source = HERE / PACKAGE if (HERE / PACKAGE).exists() else RELAY
    (found,) = re.findall(r'^__version__ = "(.+)"$', (source / "__init__.py").read_text(), re.MULTILINE)
    return found


def write(folder: Path) -> Path:
    """Write the package into a folder; returns its own folder."""
    target = folder / PACKAGE
    for part in PARTS:
        found = sorted((RELAY / part).rglob("*.py")) if (RELAY / part).is_dir() else [RELAY / part]
        for path in found:
            copy = target / path.relative_to(RELAY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(NAMED.sub(f"{PACKAGE}.", path.read_text()))
    (target / "__init__.py").write_text(DOOR.format(package=PACKAGE, version=version()))
    shutil.copy(RELAY / "py.typed", target)
    return target


def initialize(hook: object, standard: str, build_data: dict[str, Any]) -> None:
    """Put the package into the wheel or the sdist; where an sdist was unpacked, hatch finds it there."""
    if not (HERE / PACKAGE).exists():
        build_data["force_include"][str(write(Path(tempfile.mkdtemp())))] = PACKAGE


if find_spec("hatchling") is not None:  # a test only writes the package
    interface: Any = import_module("hatchling.builders.hooks.plugin.interface")
    RuntimePackage = type("RuntimePackage", (interface.BuildHookInterface,), {"initialize": initialize})
