"""Templates of working packages for extending relay: `relay-byoc new NAME`, `relay-dialect new NAME`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path

from xdsl.dialects import get_all_dialects

from relay.byoc import registry
from relay.dialects.context import OURS
from relay.dialects.plug_in import DIALECTS
from relay.errors import InvalidArgument


@dataclass(frozen=True)
class Scaffold:
    """A kind of package that can be created from templates: an external compiler or a dialect."""

    kind: str
    tool: str
    """The command that creates and tests packages of this kind: `relay-byoc` or `relay-dialect`."""
    files: Mapping[str, str]
    """The template's name by the path of the file made from it; `{name}` in the path is replaced by the package's
    name."""
    taken: Callable[[], Iterable[str]]
    """Returns the names that are already in use and cannot be given to a new package."""

    def add_arguments(self, new: ArgumentParser) -> None:
        """Add the arguments of this kind's `new` command: the name and --into."""
        new.add_argument("name", help=f"the {self.kind}'s name: a lower-case word")
        new.add_argument("--into", type=Path, metavar="DIR", help="folder for the package (default: ./relay-NAME)")

    def report(self, name: str, into: Path | None) -> str:
        """Write the package. Returns the paths of its files and the commands that install and test it, as text."""
        folder = into or Path(f"relay-{name}")
        commands = f"cd {folder} && pip install -e . pytest && pytest && {self.tool} test {name}"
        return "\n".join([*map(str, self.write(name, folder)), f"next: {commands}"])

    def write(self, name: str, folder: Path) -> list[Path]:
        """Write the package `relay-NAME` into a folder that is new or empty. Returns the paths written.

        Raises InvalidArgument for a name that is no lower-case identifier or is in use, or a folder that is not
        empty.
        """
        where = f"{self.kind} '{name}'"
        if not (name.isascii() and name.isidentifier() and name == name.lower()) or iskeyword(name):
            hint = "use a lower-case word: it names symbols"
            raise InvalidArgument(where, f"is no name for a {self.kind}", hint)
        if name in self.taken():
            raise InvalidArgument(where, "is there already", "give the new one another name")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidArgument(str(folder), "exists and is not empty", "name another folder with --into")
        class_name = "".join(part.capitalize() for part in name.split("_"))
        templates = files("relay.tools") / "scaffold" / self.kind
        written: list[Path] = []
        for place, template in self.files.items():
            path = folder / place.format(name=name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (templates / template).read_text("utf-8")
            for mark, filled in (("@NAME@", name), ("@CLASS@", class_name), ("@UPPER@", name.upper())):
                text = text.replace(mark, filled)
            path.write_text(text, "utf-8")
            written.append(path)
        return written


def of_package(*modules: str) -> dict[str, str]:
    """The files (`Scaffold.files`) of a Python package that consists of these modules, a pyproject.toml, a README and a
    test."""
    inside = {f"relay_{{name}}/{module}": f"{module}.in" for module in modules}
    return (
        {"pyproject.toml": "pyproject.toml.in", "README.md": "README.md.in"}
        | inside
        | {"tests/test_{name}.py": "test.py.in"}
    )


COMPILER = Scaffold("compiler", "relay-byoc", of_package("__init__.py", "compiler.py", "loader.py"), registry.names)
DIALECT = Scaffold(
    "dialect",
    "relay-dialect",
    of_package(
        "__init__.py", "ops.py", "meanings.py", "expansions.py", "lowerings.py", "importers.py", "passes.py",
        "examples.mlir",
    ),
    lambda: {*get_all_dialects(), *OURS, *DIALECTS.names()},
)  # fmt: skip
