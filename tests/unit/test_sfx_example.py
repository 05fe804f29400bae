"""examples/sfx, a third quantization dialect in a package of its own: installed, its tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.installing import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sfx"


def test_the_package_passes_its_own_tests(tmp_path: Path) -> None:
    site = install(EXAMPLE, tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(EXAMPLE))
    command = [sys.executable, "-m", "pytest", *options, str(EXAMPLE / "tests")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
