"""The blocks of docs/numerics.md run, and its table names every profile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relay.frontend.tflite.profiles import PROFILES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "numerics.md").read_text()


def test_the_table_names_every_profile() -> None:
    assert re.findall(r"^\| `([\w.-]+)`", PAGE, re.MULTILINE)[1:] == [*PROFILES]


@pytest.mark.slow
def test_the_examples_run_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "numerics.md", "exec"), {"__name__": "numerics"})
