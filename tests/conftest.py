"""Every test builds anew, unless it asks for a cache of its own; random cases are the same ones every time, but where
they are looked for with `-m fuzz`."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ["RELAY_CACHE_DIR"] = "off"


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("same", derandomize=True, deadline=None)
    if "fuzz" not in str(config.getoption("markexpr", "")).replace("not fuzz", ""):
        settings.load_profile("same")
