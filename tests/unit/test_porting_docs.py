"""docs/porting_from_tvm.md: its program runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_program_runs():
    page = (ROOT / "docs" / "porting_from_tvm.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "of 10 runs" in done.stdout
