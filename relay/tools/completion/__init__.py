"""`relay-opt --completion SHELL`: prints a script that completes options, targets, pipelines, pass options and files.

The script is generated from the argument parser and the installed passes; completing does not run relay.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from relay.passes.documentation import documented
from relay.passes.registry import Factory
from relay.tools.completion import bash, fish, zsh
from relay.tools.completion.words import Command, Kind, Option, Step

SCRIPTS: dict[str, Callable[[Command], str]] = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}
"""The function that writes the completion script, by shell."""

KINDS: dict[str, Kind] = {"NAME=PASS": "edit", "NAME": "pass", "FILE": "file", "DIR": "directory"}
"""The kind of an option's argument, by the placeholder (metavar) that the option's help shows."""


def script(
    shell: str, parser: ArgumentParser, values: Mapping[str, Iterable[str]], passes: Mapping[str, Factory]
) -> str:
    """The completion script for a shell; `values` are the choices of arguments (by `dest`) that the parser itself does
    not restrict."""
    actions = cast(list[Action], vars(parser)["_actions"])  # argparse has no public way to list them
    found = [option_of(action, values) for action in actions if action.option_strings]
    steps = [
        Step(row.name, brief(row.summary), tuple(line.partition(":")[0] for line in row.options))
        for row in documented(passes)
    ]
    return SCRIPTS[shell](Command(parser.prog, found, steps))


def option_of(action: Action, values: Mapping[str, Iterable[str]]) -> Option:
    """A description of one parser option from which completion scripts are generated."""
    given = tuple(str(value) for value in values.get(action.dest, action.choices or ()))
    return Option(
        tuple(action.option_strings), brief(action.help or ""), kind_of(action, given), given, action.default == []
    )


def kind_of(action: Action, given: tuple[str, ...]) -> Kind:
    """The kind of argument that an option takes; `given` are the argument's choices, if it has any."""
    if action.nargs == 0:
        return "flag"
    if given:
        return "choice"
    if action.dest in ("passes", "output_file"):
        return "pipeline" if action.dest == "passes" else "file"
    return KINDS.get(action.metavar if isinstance(action.metavar, str) else "", "value")


def brief(text: str) -> str:
    """The first sentence of the text, without its full stop."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
