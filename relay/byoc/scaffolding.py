"""A package for a new external compiler that works as it stands: `relay-byoc new NAME`."""

from __future__ import annotations

from importlib.resources import files
from keyword import iskeyword
from pathlib import Path

from relay.byoc import registry
from relay.errors import InvalidArgument

FILES = {
    "pyproject.toml": "pyproject.toml.in",
    "README.md": "README.md.in",
    "relay_{name}/__init__.py": "__init__.py.in",
    "relay_{name}/compiler.py": "compiler.py.in",
    "relay_{name}/loader.py": "loader.py.in",
    "tests/test_{name}.py": "test.py.in",
}
"""Where each template goes."""


def scaffold(name: str, folder: Path) -> list[Path]:
    """Write the package `relay-NAME` into a folder that is new or empty; the files written.

    Raises InvalidArgument for a name that is no lower-case identifier, or a folder that holds something.
    """
    if not (name.isascii() and name.isidentifier() and name == name.lower()) or iskeyword(name):
        raise InvalidArgument(
            f"compiler '{name}'", "is no name for a compiler", "use a lower-case word: it names symbols"
        )
    if name in registry.names():
        raise InvalidArgument(f"compiler '{name}'", "is there already", "give the new one another name")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument(str(folder), "exists and is not empty", "name another folder with --into")
    class_name = "".join(part.capitalize() for part in name.split("_"))
    templates = files("relay.byoc") / "scaffold"
    written: list[Path] = []
    for place, template in FILES.items():
        path = folder / place.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (templates / template).read_text("utf-8").replace("@NAME@", name).replace("@CLASS@", class_name)
        path.write_text(text, "utf-8")
        written.append(path)
    return written
