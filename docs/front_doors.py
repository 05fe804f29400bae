"""Writes the modules that only name what stands elsewhere; `python docs/generate.py` runs it, and a test compares them.

- `relay/dialects/{relay,qnn}/__init__.py` from the classes of the files beside it,
- the lazy modules (`DOORS`) from their own imports under `if TYPE_CHECKING`; `relay/transform.py` has the passes from
  `relay.universe.PASSES` besides, under the names of their classes (`CLASSES` there) and their `aliases`.

A module's docstring is written by hand, and stays. Sources are read, not imported, except for
`relay.universe`, which imports no pass: what is stale need not import.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill, indent, wrap

from relay.universe import CLASSES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "relay"
DIALECTS = {"relay": "Relay", "qnn": "Qnn"}
"""Dialects of a folder, and what they are called in Python."""
TRANSFORM = PACKAGE / "transform.py"
DOORS = [
    PACKAGE / "__init__.py",
    TRANSFORM,
    *(PACKAGE / name / "__init__.py" for name in ("byoc", "byoc/c", "runtime", "viewer")),
]
WRITTEN = "# Written by `python docs/generate.py`; do not edit"

Home = tuple[str, str]
"""A module, and a name in it; or a module, and nothing."""


def body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text()).body


def docstring(path: Path) -> str:
    """A module's docstring as it is written."""
    lines = path.read_text().splitlines()
    return "\n".join(lines[: body(path)[0].end_lineno])


def dotted(path: Path) -> str:
    """A module's name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def files_beside(path: Path) -> list[Path]:
    return sorted(other for other in path.parent.glob("*.py") if other.name != "__init__.py")


def filled(names: Iterable[str]) -> str:
    """Names in as few lines as they take."""
    return indent(fill(", ".join(names) + ",", 115, break_long_words=False), "    ")


def listed(names: Iterable[str]) -> str:
    """The statement that a module is to be used by these names."""
    quoted = [f'"{name}"' for name in sorted(names)]
    return f"__all__ = [\n{filled(quoted)}\n]  # fmt: skip\n"


def imported(module: str, names: Iterable[str]) -> str:
    statement = f"from {module} import {', '.join(sorted(names))}\n"
    if len(statement) <= 121:
        return statement
    return f"from {module} import (\n{filled(sorted(names))}\n)  # fmt: skip\n"


# Dialects


def is_operation(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ClassDef):
        return False
    return any(isinstance(each, ast.Name) and each.id == "irdl_op_definition" for each in node.decorator_list)


def public_names(nodes: list[ast.stmt]) -> Iterator[str]:
    """Classes, unions of classes, and constants that are explained."""
    for node, following in zip(nodes, [*nodes[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            union = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
            if union or (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)):
                yield target.id


def dialect_module(name: str) -> str:
    """The front door of a dialect: its ops by file, in their order there."""
    path = PACKAGE / "dialects" / name / "__init__.py"
    found = {file: body(file) for file in files_beside(path)}
    files = {file: nodes for file, nodes in found.items() if any(map(is_operation, nodes))}
    public = {file: list(public_names(nodes)) for file, nodes in files.items()}
    classes = [node for nodes in files.values() for node in nodes if isinstance(node, ast.ClassDef)]
    operations = [node.name for node in classes if is_operation(node)]
    dialect = DIALECTS[name]
    return "\n".join(
        [
            docstring(path) + "\n",
            "# isort: off\nfrom xdsl.ir import Dialect\n",
            "".join(imported(dotted(file), names) for file, names in public.items()),
            f"{WRITTEN}: ops are found in the files beside this one.\n",
            f'{dialect} = Dialect("{name}", [\n{filled(operations)}\n])  # fmt: skip\n',
            listed([dialect, *(each for names in public.values() for each in names)]),
        ]
    )


# Lazy modules


def imports_of(nodes: Iterable[ast.stmt]) -> dict[str, Home]:
    """What imports name, and where that stands. A module's own submodules are named by themselves."""
    found: dict[str, Home] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__", "relay.doors"):
            assert node.module is not None
            for each in node.names:
                inside = node.module == "relay" and each.name != "__version__"
                home = (f"relay.{each.name}", "") if inside else (node.module, each.name)
                found[each.asname or each.name] = home
    return found


