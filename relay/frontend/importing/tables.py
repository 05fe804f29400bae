"""`fill`: imports the modules whose decorators enter import functions in a table."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules


def fill(package: str, path: Iterable[str]) -> None:
    """Import all modules of a package, given by its name and `__path__`, in the order of their names."""
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")
