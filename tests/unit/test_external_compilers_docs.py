"""The blocks of docs/external_compilers.md run, and its tables are those of the compilers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from relay.byoc.registry import OURS, load
from tests.numeric.external_sessions import installed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "external_compilers.md").read_text()


@pytest.mark.ci
def test_the_examples_run_in_order(tmp_path: Path):
    installed("xnnpack")
    installed("c")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    program = "\n".join(blocks).replace('"digits.relay"', repr(str(tmp_path / "digits.relay")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "xnnpack: xnnpack takes qnn.conv2d only, as its option says" in done.stdout
    assert "relay_xnnpack_main_0: an op is off by at most 1 code" in done.stdout
    assert "= CONV_2D %" in done.stdout and "relay_xnnpack_main_0 result 0: off by" in done.stdout


def test_the_tables_are_those_of_the_compilers():
    rows = {name: row for name, row in re.findall(r"^\| `(\w+)` +\|(.*)\|$", PAGE, re.MULTILINE) if name in OURS}
    assert sorted(rows) == sorted(OURS)
    options = {
        name for line in re.findall(r"^\| (`.*?) +\|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    }
    for name, row in rows.items():
        compiler = load(name)
        assert compiler.exact == ("exact" in row) == ("at most 1 code off" not in row)
        assert not compiler.extra or f"`relay-mlir[{compiler.extra}]`" in row
        known = {field.name for field in fields(compiler) if field.init} if is_dataclass(compiler) else set[str]()
        assert known <= options, name
