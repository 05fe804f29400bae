"""The entry points of the console commands. `relay` is also `python -m relay`; each of its subcommands is a module of
`relay.tools.command`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module


def main(args: Sequence[str] | None = None) -> int:
    """Run the command `relay`. Returns the exit code: 0; 1 after one line about an error, or if compared results
    differ; 2 after one line about a wrong command line."""
    try:
        import rich_click as _  # noqa: F401  (what the subcommands are written with)
    except ModuleNotFoundError as error:
        from relay.plug_ins import installation

        print(f"relay: the package {error.name} is not installed; {installation('cli')}", file=sys.stderr)
        return 1
    return _run(lambda: import_module("relay.tools.command.main").run(args))


def opt() -> int:
    """Run the command `relay-opt`. Returns its exit code."""
    return _compiler("relay-opt", "relay.tools.relay_opt")


def explore() -> int:
    """Run the command `relay-explore`. Returns its exit code."""
    return _compiler("relay-explore", "relay.tools.relay_explore")


def byoc() -> int:
    """Run the command `relay-byoc`. Returns its exit code."""
    return _compiler("relay-byoc", "relay.tools.relay_byoc")


def dialect() -> int:
    """Run the command `relay-dialect`. Returns its exit code."""
    return _compiler("relay-dialect", "relay.tools.relay_dialect")


def _compiler(name: str, module: str) -> int:
    """Run `main` of a module that needs the compiler, or print which package is missing (as after `pip install
    --no-deps`). Returns the exit code."""
    from relay.plug_ins import lacking

    def command() -> int:
        try:
            main = import_module(module).main
        except ModuleNotFoundError as error:
            print(lacking(name, error), file=sys.stderr)
            return 1
        return main()

    return _run(command)


def _run(command: Callable[[], int]) -> int:
    """Run a command, opening /dev/null for each standard stream that is closed. Returns the command's exit code, or 130
    after an interrupt."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))
    try:
        return command()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
