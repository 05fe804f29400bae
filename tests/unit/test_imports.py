"""No file of the package is in a circle of imports; those inside of functions and for types only are imports too.

The linter holds the same for folders beside each other (`acyclic_siblings`), but does not look at a folder's own
`__init__`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imported(text: str) -> Iterator[str]:
    """The names that a file imports, wherever the import stands; `from a import b` is `a.b`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def circle(files: Mapping[str, str]) -> list[str]:
    """A circle of imports among modules, given by name and text: its modules, the first again last; none: empty."""
    edges: dict[str, set[str]] = {}
    for name, text in files.items():
        modules = {full if full in files else full.rpartition(".")[0] for full in imported(text)}
        edges[name] = (modules & files.keys()) - {name}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.ci
def test_no_file_is_in_a_circle_of_imports():
    paths = (ROOT / "relay").rglob("*.py")
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    assert circle({name: path.read_text() for name, path in names.items()}) == []


def test_the_page_has_every_room_in_the_linters_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(re.findall(r"\w+", layer)) for layer in contracts[0]["layers"]]
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = [set(re.findall(r"`(\w+)`", row)) for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)]
    assert rows == [*layers, {"runtime"}]


def test_circles_are_seen_in_functions_types_and_names():
    a, b = "from __future__ import annotations\nfrom p import b", "if TYPE_CHECKING:\n  from p.a import X"
    assert set(circle({"p": "", "p.a": a, "p.b": b})) == {"p.a", "p.b"}
    assert set(circle({"a": "import b", "b": "def f():\n  import_module('a')"})) == {"a", "b"}
    assert circle({"a": "import b, a", "b": "import os"}) == []


def imported_by(program: str) -> list[str]:
    """The modules of relay that a Python of its own has after a program."""
    command = [sys.executable, "-c", f"import sys; {program}; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return [name for name in done.stdout.split() if name.startswith("relay.")]


def test_relay_opt_starts_without_the_rooms_that_a_command_may_not_need():
    rooms = {name.split(".")[1] for name in imported_by("from relay.tools import relay_opt")}
    assert not rooms & {"byoc", "compile", "exploration", "interpreters", "lowering", "quantize", "viewer"}


@pytest.mark.ci
def test_a_build_for_a_cpu_imports_nothing_for_gpus_or_for_float_models():
    found = imported_by("import relay; relay.build('examples/digits/digits_int8.tflite')")
    assert "relay.lowering.schedule" in found
    assert not [name for name in found if name.startswith(("relay.lowering.gpu", "relay.quantize"))]
