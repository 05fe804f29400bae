"""Calls of the C library that fail, each in turn, end in one of our errors or the right result."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.pass_modules import ROOT


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_every_call_fails_in_turn(tmp_path: Path):
    shared = tmp_path / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shared, ROOT / "tests" / "faults.c", "-ldl"], check=True)
    found = subprocess.run(
        [sys.executable, "-m", "tests.faults_worker", "100"],
        env={**os.environ, "LD_PRELOAD": str(shared), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(found.stdout)
    assert said["wrong"] == []
    assert set(said["counts"]) == {"cold build", "warm build", "load", "save", "export"}
    expected = {"open": 5, "read": 4, "write": 6, "rename": 3, "memory file": 5, "dlopen": 5, "fsync": 2, "kill": 30}
    for name, least in expected.items():
        assert sum(row.get(name, 0) for row in said["counts"].values()) >= least, name
