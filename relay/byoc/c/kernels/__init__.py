"""The kernels: C99 with `${...}` where an instance has its types; each file says what it does and what it uses."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

USES = "// uses: "


@cache
def read(file: str) -> tuple[tuple[str, ...], Template]:
    """The files that must stand before this one, and its text."""
    text = files(__name__).joinpath(f"{file}.c").read_text()
    first, _, rest = text.partition("\n")
    if first.startswith(USES):
        return tuple(first.removeprefix(USES).split()), Template(rest)
    return (), Template(text)
