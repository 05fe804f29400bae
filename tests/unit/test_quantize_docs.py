"""The blocks of docs/quantization.md run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quantization.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_examples_run_in_order(tmp_path: Path):
    assert {language for language, _ in BLOCKS} == {"python"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    code = "\n".join(code for _, code in BLOCKS)
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "top-1 agreement" in done.stdout and "SNR" in done.stdout
