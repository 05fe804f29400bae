"""Every model through the view: all of its text, a report that can be sent, and quickly enough to look at."""

from __future__ import annotations

import pytest

import relay
from relay.viewer import record, report
from relay.viewer.diff import diff
from relay.viewer.layout import lay_out
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ALL, *LARGE])
def test_a_model_can_be_looked_at(name: str):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: put the models beside the checkout, in ../shared/models")
    mod = relay.frontend.from_tflite(path)
    found = record(mod)
    assert found.error == "" and found.snapshots[0].text == str(mod)
    for before, after in zip(found.snapshots, found.snapshots[1:], strict=False):
        hunks = diff(before, after)
        assert [line for hunk in hunks for line in before.lines[slice(*hunk.before)]] == before.lines
        assert [line for hunk in hunks for line in after.lines[slice(*hunk.after)]] == after.lines
    assert all(lay_out(part.graph) is not None for snapshot in found.snapshots for part in snapshot.parts)
    assert len(report(found)) < 4_000_000
