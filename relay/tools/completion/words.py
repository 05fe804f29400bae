"""A shell-independent description of a command's options and pipelines, from which completion scripts are generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["flag", "value", "choice", "file", "directory", "pass", "pipeline", "edit"]
"""The kind of argument that follows an option: no argument, any text, one of `values`, a file, a folder, the name of a
pass, a pipeline, or an edit `NAME=PIPELINE`."""


@dataclass(frozen=True)
class Option:
    """One option of a command."""

    names: tuple[str, ...]
    """The option's spellings, such as `-p` and `--passes`."""
    help: str
    kind: Kind
    values: tuple[str, ...]
    repeats: bool
    """Whether the option may be given several times."""


@dataclass(frozen=True)
class Step:
    """A pass that may be named in a pipeline, and the names of its options."""

    name: str
    help: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command to be completed: its name, options and passes."""

    name: str
    options: list[Option]
    passes: list[Step]

    @property
    def function(self) -> str:
        """The prefix of the names of the generated shell functions."""
        return "_" + self.name.replace("-", "_")

    def filled(self, script: str, given: Mapping[str, str]) -> str:
        """The script with `@KEY@` replaced by the text given for it, `@NAME@` by the command's name, `@F@` by
        `function`."""
        for key, text in {**given, "NAME": self.name, "F": self.function}.items():
            script = script.replace(f"@{key}@", text)
        return script
