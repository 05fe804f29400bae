"""The plug-in `abacus`, installed for the time of a test."""

from __future__ import annotations

import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest

from tests.installing import install

FOLDER = Path(__file__).parent / "abacus"


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the package into a folder of its own, on the path of imports; returns the folder."""
    return importable(install(FOLDER, tmp_path / "site"), "relay_abacus", monkeypatch)


def importable(site: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the folder on the path of imports, the package not yet imported."""
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    invalidate_caches()
    return site
