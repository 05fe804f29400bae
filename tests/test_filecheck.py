"""Runs lit over tests/filecheck, each file by its name; a failure shows lit's report."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.lit_server import client, start

HERE = Path(__file__).parent / "filecheck"


@pytest.fixture(scope="module")
def server() -> Generator[Path]:
    """Where the server of the tools is; a socket's path has to be short."""
    with tempfile.TemporaryDirectory(prefix="relay-lit-") as folder, start(Path(folder)) as running:
        yield Path(folder)
        running.terminate()


def name_of(path: Path) -> str:
    return str(path.relative_to(HERE))


@pytest.mark.parametrize("path", sorted(HERE.glob("*/*.mlir")), ids=name_of)
def test_filecheck(path: Path, server: Path, tmp_path: Path):
    folders = {"RELAY_LIT_SERVER": str(server), "RELAY_LIT_OUTPUT": str(tmp_path)}
    command = [*client(server, "lit"), "-v", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env={**os.environ, **folders})
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    if "Unsupported" in done.stdout:
        pytest.skip("needs a tool that is not installed")
    assert "Passed: 1" in " ".join(done.stdout.split()), done.stdout
