"""docs/operators.md is what the classes of the ops say, and every op says what it computes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.ir import Dialect

from relay.dialects.irdl import dialects

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operators.md").read_text()
TEXTS = dict(re.findall(r"^### `([^`]*)`\n(.*?)(?=^- takes|^- attributes|^- gives|^- class)", PAGE, re.M | re.S))


def test_the_page_is_up_to_date() -> None:
    code = "import runpy; g = runpy.run_path('docs/pages.py'); print(g['operators_page'](), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PAGE, "run python docs/generate.py"


@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
def test_every_op_says_what_it_computes(dialect: Dialect) -> None:
    names = {op.name for op in dialect.operations}
    silent = sorted(op.name for op in dialect.operations if not op.__dict__.get("__doc__"))
    assert not silent, f"write what {', '.join(silent)} computes in the docstring of the class"
    assert names <= set(TEXTS), "run python docs/generate.py"
    assert not [name for name in sorted(names) if "`" not in TEXTS[name]], "write the formula in `...`"
