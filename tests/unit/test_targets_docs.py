"""docs/targets.md: its blocks run, and its table is that of the rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relay.target.microarchitectures import GENERIC, ROWS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "targets.md").read_text()


@pytest.mark.ci
def test_the_examples_run_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})
    assert 'triple = "aarch64-unknown-linux-gnu", cpu = "neoverse-v1"' in capsys.readouterr().out


def test_the_table_has_every_row():
    table = PAGE[PAGE.index("| row |") :].splitlines()[2:]
    assert len(table) == len(ROWS) + 1
    for line, row in zip(table, [*ROWS, GENERIC], strict=True):
        name, cpus, *sizes = (cell.strip() for cell in line.strip("|").split("|"))
        assert (name, tuple(re.findall(r"`([^`]+)`", cpus))) == (row.name, row.cpus)
        caches = row.caches
        assert [int(size or 0) << 10 for size in sizes] == [caches.first, caches.second]
