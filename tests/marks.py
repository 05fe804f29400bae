"""Marks of parametrized cases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def ci(cases: Iterable[object]) -> list[Any]:
    """These cases, which run with `-m ci` only."""
    return [pytest.param(case, marks=pytest.mark.ci) for case in cases]