def passes() -> dict[str, Home]:
    """Every pass of `relay.universe` by the name of its class and by its aliases."""
    return {each: (module, name) for module, name in CLASSES.items() for each in (name, *aliases(module, name))}


def former_passes() -> list[str]:
    """The names of classes that passes of `relay.universe.RENAMED` had."""
    (renamed,) = (node for node in body(PACKAGE / "universe.py") if ast.unparse(node).startswith("RENAMED = "))
    assert isinstance(renamed, ast.Assign)
    return ["".join(map(str.capitalize, old.split("-"))) for old in ast.literal_eval(renamed.value)]


def aliases(module: str, name: str) -> list[str]:
    """What the class of a pass says in `aliases`, without names of another module (`qnn.Legalize`)."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    (cls,) = (node for node in body(path) if isinstance(node, ast.ClassDef) and node.name == name)
    for node in cls.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "aliases":
            return [alias for alias in ast.literal_eval(node.value) if "." not in alias]
    return []


def statement(name: str, home: Home) -> str:
    module, attribute = home
    if not attribute:
        module, attribute = module.rsplit(".", 1)
    return f"    from {module} import {attribute}{'' if attribute == name else f' as {name}'}\n"


def rows(homes: dict[str, Home]) -> str:
    """The rows of a table of names by module, as `relay.doors.door` reads them."""
    found: dict[str, list[str]] = {}
    for name, (module, attribute) in sorted(homes.items()):
        found.setdefault(module, []).append(name if attribute == name else f"{name}={attribute}")
    return "".join(row(module, " ".join(names)) for module, names in sorted(found.items()))


def row(module: str, names: str) -> str:
    """A row; in several literals where it is longer than a line."""
    whole = f'    "{module}": "{names}",\n'
    if len(whole) <= 121:
        return whole
    lines = wrap(names, 110, drop_whitespace=False, break_long_words=False)
    return f'    "{module}":\n' + "\n".join(f'        "{line}"' for line in lines) + ",\n"


def door_module(path: Path) -> str:
    """A lazy module: what it imports under `if TYPE_CHECKING`, by name."""
    eager: list[ast.stmt] = []
    lazy: list[ast.stmt] = []
    version = ""
    for node in body(path):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            lazy += node.body
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("relay."):
            eager.append(node)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            version = f"{ast.unparse(node).replace(chr(39), chr(34))}\n"
    homes = written = imports_of(lazy)
    more = ""
    if path == TRANSFORM:
        known = passes()
        modules = {module for module, _ in known.values()}
        homes = {name: home for name, home in homes.items() if home[0] not in modules} | known
        also = {module for name, (module, cls) in known.items() if name != cls}
        written = {name: home for name, home in homes.items() if home[0] not in modules - also}
        more = f', former={former_passes()}, elsewhere="relay.universe:TVM_PASSES", rest="relay.universe:CLASSES"'
    first = "".join(f"{ast.unparse(node)}\n" for node in eager if ast.unparse(node) != IMPORT)
    return "\n".join(
        [
            docstring(path) + "\n",
            f"from __future__ import annotations\n\n{IMPORT}\n{first}",
            "TYPE_CHECKING = False",
            "if TYPE_CHECKING:",
            "".join(statement(name, home) for name, home in homes.items()),
            version,
            f"{WRITTEN} what follows: it is made of the imports above.",
            f"__getattr__, __dir__ = door(__name__, {{\n{rows(written)}}}{more})  # fmt: skip\n",
            listed([*homes, *imports_of(eager), *(["__version__"] if version else [])]),
        ]
    )


IMPORT = "from relay.doors import door"


def formatted(text: str, path: Path) -> str:
    """The text as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix-only", "--quiet", "--select", "I"], ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", path, "-"], input=text, capture_output=True, text=True, check=True
        )
        text = done.stdout
    return text


def modules() -> dict[Path, str]:
    """The text of each generated module."""
    found = {PACKAGE / "dialects" / name / "__init__.py": dialect_module(name) for name in DIALECTS}
    found |= {path: door_module(path) for path in DOORS}
    return {path: formatted(text, path) for path, text in found.items()}


def write() -> None:
    for path, text in modules().items():
        path.write_text(text)


if __name__ == "__main__":
    write()
