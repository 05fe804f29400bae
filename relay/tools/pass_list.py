"""Passes as text: names, documentation, options."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.passes import ModulePass
from xdsl.utils.hints import type_repr

from relay.passes.base import Pass
from relay.passes.config import options
from relay.passes.registry import Factory


def list_passes(passes: Mapping[str, Factory]) -> None:
    """Print each pass, the first line of its documentation, and the options of ours."""
    width = max(map(len, passes))
    for name, factory in sorted(passes.items()):
        try:
            cls = factory()
        except ImportError as error:
            print(f"{name:{width}}  (cannot be imported: {error})")
            continue
        print(f"{name:{width}}  {summary(cls)}".rstrip())
        for line in option_lines(cls) if issubclass(cls, Pass) else ():
            print(f"{'':{width}}    {line}")


def summary(cls: type[ModulePass]) -> str:
    """The first line of a pass's documentation; nothing if it was generated."""
    written = (cls.__doc__ or "").strip()
    return "" if written.startswith(f"{cls.__name__}(") else written.partition("\n")[0]


def option_lines(cls: type[ModulePass]) -> list[str]:
    """`name: type = default` for each option."""
    keys = options(cls).items()
    return [f"{name}: {type_repr(key.type)} = {key.default!r}" for name, key in keys]
