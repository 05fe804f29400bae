"""What a shell completes of a command, told of no shell in particular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["flag", "value", "choice", "file", "directory", "pass", "pipeline", "edit"]
"""What follows an option: nothing, anything, one of `values`, a path, a pass's name, a pipeline, or `NAME=PIPELINE`."""


@dataclass(frozen=True)
class Option:
    """One option of the command."""

    names: tuple[str, ...]
    """`-p`, `--passes`."""
    help: str
    kind: Kind
    values: tuple[str, ...]
    repeats: bool
    """Whether it may be given several times."""


@dataclass(frozen=True)
class Step:
    """One pass that a pipeline may name, with the names of its options."""

    name: str
    help: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """All of it."""

    name: str
    options: list[Option]
    passes: list[Step]

    @property
    def function(self) -> str:
        """How the names of its shell functions begin."""
        return "_" + self.name.replace("-", "_")
