"""The blocks of docs/sizes.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRINTED = """Executable for any sizes images; 1 are built, any number of which runs row by row
1 (1, 10)
5 (5, 10)
1 (1, 10)
{'images': 'at run time, row by row'}
True
[{'images': 1}]
(3, 10)
(3, 4, 2, 4)
(1, 16, 8)
[ 3. -1.]
"""


@pytest.mark.ci
def test_the_examples_run_in_order(tmp_path: Path):
    page = (ROOT / "docs" / "sizes.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program = "\n".join(blocks).replace('"digits.relay"', repr(str(tmp_path / "d")))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = "".join(line for line in done.stdout.splitlines(True) if not line.startswith("  "))  # inputs, outputs
    assert printed == PRINTED
