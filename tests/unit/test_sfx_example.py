"""examples/sfx, a third quantization dialect in a package of its own: installed, its tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installing import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sfx"


TFLITE = """
import numpy as np, relay
from tests.numeric.litert_models import Case, T

case = Case("CUSTOM", [T([2, 3], "int32")], [T([2, 3], "int8")], custom_code="SfxRescale")
case.custom_options = bytes([0, 4, 256 - 30])
x = np.array([[-200, 40, 1], [127, -24, 0]], np.int32)
assert (relay.build(case.model()).run(x) == [[-128, 3, 127], [127, -1, 0]]).all()
"""


@pytest.mark.ci
def test_the_package_passes_its_own_tests(tmp_path: Path) -> None:
    """And builds a TFLite file with an operator of its own, which this checkout's tests can write."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds a file")
    site = install(EXAMPLE, tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    built = subprocess.run([sys.executable, "-c", TFLITE], env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(EXAMPLE))
    command = [sys.executable, "-m", "pytest", *options, str(EXAMPLE / "tests")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
