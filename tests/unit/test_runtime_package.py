"""`relay-mlir-runtime`: the package imports nothing that it lacks; test_deployment_docs.py runs it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging" / "runtime"


def writer() -> ModuleType:
    """The module that writes the package."""
    spec = importlib.util.spec_from_file_location("runtime_package", FOLDER / "runtime_package.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_names_nothing_that_it_lacks(tmp_path: Path):
    package = writer().write(tmp_path)
    code = {path: path.read_text() for path in package.rglob("*.py")}
    assert sum(map(len, code.values())) < 520_000
    for path, text in code.items():
        assert not re.search(r"^\s*(?:from|import) relay\b", text, re.MULTILINE), path
    modules = {".".join(path.relative_to(tmp_path).with_suffix("").parts).removesuffix(".__init__") for path in code}
    named = {name for text in code.values() for name in re.findall(r"^\s*from (relay_mlir_runtime[\w.]*)", text, re.M)}
    assert named <= modules
