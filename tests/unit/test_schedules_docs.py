"""The blocks of docs/schedules.md run; its table has every strategy, in their order."""

from __future__ import annotations

import re

import pytest

from relay.lowering.scheduling.registry import STRATEGIES
from tests.unit.pass_modules import ROOT

TEXT = (ROOT / "docs" / "schedules.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.ci
def test_the_python(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(ROOT)
    for code in BLOCKS:
        names: dict[str, object] = {"__name__": __name__}
        exec(compile(code, "docs/schedules.md", "exec"), names)
    assert re.fullmatch(r"contraction \(\d+, \d+\) [\d,]+ cycles, the least of all\n", capsys.readouterr().out)


def test_every_strategy_is_in_the_table():
    assert re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE) == [kind.record.strategy for kind in STRATEGIES]
