"""What the tests of the whole project share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.partitioning_modules import Known

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what git would clone, links included."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        source, target = ROOT / name, tmp_path / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.exists():
            shutil.copy2(source, target, follow_symlinks=False)
    return tmp_path / "clone"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Makes external compilers known for the time of a test."""
    from relay.byoc import registry
    from tests.unit.partitioning_modules import Known

    registered = dict(registry.COMPILERS.registered)
    monkeypatch.setattr(registry.COMPILERS, "registered", registered)
    return Known(registered)
