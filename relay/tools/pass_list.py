"""Passes as text: names, documentation, options."""

from __future__ import annotations

from collections.abc import Mapping

from relay.passes.documentation import documented
from relay.passes.registry import Factory


def list_passes(passes: Mapping[str, Factory]) -> None:
    """Print each pass, the first line of its documentation, and the options of ours."""
    width = max(map(len, passes))
    for row in documented(passes):
        print(f"{row.name:{width}}  {row.summary}".rstrip())
        for line in row.options:
            print(f"{'':{width}}    {line}")
