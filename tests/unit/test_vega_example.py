"""examples/vega, a vendor's package with a library in C: installed, its tests pass, and the conformance kit's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.installing import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "vega"


@pytest.fixture
def done(tmp_path: Path) -> Callable[..., str]:
    """Runs a module of Python, with the package installed; what it says."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{install(EXAMPLE, tmp_path / 'site')}"}

    def run(*command: str) -> str:
        made = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout

    return run


@pytest.mark.ci
def test_the_package_passes_its_own_tests(done: Callable[..., str]) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(EXAMPLE))
    assert "4 passed" in done("pytest", *options, str(EXAMPLE / "tests"))


@pytest.mark.slow
def test_the_package_conforms(done: Callable[..., str]) -> None:
    assert "device faults 1" in done("relay.tools.relay_byoc", "test", "vega", "--cases", "16")
