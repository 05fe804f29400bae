"""`relay-byoc`: create, test and list external compilers (bring your own codegen)."""

from __future__ import annotations

import argparse
import sys
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path

from relay.byoc import registry
from relay.byoc.guard import asked
from relay.errors import RelayError
from relay.exploration.conformance import Conformance, conformance
from relay.frontend import import_model
from relay.runtime import loaders
from relay.tools.failure import line_of
from relay.tools.scaffolding import COMPILER


def parser() -> argparse.ArgumentParser:
    """The argument parser."""
    command = argparse.ArgumentParser("relay-byoc", description="Create, test and list external compilers.")
    actions = command.add_subparsers(dest="action", required=True)
    COMPILER.add_arguments(actions.add_parser("new", help="write a working package that a new compiler can start from"))
    test = actions.add_parser(
        "test", help="test that a compiler computes what it claims to support, on random ops and models"
    )
    test.add_argument("name", help="the compiler's name")
    test.add_argument("models", nargs="*", type=Path, help="model files to test with, besides random ops")
    test.add_argument("--cases", type=int, default=400, help="number of random cases (default: 400)")
    test.add_argument("--seed", type=int, default=0, help="seed of the random cases (default: 0)")
    test.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="a compiler option to set")
    actions.add_parser("list", help="list the known compilers, and what each lacks to run here")
    return command


def listing() -> str:
    """A line for each known external compiler: "ready", or the requirement that is missing, and its accuracy; the error
    instead, if the compiler or its loader cannot be loaded."""
    lines: list[str] = []
    for name in registry.names():
        try:
            with asked(name, "missing"):
                compiler = registry.load(name)()
                missing = compiler.missing()
            if missing is None:
                loaders.find(name, f"compiler {name}")
            lines.append(f"{name:14s} {missing or 'ready'}; {kind(compiler.exact, compiler.difference)}")
        except RelayError as error:
            lines.append(f"{name:14s} {error}")
    return "\n".join(lines) or "no external compiler is known"


def tested(name: str, models: Sequence[Path], cases: int, seed: int, options: Sequence[str]) -> Conformance:
    """Run `relay.exploration.conformance` on a compiler and model files. `options` are KEY=VALUE texts; a value is
    parsed as a Python literal, or else kept as text."""
    given: dict[str, object] = {}
    for option in options:
        key, _, value = option.partition("=")
        try:
            given[key] = literal_eval(value)
        except (ValueError, SyntaxError):
            given[key] = value
    modules = {str(path): import_model(path, {}) for path in models}
    return conformance(name, given, cases=cases, seed=seed, models=modules)


def kind(exact: bool, difference: str) -> str:
    """A compiler's stated accuracy as text: exact, or how its results may differ."""
    return "exact" if exact else f"not exact: {difference or 'its integers may differ'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0, or 1 for an error or a failed conformance test."""
    chosen, more = parser().parse_known_args(arguments)
    if more and (chosen.action != "test" or any(word.startswith("-") for word in more)):
        parser().error(f"unrecognized arguments: {' '.join(more)}")
    try:
        if chosen.action == "list":
            print(listing())
        elif chosen.action == "test":
            found = tested(chosen.name, [*chosen.models, *map(Path, more)], chosen.cases, chosen.seed, chosen.option)
            print(found)
            return 0 if found.passed else 1
        else:
            print(COMPILER.report(chosen.name, chosen.into))
    except (RelayError, OSError) as error:
        print(f"error: {line_of(error, 'relay-byoc')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
