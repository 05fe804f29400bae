"""Runs lit over tests/filecheck: one process per folder; a failure shows lit's report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "filecheck"


@pytest.mark.parametrize("folder", sorted({path.parent.name for path in HERE.glob("*/*.mlir")}))
def test_filecheck(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_LIT_OUTPUT", str(tmp_path))
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", str(HERE / folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Passed" in done.stdout
