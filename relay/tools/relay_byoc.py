"""`relay-byoc`: external compilers from the shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from relay.byoc import registry
from relay.byoc.scaffolding import scaffold
from relay.errors import RelayError
from relay.tools.failure import line_of


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser("relay-byoc", description="External compilers (bring your own codegen).")
    actions = command.add_subparsers(dest="action", required=True)
    new = actions.add_parser("new", help="write a package for a new compiler, working as it stands")
    new.add_argument("name", help="the compiler's name: a lower-case word")
    new.add_argument("--into", type=Path, metavar="DIR", help="the folder to write (default: relay-NAME here)")
    actions.add_parser("list", help="the compilers that are known here, and what they miss")
    return command


def listing() -> str:
    """A line for each known compiler."""
    lines: list[str] = []
    for name in registry.names():
        try:
            compiler = registry.load(name)()
            lines.append(f"{name:14s} {compiler.missing() or 'ready'}; {kind(compiler.exact, compiler.difference)}")
        except RelayError as error:
            lines.append(f"{name:14s} {error}")
    return "\n".join(lines) or "no external compiler is known"


def kind(exact: bool, difference: str) -> str:
    """What a compiler says of its numerics."""
    return "exact" if exact else f"not exact: {difference or 'its integers may differ'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    chosen = parser().parse_args(arguments)
    try:
        if chosen.action == "list":
            print(listing())
        else:
            folder = chosen.into or Path(f"relay-{chosen.name}")
            written = scaffold(chosen.name, folder)
            print("\n".join(map(str, written)))
            print(f"next: cd {folder} && pip install -e . pytest && pytest")
    except (RelayError, OSError) as error:
        print(f"error: {line_of(error, 'relay-byoc')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
