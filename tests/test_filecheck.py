"""Runs lit over tests/filecheck, each file by its name; a failure shows lit's report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.lit_server import start

HERE = Path(__file__).parent / "filecheck"


@pytest.fixture(scope="module")
def run() -> Generator[Callable[[Path], Any]]:
    """Runs one file as lit does, in this process: only the tools are called in others. A socket's path has to be
    short."""
    with (
        tempfile.TemporaryDirectory(prefix="relay-lit-") as folder,
        start(Path(folder)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RELAY_LIT_SERVER", folder)
        patch.setenv("RELAY_LIT_OUTPUT", f"{folder}/output")
        suite = import_module("lit.LitTestCase").load_test_suite([str(HERE)])
        cases = {Path(case._test.getSourcePath()): case for case in suite}
        execute = import_module("lit.worker")._execute
        yield lambda path: execute(cases[path]._test, cases[path]._lit_config)
        server.terminate()


def name_of(path: Path) -> str:
    return str(path.relative_to(HERE))


@pytest.mark.parametrize("path", sorted(HERE.glob("*/*.mlir")), ids=name_of)
def test_filecheck(path: Path, run: Callable[[Path], Any]):
    result = run(path)
    if result.code.name == "UNSUPPORTED":
        pytest.skip("needs a tool that is not installed")
    assert result.code.name == "PASS", result.output
