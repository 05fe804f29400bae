"""`relay-opt --completion SHELL`: a script that completes options, targets, pipelines, passes' options and files.

Made from the argument parser and the passes that are installed; nothing of relay runs while the user types.
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
"""What writes the script of each shell."""

KINDS: dict[str, Kind] = {"NAME=PASS": "edit", "NAME": "pass", "FILE": "file", "DIR": "directory"}
"""What an argument is, by the name that the help gives it."""


def script(
    shell: str, parser: ArgumentParser, values: Mapping[str, Iterable[str]], passes: Mapping[str, Factory]
) -> str:
    """The script for a shell; `values` are those of arguments that the parser itself does not check."""
    actions = cast(list[Action], vars(parser)["_actions"])  # argparse has no public way to list them
    found = [option_of(action, values) for action in actions if action.option_strings]
    steps = [
        Step(row.name, brief(row.summary), tuple(line.partition(":")[0] for line in row.options))
        for row in documented(passes)
    ]
    return SCRIPTS[shell](Command(parser.prog, found, steps))


def option_of(action: Action, values: Mapping[str, Iterable[str]]) -> Option:
    """One option as shells need it."""
    given = tuple(str(value) for value in values.get(action.dest, action.choices or ()))
    return Option(
        tuple(action.option_strings), brief(action.help or ""), kind_of(action, given), given, action.default == []
    )


def kind_of(action: Action, given: tuple[str, ...]) -> Kind:
    """What follows the option."""
    if action.nargs == 0:
        return "flag"
    if given:
        return "choice"
    if action.dest in ("passes", "output_file"):
        return "pipeline" if action.dest == "passes" else "file"
    return KINDS.get(action.metavar if isinstance(action.metavar, str) else "", "value")


def brief(text: str) -> str:
    """The first sentence, without its full stop."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
