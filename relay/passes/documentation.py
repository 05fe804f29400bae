"""The documentation of passes: names, first sentences and options, with the sentences that explain the options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.passes import ModulePass
from xdsl.utils.hints import type_repr

from relay.passes.base import Pass
from relay.passes.config import options
from relay.passes.registry import Factory

SENTENCE = re.compile(r".*?(?:\.(?= )|$)")


@dataclass(frozen=True)
class Documented:
    """The documentation of a pass: its name, first sentence, and, for relay's passes, its options."""

    name: str
    summary: str
    ours: bool
    options: tuple[str, ...] = ()
    explanations: tuple[str, ...] = ()
    """The further sentences of the docstring that name an option, in order."""


def documented(passes: Mapping[str, Factory]) -> list[Documented]:
    """The documentation of every pass, sorted by name; for one that cannot be imported, the reason."""
    found: list[Documented] = []
    for name, factory in sorted(passes.items()):
        try:
            cls = factory()
        except ImportError as error:
            found.append(Documented(name, f"(cannot be imported: {error})", ours=False))
            continue
        ours = issubclass(cls, Pass)
        lines = (tuple(option_lines(cls)), tuple(explanations(cls))) if ours else ()
        found.append(Documented(name, summary(cls), ours, *lines))
    return found


def summary(cls: type[ModulePass]) -> str:
    """The first sentence of a pass's docstring; empty if Python generated the docstring."""
    written = (cls.__doc__ or "").strip()
    sentence = SENTENCE.match(" ".join(written.partition("\n\n")[0].split()))
    return "" if sentence is None or written.startswith(f"{cls.__name__}(") else sentence[0]


def option_lines(cls: type[ModulePass]) -> list[str]:
    """`name: type = default` for each option."""
    keys = options(cls).items()
    return [f"{name}: {type_repr(key.type)} = {key.default!r}" for name, key in keys if not key.deprecated]


def explanations(cls: type[ModulePass]) -> list[str]:
    """The sentences of a pass's docstring, except the first, that name an option in backquotes, as `name` or
    `name=value`."""
    names = "|".join(map(re.escape, options(cls)))
    sentences = [match[0].strip() for match in SENTENCE.finditer(" ".join((cls.__doc__ or "").split()))]
    return [each for each in sentences[1:] if names and re.search(f"`({names})\\b", each)]
