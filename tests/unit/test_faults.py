"""Calls of the C library that fail or are interrupted, each in turn, end in one of our errors or the right result."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.pass_modules import ROOT

FAILING = "open", "read", "write", "rename", "memory file", "dlopen", "fsync", "fork", "pipe", "thread", "unlink"
SIGNALS = "SIGKILL", "SIGTERM", "SIGINT"


@pytest.mark.ci
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
@pytest.mark.parametrize(
    ("arguments", "least"),
    [(["1"], 1), pytest.param(["100", "every-signal"], 2, marks=pytest.mark.slow)],
    ids=["the first of a kind", "all"],
)
def test_every_call_fails_in_turn(arguments: list[str], least: int, tmp_path: Path):
    shared = tmp_path / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shared, ROOT / "tests" / "faults.c", "-ldl"], check=True)
    found = subprocess.run(
        [sys.executable, "-m", "tests.faults_worker", *arguments],
        env={**os.environ, "LD_PRELOAD": str(shared), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(found.stdout)
    assert said["wrong"] == []
    every = {name: sum(row.get(name, 0) for row in said["counts"].values()) for name in (*FAILING, *SIGNALS)}
    print(*(f"{title}: {row}" for title, row in said["counts"].items()), sep="\n")
    assert all(count >= 1 for count in every.values()), every
    assert all(every[name] >= 10 * least for name in SIGNALS), every
